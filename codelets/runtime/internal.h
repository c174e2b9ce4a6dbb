/* internal.h - what the files of lib/ share */
#ifndef DDP_INTERNAL_H
#define DDP_INTERNAL_H

#include "data/data.h"
#include "ddp.h"
#include "runtime/codelets.h"

/* The number that an environment variable has, if it is set. */
int ddp__env_number(const char *name, int least, int most, int *value);

#endif
