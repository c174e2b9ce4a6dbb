/* dnn_tune.h - choosing one of several plans by stopwatch
 *
 * Only where the program's user asks for it (DDP_TUNE=1): what is fastest may
 * change from run to run, and with it the last bits.  The choice is stored
 * with the plan, so that a later run on such a device repeats it.
 */
#ifndef DDP_DNN_TUNE_H
#define DDP_DNN_TUNE_H

#include "dnn_plan.h"

struct ddp__cudnn_bench;

/* Memory for all tensors of a graph and so much workspace, on the target.
 * NULL: there is none, or no GPU; ddp__fail() has been called. */
struct ddp__cudnn_bench *ddp__cudnn_bench_new(const struct ddp__cudnn_graph *g,
                                              size_t workspace);
void ddp__cudnn_bench_free(struct ddp__cudnn_bench *b);

/* Milliseconds of the fastest of some runs. */
int ddp__cudnn_bench_run(struct ddp__cudnn_bench *b, struct ddp__cudnn_plan *p,
                         float *ms);

#endif
