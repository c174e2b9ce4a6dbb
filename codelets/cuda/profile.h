/* profile.h - the time of each operation on GPUs, as a table in a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_PROFILE_H
#define DDP_CUDA_PROFILE_H

#include "ops_backend.h"

/* With DDP_PROFILE=FILE in the environment, put a clock around every kernel of
 * the table; 0, or ddp__fail(). */
int ddp__cuda_profile_open(struct ddp__backend *b);

/* Write FILE, and give the table its kernels back.  Nothing is running. */
void ddp__cuda_profile_close(struct ddp__backend *b);

#endif
