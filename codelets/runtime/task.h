/* task.h - what is between a device and StarPU: used in codelets/ only */
#ifndef DDP_TASK_H
#define DDP_TASK_H

#include "ops.h"

/* Make the codelets, before the first task; gpus: for GPUs too. */
void ddp__tasks_init(bool gpus);

const char *ddp__op_name(enum ddp__op op);

/* About how many microseconds a call takes on n samples. */
double ddp__cost_us(const struct ddp__call *c, int n, enum ddp__kind kind);

#endif
