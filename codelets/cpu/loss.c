/* loss.c - losses and the counts of right answers, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sample's values are taken to f32 first; e and sums of e are made per
 * sample, so the result does not depend on its neighbours.
 */
#include "config.h"

#include <math.h>

#include "backend.h"
#include "base/error.h"
#include "cpu.h"
#include "thread.h"
#include "vmath.h"

/* A sample: x in f32, room for its exponentials or gradient, what the loss
 * compares it with, and where its gradient goes. */
struct row {
    float *x, *e;
    size_t len;
    float weight;
    size_t label;        /* of a loss of classes */
    const float *target; /* of a loss of values */
    void *dx;            /* NULL: not computed */
};

DDP__INLINE void load_floats(const void *restrict from, float *restrict x,
                             size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        x[i] = ddp__load(from, i, b);
}

/* dx = factor e + shift */
DDP__INLINE void store_gradient(void *restrict dx, const float *restrict e,
                                float factor, float shift, size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        ddp__store(dx, i, e[i] * factor + shift, b);
}

DDP__CLONES static void load_row(const void *from, float *x, size_t len, bool b)
{
    if (b)
        load_floats(from, x, len, true);
    else
        load_floats(from, x, len, false);
}

DDP__CLONES static void store_row(void *dx, const float *e, float factor,
                                  float shift, size_t len, bool b)
{
    if (b)
        store_gradient(dx, e, factor, shift, len, true);
    else
        store_gradient(dx, e, factor, shift, len, false);
}

/* e = exp(x - max); returns their sum, made in 16 interleaved parts */
DDP__CLONES static double exponentials(const float *restrict x,
                                       float *restrict e, size_t len, float max)
{
    double part[16] = {0}, sum = 0;
    size_t i = 0;

    for (; i + 16 <= len; i += 16)
        for (size_t j = 0; j < 16; j++) {
            e[i + j] = ddp__exp(x[i + j] - max);
            part[j] += e[i + j];
        }
    for (; i < len; i++) {
        e[i] = ddp__exp(x[i] - max);
        part[0] += e[i];
    }
    for (size_t j = 0; j < 16; j++)
        sum += part[j];
    return sum;
}

static float max_of(const float *x, size_t len)
{
    float max = x[0];

    for (size_t i = 1; i < len; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

/* How many classes beat the label: of equals the lower one, and a NaN. */
DDP__CLONES static size_t rank_of(const float *x, size_t len, size_t label)
{
    float mine = x[label];
    size_t rank = 0;

    for (size_t i = 0; i < label; i++)
        rank += !(x[i] < mine);
    for (size_t i = label + 1; i < len; i++)
        rank += !(x[i] <= mine);
    return rank;
}

/* ---- rules: the loss of a sample, and its gradient ----------------------- */

/* -sum of q log softmax(x), q = (1 - s) [i = label] + s / len; the sum over x
 * that smoothing needs is made in f64. */
static double cross_entropy(const struct ddp__task *t, const struct row *r)
{
    double s = t->call->loss.smoothing, len = (double)r->len, rest = 0;
    float max = max_of(r->x, r->len), weight = r->weight;
    double sum = exponentials(r->x, r->e, r->len, max);
    double log_sum = max + log(sum), share = s / len;
    bool b = ddp__is_bf16(t, DDP__LOSS_DX);

    if (r->dx) {
        double p = r->e[r->label] / sum;

        store_row(r->dx, r->e, (float)(weight / sum), (float)(-weight * share),
                  r->len, b);
        ddp__store(r->dx, r->label, (float)(weight * (p - share - (1 - s))), b);
    }
    for (size_t i = 0; i < r->len && s != 0; i++)
        rest += r->x[i];
    return (1 - s) * (log_sum - r->x[r->label]) +
           share * (len * log_sum - rest);
}

/* The mean of (x - target)^2; its gradient goes through r->e. */
static double squared_error(const struct ddp__task *t, const struct row *r)
{
    double sum = 0;

    for (size_t i = 0; i < r->len; i++) {
        double d = (double)r->x[i] - r->target[i];

        sum += d * d;
        r->e[i] = (float)(r->weight * 2 * d / (double)r->len);
    }
    if (r->dx)
        store_row(r->dx, r->e, 1, 0, r->len, ddp__is_bf16(t, DDP__LOSS_DX));
    return sum / (double)r->len;
}

static double apply_rule(const struct ddp__task *t, const struct row *r)
{
    switch (t->call->loss.kind) {
#define X(id, name, rule, target)                                              \
    case DDP_##id:                                                             \
        return rule(t, r);
        DDP__LOSSES(X)
#undef X
    case DDP_CUSTOM_LOSS:
        break; /* cpu_prepare() refuses it */
    }
    return NAN;
}

/* ---- kernels ------------------------------------------------------------ */

static void count_top(const struct row *r, double *stats)
{
    size_t rank = rank_of(r->x, r->len, r->label);

    stats[DDP__STAT_TOP1] += rank < 1;
    stats[DDP__STAT_TOP5] += rank < 5;
    stats[DDP__STAT_TOP10] += rank < 10;
}

/* Sample n of a loss of classes. */
static int loss_of_class(const struct ddp__task *t, struct row *r, size_t n,
                         double *stats)
{
    int32_t label = ((const int32_t *)t->data[DDP__LOSS_TARGET])[n];

    if (label == DDP__NO_LABEL && !r->dx)
        return 0;
    if (label < 0 || (size_t)label >= r->len)
        return ddp__fail(DDP_EDATA,
                         "sample %zu of a sub-batch has label %d, but the "
                         "network has %zu outputs",
                         n, (int)label, r->len);
    r->label = (size_t)label;
    stats[DDP__STAT_LOSS] += r->weight * apply_rule(t, r);
    if (!(t->call->loss.aux > 0))
        count_top(r, stats);
    return 0;
}

static int loss_of_sample(const struct ddp__task *t, struct row *r, size_t n,
                          double *stats)
{
    float aux = t->call->loss.aux;

    r->weight = ((const float *)t->data[DDP__LOSS_WEIGHT])[n];
    r->weight *= aux > 0 ? aux : 1;
    if (ddp__loss_info(t->call->loss.kind)->target == DDP__TARGET_CLASS)
        return loss_of_class(t, r, n, stats);
    r->target = (const float *)t->data[DDP__LOSS_TARGET] + n * r->len;
    stats[DDP__STAT_LOSS] += r->weight * apply_rule(t, r);
    return 0;
}

/* Sample by sample, so that a row in f32 and its exponentials remain in the
 * cache; sums are kept here and added to the lane's at the end. */
int ddp__cpu_loss(const struct ddp__task *t)
{
    size_t len = ddp__len(t, DDP__LOSS_X) / (size_t)t->n;
    struct row r = {.x = ddp__scratch(2 * len * sizeof(float)), .len = len};
    double stats[DDP__STATS] = {0}, *out = t->data[DDP__LOSS_STATS];
    bool b = ddp__is_bf16(t, DDP__LOSS_X);
    int rc = 0;

    if (!r.x)
        return DDP_ENOMEM;
    r.e = r.x + len;
    if (!(t->call->loss.aux > 0)) {
        stats[DDP__STAT_COUNT] = t->n;
        stats[DDP__STAT_DIVISOR] =
            ((const float *)t->data[DDP__LOSS_WEIGHT])[t->call->cap];
    }
    for (size_t n = 0; n < (size_t)t->n && !rc; n++) {
        load_row(ddp__at(t->data[DDP__LOSS_X], n * len, b), r.x, len, b);
        if (t->data[DDP__LOSS_DX])
            r.dx = ddp__to(t->data[DDP__LOSS_DX], n * len,
                           ddp__is_bf16(t, DDP__LOSS_DX));
        rc = loss_of_sample(t, &r, n, stats);
    }
    for (int i = 0; i < DDP__STATS && !rc; i++)
        out[i] = t->accumulate ? out[i] + stats[i] : stats[i];
    return rc;
}
