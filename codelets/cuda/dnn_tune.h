/* dnn_tune.h - running a plan outside of tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * To choose one of several by stopwatch, only where the program's user asks for
 * it (DDP_TUNE=1): what is fastest may change from run to run, and with it the
 * last bits.  The choice is stored with the plan, so that a later run on such a
 * device repeats it.  And to see what a plan does where no manual says.
 */
#ifndef DDP_DNN_TUNE_H
#define DDP_DNN_TUNE_H

#include "dnn_plan.h"

struct ddp__cudnn_bench;

/* Memory for all tensors of a plan's graph, zeros, and so much workspace, on
 * its target; scalars are 1.  NULL: there is none, or no GPU; ddp__fail() has
 * been called. */
struct ddp__cudnn_bench *ddp__cudnn_bench_new(const struct ddp__cudnn_plan *p,
                                              size_t workspace);
void ddp__cudnn_bench_free(struct ddp__cudnn_bench *b);

/* Milliseconds of the fastest of some runs. */
int ddp__cudnn_bench_run(struct ddp__cudnn_bench *b, struct ddp__cudnn_plan *p,
                         float *ms);

/* Fill a tensor, and see it. */
int ddp__cudnn_bench_put(struct ddp__cudnn_bench *b, int tensor,
                         const void *from, size_t size);
int ddp__cudnn_bench_get(struct ddp__cudnn_bench *b, int tensor, void *to,
                         size_t size);

#endif
