/* doctor_machine.h - what the machine is, for "imagenet doctor"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DOCTOR_MACHINE_H
#define DOCTOR_MACHINE_H

#include <stdbool.h>

#include "doctor_report.h"

/* Host, processor, cores, NUMA nodes, caches. */
void doctor_machine(struct report *r);

/* Whether the processor computes with bf16: printed and returned. */
bool doctor_bf16(void);

/* GPUs that the kernel lists.  used: how many libddp uses; why: the reason that
 * it gave for the others, or "". */
void doctor_gpus(struct report *r, int used, const char *why);

#endif
