/* step_calls.h - the calls of a step that belong to no layer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STEP_CALLS_H
#define DDP_STEP_CALLS_H

#include "ops.h"

struct ddp__engine;

/* How a kernel sees so many numbers in a row. */
struct ddp__view ddp__vector_view(size_t len, enum ddp_dtype type);

/* Its decision, merges of statistics, of each bucket and of each sum of the
 * graph, and its end. */
int ddp__step_calls_new(struct ddp__engine *e);
void ddp__step_calls_free(struct ddp__engine *e);

/* The norm of a bucket's gradients, with updates. */
int ddp__sqnorm_prepare(struct ddp__engine *e, int b);

#endif
