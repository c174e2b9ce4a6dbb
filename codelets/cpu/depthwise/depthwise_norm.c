/* depthwise_norm.c - gradients of a batch norm before a depthwise convolution
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The backward pass of a norm reads the gradient of its output twice: for the
 * sums, and for dx.  It is made of the convolution's dy each time, and is used
 * in registers.
 *
 * Two busy cores of an Intel Xeon (AVX-512, no AMX), 16 images, milliseconds of
 * the data gradient and the norm one after the other, and in this way, with
 * relu6 and with SiLU:
 *
 *     112x112x32                  12.8  8.7
 *     112x112x96 of stride 2      29.1 18.3  34.1 23.7
 *     56x56x144                   12.8 11.2  13.6 11.9
 *     56x56x144 5x5 of stride 2   10.7  7.2  11.4  8.9
 *     28x28x192                    4.2  3.8
 *     28x28x240 5x5                5.2  5.9   6.1  6.9
 *
 * Tasks of a step in two sub-batches of 16 take 94, 96 and 100 % of the time in
 * three runs of MobileNetV2, and 98 % of EfficientNet-B0.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/norm/bn_bwd.h"
#include "cpu/norm/bn_bwd_channels.h"
#include "cpu/norm/bn_clamp.h"
#include "cpu/thread.h"
#include "depthwise_norm.h"
#include "depthwise_train.h"

/* Of 5x5 without strides, the products take longer than memory. */
bool ddp__depthwise_norm_fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return s->type == DDP_F32 && (k->kw == 3 || k->sw == 2) &&
           (ddp__bn_clamps(k->norm_act) || k->norm_act == DDP_SILU ||
            k->norm_act == DDP_HARDSWISH);
}

#ifdef DDP__X86

/* What the loops read of a norm, with the sums of a row in part. */
static struct ddp__depthwise_norm
reader_of(const struct ddp__task *t, const struct ddp__bn_pass *s, float *part)
{
    struct ddp__depthwise_norm n = {.x = t->data[DDP__NORM_CONV_BWD_X_X],
                                    .p = s->p,
                                    .act = t->call->conv.norm_act,
                                    .low = 0,
                                    .high = INFINITY,
                                    .b = 1,
                                    .part = part,
                                    .sum = s->sum,
                                    .apart = s->r.width};

    if (n.act == DDP_IDENTITY)
        n.low = -INFINITY;
    if (n.act == DDP_RELU6)
        n.high = 6;
    if (n.act == DDP_HARDSWISH) {
        n.low = -3;
        n.high = 3;
        n.m = 1.0f / 3;
        n.b = 0.5f;
        n.top = 1;
    }
    return n;
}

/* Both passes, where `room` has a row's sums, then what the layer needs. */
static void run(const struct ddp__task *t, const struct ddp__conv_shape *s,
                struct ddp__bn_pass *norm, char *room, size_t sums)
{
    double values = (double)ddp__rows(norm->t, DDP__BN_BWD_X);
    struct ddp__depthwise_norm reader =
        reader_of(t, norm, (float *)(void *)room);
    struct ddp__depthwise_pass p;

    memset(room, 0, sums);
    memset(norm->sum, 0, 2 * norm->r.width * sizeof(*norm->sum));
    ddp__depthwise_pass_begin(&p, s, DDP__BWD_X, t, room + sums);
    p.u.reader = &reader;
    ddp__depthwise_pass_run(&p);
    ddp__bn_bwd_gradients(norm, norm->sum, values);
    ddp__bn_bwd_factors(norm, norm->sum, norm->r.width, values);
    reader.dx = true;
    ddp__depthwise_pass_run(&p);
}

int ddp__depthwise_norm_run(const struct ddp__task *t,
                            const struct ddp__conv_shape *s)
{
    struct ddp__call c;
    struct ddp__task norm = ddp__norm_of_conv(t, NULL, &c);
    size_t sums = 2 * ddp__align((size_t)s->c * sizeof(float));
    struct ddp__bn_pass pass;
    char *room =
        ddp__bn_bwd_begin(&pass, &norm, norm.data[DDP__BN_BWD_DX],
                          sums + ddp__depthwise_pass_size(s, DDP__BWD_X));

    if (!room)
        return DDP_ENOMEM;
    run(t, s, &pass, room, sums);
    return 0;
}

#endif
