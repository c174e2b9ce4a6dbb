/* norm_conv.c - convolutions joined with the norm before them, by CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A batch norm writes as much as it reads for its only readers, a convolution
 * and its weight gradient.  Where these are depthwise, or 1x1 of few channels,
 * memory limits them: they have time to normalise what they read themselves,
 * and the output need not be kept until the backward pass.
 *
 * Two cores of an Intel Xeon (Skylake), a step of MobileNetV2 in two
 * sub-batches of 16 images, milliseconds of a worker, where norms write their
 * output and in this way (medians of tasks of four runs in turn):
 *
 *     norms forward           136.7   78.3
 *     convolutions forward    210.4  204.7
 *     weight gradients        221.0  227.2
 *     all tasks              1006.2  926.5
 *
 * and 1.76 and 1.24 GiB of memory at most.  If layers of 14x14 and 7x7 pixels
 * did so, too, all tasks would take 915.8 instead of 912.8 ms (another minute);
 * with the norms of EfficientNet-B0, whose SiLU would be computed three times,
 * 1335 instead of 1252.
 */
#include "config.h"

#include "base/error.h"
#include "cpu/backend.h"
#include "cpu/depthwise/depthwise_norm.h"
#include "cpu/depthwise/depthwise_train.h"
#include "cpu/norm/bn_clamp.h"
#include "gradient.h"
#include "norm_conv.h"
#include "packed.h"

/* Bytes of x from which on it pays: of less, a norm finds most of x and y in
 * the third-level cache. */
enum { LEAST = 9 << 20 };

bool ddp__norm_conv_can(const struct ddp__plan *p)
{
    const struct ddp__conv *k = &p->shape.conv;

    if (p->pass == DDP__BWD_X)
        return p->way == DDP__WAY_DEPTHWISE_TRAIN &&
               ddp__depthwise_norm_fits(&p->shape);
    if (p->shape.type != DDP_F32 || !ddp__bn_clamps(k->norm_act))
        return false;
    return p->pass == DDP__FWD
               ? p->way == DDP__WAY_THIN || p->way == DDP__WAY_DEPTHWISE_TRAIN
               : p->way == DDP__WAY_GRADIENT && p->gradient->run_of_norm &&
                     !k->bias;
}

/* Of more outputs than inputs, norms take little of the time, and products
 * more. */
static bool pays(const struct ddp__conv_shape *s)
{
    double bytes = 4.0 * s->n * s->h * s->w * s->c;

    return s->c >= s->o && bytes >= LEAST;
}

/* A plan that cannot be made is not the answer to a question. */
bool ddp__cpu_conv_normalises(const struct ddp__call *c)
{
    struct ddp__error before = ddp__error_save();
    struct ddp__plan *p;
    bool good;

    if (ddp__plan_new(c, &p) < 0) {
        ddp__error_restore(&before);
        return false;
    }
    good = ddp__norm_conv_can(p) && pays(&p->shape);
    ddp__plan_free(p);
    return good;
}

int ddp__cpu_norm_conv_fwd(const struct ddp__task *t)
{
    struct ddp__plan *p = t->plan;

    return p->way == DDP__WAY_THIN
               ? ddp__packed_run(t, p, NULL, NULL)
               : ddp__depthwise_train_run(t, &p->shape, DDP__FWD);
}

int ddp__cpu_norm_conv_bwd_w(const struct ddp__task *t)
{
    const struct ddp__plan *p = t->plan;
    struct ddp__conv_shape s = p->shape;

    s.n = t->n;
    return p->gradient->run_of_norm(t, &s);
}

int ddp__cpu_norm_conv_bwd_x(const struct ddp__task *t)
{
    const struct ddp__plan *p = t->plan;

    return ddp__depthwise_norm_run(t, &p->shape);
}
