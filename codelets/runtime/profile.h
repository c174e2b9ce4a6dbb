/* profile.h - the time of each operation on CPU workers, as a table in a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RUNTIME_PROFILE_H
#define DDP_RUNTIME_PROFILE_H

#include "task.h"

/* With DDP_PROFILE=FILE in the environment, write a line to FILE for each call
 * from now on.  On GPUs, where a call returns before its work is done, their
 * module has a clock of its own: then there is none here.
 *
 * Errors   DDP_EIO: FILE cannot be written. */
int ddp__profile_open(void);
void ddp__profile_close(void);

/* The time now, if there is a profile; otherwise 0. */
double ddp__profile_begin(void);

/* A call that began then has ended on a CPU worker. */
void ddp__profile_end(const struct ddp__task *t, int worker, double begin);

#endif
