/* bn.c - batch normalisation of CPU workers, forward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 *     y = act((x - mean) a + shift + r),  a = scale / sqrt(var + eps)
 *
 * To convolve image by image and take the sums of each while it is in a cache
 * gains little.  Milliseconds of processor time of all convolutions and norms,
 * forward, one Zen 5 core under load: at once, image by image, and each layer
 * in the way that is faster for it:
 *
 *     ResNet-50, 8 images            229.1  242.8  226.3
 *     MobileNetV2, 16 images         109.3  102.8  101.7
 *     EfficientNetV2-S, 16 images    293.5  291.8  288.7
 *
 * That is at most 0.3, 1.8 and 0.3 % of a step, for two primitives a layer and
 * a norm inside a convolution's task.  Layers of 7x7 pixels need several images
 * at a time to be fast: 512 channels by 3x3 take 2.5 ms at once, 8.7 ms by one.
 *
 * One Zen 5 core (AVX-512) under load, 8 images from memory (tests/kernelbench
 * bn), milliseconds of oneDNN 2.6's primitives (norm, with ReLU where it has
 * that, sum, activation) and here; f32 forward, backward, and the same in bf16:
 *
 *     56x56x64, relu         0.33 0.31  0.51 0.51  0.27 0.18  0.44 0.37
 *     14x14x256, relu        0.09 0.08  0.14 0.11  0.09 0.08  0.13 0.13
 *     56x56x256, sum, relu   3.91 3.18  5.37 4.68  2.18 1.33  3.65 1.90
 *     14x14x1024, sum, relu  0.79 0.59  1.25 1.08  0.47 0.39  0.80 0.70
 *     112x112x32, silu       2.23 1.14  3.22 2.29  1.49 1.09  2.28 2.12
 *     28x28x240, silu        1.01 0.49  1.42 1.04  0.66 0.46  1.05 0.99
 *     56x56x24               0.20 0.11  0.31 0.18  5.42 0.16  8.03 0.22
 *
 * Without ddp__fetch(), and with dr stored through the caches, 56x56x256 took
 * 4.79, 7.17, 3.52 and 4.75: both passes read several arrays, the second one
 * backwards in blocks, and the processor's own fetching begins again with each.
 * oneDNN keeps one more activation in memory where a residual is added, two in
 * the backward pass.
 */
#include "config.h"

#include "bn.h"
#include "bn_line_v16.h"
#include "bn_loops.h"
#include "bn_silu_v16.h"
#include "bn_stat.h"
#include "cpu/backend.h"
#include "cpu/elementwise/mask.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"

/* ---- normalisation ------------------------------------------------------ */

/* From the end to the beginning: what the statistics read last may still be
 * in a cache.  buf: a block of results. */
static void normalise_blocks(const struct ddp__task *t,
                             const struct ddp__rows *r,
                             const struct ddp__bn_params *p, const void *res,
                             float *buf)
{
    size_t w = r->width, blocks = ddp__bn_blocks(r), len;
    struct ddp__bn_piece k = {.width = w};

    while (blocks-- > 0) {
        size_t at = ddp__bn_block(r, blocks, &k.rows, &k.len) * w;
        void *y = ddp__to(t->data[DDP__BN_FWD_Y], at, r->b);

        k.x = ddp__at(t->data[DDP__BN_FWD_X], at, r->b);
        k.res = res ? ddp__at(res, at, r->b) : NULL;
        k.y = r->direct ? y : buf;
        ddp__bn_normalise(p, &k, t->call->bn.act, r->b);
        len = k.len + (k.rows - 1) * w;
        if (t->call->bn.mask)
            ddp__mask_make(k.y, (uint8_t *)t->data[DDP__BN_FWD_MASK] + at / 8,
                           len);
        if (!r->direct)
            ddp__store_block(y, buf, len, r->b, r->stream);
    }
    ddp__store_end();
}

/* room: for the parameters of bn_silu_v16.c, if it computes this, or NULL. */
static void normalise_line(const struct ddp__task *t, const struct ddp__rows *r,
                           const struct ddp__bn_params *p, const void *res,
                           void *room)
{
    void *y = t->data[DDP__BN_FWD_Y];
    struct ddp__bn_line l = {
        .x = t->data[DDP__BN_FWD_X],
        .y = res,
        .to = y,
        .mask = t->call->bn.mask ? t->data[DDP__BN_FWD_MASK] : NULL,
        .len = r->rows * r->width + r->tail,
        .period = r->width,
        .b = r->b,
        .stream = r->stream && (uintptr_t)y % 64 == 0};

    if (room) {
        struct ddp__bn_silu u = ddp__bn_silu_in(room, r->width);

        ddp__bn_silu_set(&u, u.mean, p->mean);
        ddp__bn_silu_set(&u, u.a, p->a);
        ddp__bn_silu_set(&u, u.shift, p->shift);
        ddp__bn_silu_center(&u);
        ddp__bn_silu_normalise(&u, &l);
    } else {
        ddp__bn_normalise_v16(p, &l, t->call->bn.act);
    }
}

/* ---- kernels ------------------------------------------------------------ */

/* scale / sqrt(var + eps); stat, which has var, gets what backward will read.
 */
static float factor(const struct ddp__call *c, float scale, float *stat,
                    bool train)
{
    float root = sqrtf(*stat + c->bn.eps);

    if (!train || !c->bn.inverse)
        return scale / root;
    *stat = 1 / root;
    return scale * *stat;
}

/* Which of the operations this is. */
enum pass {
    MEASURE, /* the statistics, then normalise */
    GIVEN,   /* the statistics are */
    SCALE    /* by the factor alone: mean and shift are 0 */
};

/* stat: mean and variance to normalise with. */
static int run_bn(const struct ddp__task *t, float *stat, const void *res,
                  enum pass pass)
{
    struct ddp__rows r = ddp__bn_rows(t, DDP__BN_FWD_X);
    size_t w = ddp__bn_spaced(&r), c = r.c;
    size_t tmp = ddp__align(3 * w * sizeof(float));
    size_t sum = ddp__align(2 * w * sizeof(double));
    bool silu = ddp__bn_silu_fits(t->call->bn.act, res, r.b, r.width);
    const float *scale = t->data[DDP__BN_FWD_W], *shift = scale + c;
    char *scratch = ddp__scratch(
        tmp + sum +
        (silu ? ddp__bn_silu_size(r.width)
              : ddp__align((r.chunk * r.width + 16) * sizeof(float))));
    float *par = (float *)(void *)scratch;
    struct ddp__bn_params p = {par, par + w, par + 2 * w, NULL, NULL};

    if (!scratch)
        return DDP_ENOMEM;
    if (pass == MEASURE)
        ddp__bn_stat_measure(t->data[DDP__BN_FWD_X], &r, par,
                             (double *)(void *)(scratch + tmp), stat, stat + c);
    for (size_t i = 0; i < c; i++) {
        par[i] = pass == SCALE ? 0 : stat[i];
        par[w + i] = factor(t->call, scale[i], &stat[c + i], pass == MEASURE);
        par[2 * w + i] = pass == SCALE ? 0 : shift[i];
    }
    for (int i = 0; i < 3; i++)
        ddp__bn_repeat(&r, par + (size_t)i * w, w);
    if (ddp__unit_v16(r.b))
        normalise_line(t, &r, &p, res, silu ? scratch + tmp + sum : NULL);
    else
        normalise_blocks(t, &r, &p, res,
                         (float *)(void *)(scratch + tmp + sum));
    return 0;
}

int ddp__cpu_bn_fwd(const struct ddp__task *t)
{
    return run_bn(t, t->data[DDP__BN_FWD_STAT], t->data[DDP__BN_FWD_R],
                  MEASURE);
}

int ddp__cpu_bn_stat(const struct ddp__task *t)
{
    struct ddp__rows r = ddp__bn_rows(t, DDP__BN_STAT_X);
    size_t tmp = ddp__align(3 * r.width * sizeof(float));
    char *scratch = ddp__scratch(tmp + 2 * r.width * sizeof(double));
    float *stat = t->data[DDP__BN_STAT_STAT];

    if (!scratch)
        return DDP_ENOMEM;
    ddp__bn_stat_measure(t->data[DDP__BN_STAT_X], &r, (float *)(void *)scratch,
                         (double *)(void *)(scratch + tmp), stat, stat + r.c);
    return 0;
}

/* The running statistics are in w. */
int ddp__cpu_bn_eval(const struct ddp__task *t)
{
    float *w = t->data[DDP__BN_EVAL_W];

    return run_bn(t, w + 2 * (size_t)t->call->buf[DDP__BN_EVAL_X].shape.c,
                  t->data[DDP__BN_EVAL_R], GIVEN);
}

int ddp__cpu_bn_eval_bwd(const struct ddp__task *t)
{
    float *w = t->data[DDP__BN_EVAL_BWD_W];

    return run_bn(t, w + 2 * (size_t)t->call->buf[DDP__BN_EVAL_BWD_DY].shape.c,
                  NULL, SCALE);
}

/* ---- over the sub-batches of a step ------------------------------------- */

/* From d = x - s to x: m s more, and m s s + 2 s sum(d) more. */
int ddp__cpu_bn_sum(const struct ddp__task *t)
{
    struct ddp__rows r = ddp__bn_rows(t, DDP__BN_SUM_X);
    size_t tmp = ddp__align(3 * r.width * sizeof(float));
    char *scratch = ddp__scratch(tmp + 2 * r.width * sizeof(double));
    float *s = (float *)(void *)scratch;
    double *d = (double *)(void *)(scratch + tmp),
           m = (double)ddp__bn_values(&r);
    double *sum = t->data[DDP__BN_SUM_SUM];

    if (!scratch)
        return DDP_ENOMEM;
    ddp__bn_stat_sums(t->data[DDP__BN_SUM_X], &r, s, d);
    for (size_t i = 0; i < r.c; i++) {
        double shift = (double)s[i], d1 = d[i], d2 = d[r.width + i];

        ddp__bn_collect(t, &sum[i], d1 + m * shift);
        ddp__bn_collect(t, &sum[r.c + i], d2 + shift * (2 * d1 + m * shift));
    }
    ddp__bn_collect(t, &sum[2 * r.c], m);
    return 0;
}

int ddp__cpu_bn_sync(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__BN_SYNC_X].shape.c;
    const double *sum = t->data[DDP__BN_SYNC_SUM];
    float *stat = t->data[DDP__BN_SYNC_STAT];

    for (size_t i = 0; i < c; i++)
        ddp__bn_moments(sum, c, i, stat);
    stat[2 * c] = (float)sum[2 * c];
    return run_bn(t, stat, t->data[DDP__BN_SYNC_R], GIVEN);
}
