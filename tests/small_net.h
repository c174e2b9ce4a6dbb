/* small_net.h - a small chain, its samples and what an evaluation gives
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef SMALL_NET_H
#define SMALL_NET_H

#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "number.h"
#include "tap.h"

enum { SIDE = 6, X_LEN = SIDE * SIDE * 3, CLASSES = 5, COUNT = 11, BATCH = 4 };

static const struct ddp_shape image = {SIDE, SIDE, 3};
static ddp_t *ddp;

static inline float *samples(void)
{
    float *x = malloc(COUNT * X_LEN * sizeof(*x));

    for (int i = 0; x && i < COUNT * X_LEN; i++)
        x[i] = number((uint32_t)i);
    return x;
}

static inline ddp_chain_t *net(void)
{
    struct ddp_conv_options pad = {CONV_DEFAULTS, .pad = 1};
    ddp_chain_t *c = ddp_chain_new(
        ddp_conv_new(3, 8, 3, &pad), ddp_batch_norm_new(8, NULL),
        ddp_relu_new(), ddp_skip_new(ddp_conv_new(8, 8, 3, &pad), DDP_END),
        ddp_dropout_new(0.5f), ddp_max_pool_new(2, NULL), ddp_flatten_new(),
        ddp_dense_new(SIDE * SIDE * 2, CLASSES, NULL), DDP_END);

    if (!c || ddp_chain_init(c, 3) < 0)
        bail_out("%s", ddp_errmsg());
    return c;
}

/* Without tasks of several operations: "0"; with them: "". */
static inline void start(const char *segment_us)
{
    setenv("DDP_SEGMENT_US", segment_us, 1);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
}

/* ---- evaluation ---------------------------------------------------------- */

static inline int get(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    (void)key;
    memcpy(s->x, (float *)arg + index * X_LEN, X_LEN * sizeof(float));
    s->label = 0;
    return 0;
}

static inline int keep(const struct ddp_prediction *a, void *arg)
{
    memcpy((float *)arg + a->index * CLASSES, a->output,
           CLASSES * sizeof(float));
    return 0;
}

/* The outputs of an evaluation in sub-batches of `sub`. */
static inline bool evaluate(ddp_chain_t *c, enum ddp_dtype type, float *x,
                            int sub, float *y)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = image,
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get,
                                                  .arg = x});
    int rc = ddp_chain_evaluate(ddp, c, d,
                                &(struct ddp_evaluate_config){
                                    EVALUATE_DEFAULTS, .sub_batch = sub,
                                    .dtype = type, .on_sample = keep, .arg = y},
                                NULL);

    ddp_dataset_free(d);
    return rc == 0;
}

#endif
