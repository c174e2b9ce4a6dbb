/* evaluate.h - an evaluation of a chain on data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_EVALUATE_H
#define DDP_EVALUATE_H

#include "ddp.h"
#include "engine/ema.h"

/* An evaluation of a chain on data; on_sample may be NULL. */
struct ddp__eval;
int ddp__eval_new(struct ddp__eval **out, ddp_t *ddp, ddp_chain_t *chain,
                  ddp_dataset_t *data, const struct ddp_train_config *c,
                  ddp_prediction_f on_sample, void *arg);
void ddp__eval_free(struct ddp__eval *e);
struct ddp__engine *ddp__eval_engine(const struct ddp__eval *e);
/* With averages in place of the weights, or NULL for the weights. */
int ddp__eval_run(struct ddp__eval *e, const struct ddp__ema *averages,
                  struct ddp_metrics *m);

/* Copy what a chain gave as f32. */
void ddp__eval_copy(float *out, const void *in, enum ddp_dtype type,
                    size_t len);

#endif
