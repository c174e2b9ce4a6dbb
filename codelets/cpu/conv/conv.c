/* conv.c - convolutions and dense layers of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each is computed in the way that its plan has (way.c).
 */
#include "config.h"

#include "bias.h"
#include "conv.h"
#include "conv_onednn.h"
#include "cpu/depthwise/depthwise.h"
#include "cpu/depthwise/depthwise_train.h"
#include "cpu/product/dense.h"
#include "cpu/product/dense_wgrad.h"
#include "cpu/product/patch_run.h"
#include "cpu/product/skinny.h"
#include "cpu/product/taps.h"
#include "cpu/product/taps_wgrad.h"
#include "cpu/wino/wino.h"
#include "gradient.h"
#include "packed.h"
#include "plan.h"
#include "rows.h"

static int run_skinny(const struct ddp__task *t, const struct ddp__plan *p)
{
    struct ddp__conv_shape s = p->shape;

    s.n = t->n;
    return ddp__skinny_dense(t, &s, p->pass);
}

static int run_dense(const struct ddp__task *t, const struct ddp__plan *p)
{
    struct ddp__conv_shape s = p->shape;

    s.n = t->n;
    return p->pass == DDP__FWD ? ddp__dense_fwd(&s, t->data[DDP__CONV_IN],
                                                t->data[DDP__CONV_WEIGHT],
                                                t->data[DDP__CONV_OUT])
                               : ddp__dense_bwd_x(&s, t->data[DDP__CONV_IN],
                                                  t->data[DDP__CONV_WEIGHT],
                                                  t->data[DDP__CONV_OUT]);
}

/* run: one of libddp's kernels, dw (+)= what x and dy give.  The gradient of
 * a bias takes another pass over dy, which is a small part of the time. */
static int run_gradient(const struct ddp__task *t, const struct ddp__plan *p,
                        int (*run)(const struct ddp__conv_shape *s,
                                   const void *x, const void *dy,
                                   bool accumulate, float *dw))
{
    struct ddp__conv_shape s = p->shape;
    const void *dy = t->data[DDP__CONV_BWD_W_DY];
    float *g = t->data[DDP__CONV_BWD_W_G];
    int rc;

    s.n = t->n;
    rc = run(&s, t->data[DDP__CONV_BWD_W_X], dy, t->accumulate, g);
    if (!rc && s.conv.bias)
        ddp__bias_gradient(&s, dy, t->accumulate, g + p->weights);
    return rc;
}

static int run_taps(const struct ddp__task *t, const struct ddp__plan *p)
{
    struct ddp__conv_shape s = p->shape;
    const float *w = t->data[DDP__CONV_WEIGHT];
    bool bias = s.conv.bias && p->pass == DDP__FWD;

    if (p->pass == DDP__BWD_W)
        return run_gradient(t, p, ddp__taps_wgrad);
    s.n = t->n;
    return ddp__taps_run(&s, p->pass, t->data[DDP__CONV_IN], w,
                         bias ? w + p->weights : NULL, t->data[DDP__CONV_OUT]);
}

int ddp__cpu_conv_run(const struct ddp__task *t)
{
    struct ddp__plan *p = t->plan;

    switch (p->way) {
    case DDP__WAY_ROWS:
        return ddp__rows_run(t, p);
    case DDP__WAY_STRIP:
        return ddp__conv_strip(t, p);
    case DDP__WAY_PHASES:
        return ddp__conv_phases(t, p);
    case DDP__WAY_PATCHES:
        return ddp__patch_run(t, p);
    case DDP__WAY_SKINNY:
        return run_skinny(t, p);
    case DDP__WAY_TAPS:
        return run_taps(t, p);
    case DDP__WAY_DENSE:
        return p->pass == DDP__BWD_W ? run_gradient(t, p, ddp__dense_wgrad_run)
                                     : run_dense(t, p);
    case DDP__WAY_DEPTHWISE:
        return ddp__depthwise_run(t, &p->shape, p->pass);
    case DDP__WAY_WINO:
    case DDP__WAY_THIN:
    case DDP__WAY_AMX_PIXELS:
    case DDP__WAY_I16:
    case DDP__WAY_INFER:
        return ddp__packed_run(t, p, NULL,
                               (float *)t->data[DDP__CONV_WEIGHT] + p->weights);
    case DDP__WAY_DEPTHWISE_TRAIN:
        return ddp__depthwise_train_run(t, &p->shape, p->pass);
    case DDP__WAY_WINO_WGRAD:
        return run_gradient(t, p, ddp__wino_bwd_w);
    case DDP__WAY_GRADIENT:
        return run_gradient(t, p, p->gradient->run);
    case DDP__WAY_PRIMITIVE:
    case DDP__WAYS:
        break;
    }
    return p->pass == DDP__BWD_W ? ddp__conv_gradient(t, p)
                                 : ddp__conv_primitive(t, p);
}
