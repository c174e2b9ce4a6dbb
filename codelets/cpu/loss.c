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
    const float *target; /* of a loss of values, or the share of each class;
                            NULL: the label has all of it */
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

/* dx = (weight / sum) e - shift, and for the label 1 - s times weight less */
static void class_gradient(const struct ddp__task *t, const struct row *r,
                           double sum, double share)
{
    double p = r->e[r->label] / sum, s = t->call->loss.smoothing;
    bool b = ddp__is_bf16(t, DDP__LOSS_DX);

    store_row(r->dx, r->e, (float)(r->weight / sum),
              (float)(-r->weight * share), r->len, b);
    ddp__store(r->dx, r->label, (float)(r->weight * (p - share - (1 - s))), b);
}

/* Shares, smoothed, as their sum and that of their products with x. */
struct sums {
    double q, qx;
};

DDP__CLONES static struct sums sum_shares(const struct row *r, double s)
{
    float own = (float)(1 - s), rest = (float)(s / (double)r->len);
    struct sums all = {0, 0};

    for (size_t i = 0; i < r->len; i++) {
        float q = own * r->target[i] + rest;

        all.q += q;
        all.qx += (double)q * r->x[i];
    }
    return all;
}

/* dx = weight (e q / sum - share), through r->e */
DDP__CLONES static void make_share_gradient(const struct row *r, double s,
                                            double factor)
{
    float own = (float)(1 - s), rest = (float)(s / (double)r->len);
    float times = (float)(r->weight * factor);

    for (size_t i = 0; i < r->len; i++)
        r->e[i] = r->e[i] * times - r->weight * (own * r->target[i] + rest);
}

static double entropy_of_shares(const struct ddp__task *t, const struct row *r,
                                double log_sum, double sum)
{
    double s = t->call->loss.smoothing;
    struct sums all = sum_shares(r, s);

    if (r->dx) {
        make_share_gradient(r, s, all.q / sum);
        store_row(r->dx, r->e, 1, 0, r->len, ddp__is_bf16(t, DDP__LOSS_DX));
    }
    return all.q * log_sum - all.qx;
}

/* -sum of q log softmax(x), q = (1 - s) [i = label] + s / len; the sum over x
 * that smoothing needs is made in f64. */
static double cross_entropy(const struct ddp__task *t, const struct row *r)
{
    double s = t->call->loss.smoothing, len = (double)r->len, rest = 0;
    float max = max_of(r->x, r->len);
    double sum = exponentials(r->x, r->e, r->len, max);
    double log_sum = max + log(sum), share = s / len;

    if (r->target)
        return entropy_of_shares(t, r, log_sum, sum);
    if (r->dx)
        class_gradient(t, r, sum, share);
    for (size_t i = 0; i < r->len && s != 0; i++)
        rest += r->x[i];
    return (1 - s) * (log_sum - r->x[r->label]) +
           share * (len * log_sum - rest);
}

/* The share q of class i: that of the sample, smoothed. */
static float share(const struct ddp__task *t, const struct row *r, size_t i)
{
    float s = t->call->loss.smoothing;
    float own = r->target ? r->target[i] : (float)(i == r->label);

    return s / (float)r->len + (1 - s) * own;
}

/* What the binary losses need of a logit: its sigmoid p, 1 - p, and
 * log(1 + exp(-|x|)). */
struct logistic {
    float p, rest;
    double log;
};

static struct logistic logistic(float x)
{
    float e = ddp__exp(-fabsf(x));
    float large = 1 / (1 + e), small = e / (1 + e);

    return (struct logistic){x < 0 ? small : large, x < 0 ? large : small,
                             log1p((double)e)};
}

/* What more the positive part of class i counts. */
static float positive(const struct ddp__task *t, size_t i)
{
    const float *weight = t->data[DDP__LOSS_WEIGHT];

    return t->call->loss.positives ? weight[(size_t)t->call->cap + 1 + i] - 1
                                   : 0;
}

/* -q log p - (1 - q) log(1 - p) */
static double binary(float x, float q, const struct logistic *l)
{
    return (x > 0 ? (double)x : 0) - (double)x * q + l->log;
}

/* The mean of it over the classes, each for itself; gradient: p - q. */
static double binary_entropy(const struct ddp__task *t, const struct row *r)
{
    float threshold = t->call->loss.threshold;
    float factor = r->weight / (float)r->len;
    double sum = 0;

    for (size_t i = 0; i < r->len; i++) {
        struct logistic l = logistic(r->x[i]);
        float q = share(t, r, i), more;

        if (threshold > 0)
            q = q > threshold;
        more = positive(t, i) * q;
        sum += binary(r->x[i], q, &l) + (double)more * binary(r->x[i], 1, &l);
        r->e[i] = factor * (l.p - q - more * l.rest);
    }
    if (r->dx)
        store_row(r->dx, r->e, 1, 0, r->len, ddp__is_bf16(t, DDP__LOSS_DX));
    return sum / (double)r->len;
}

/* a m^gamma times the binary cross entropy, where m = p (1 - q) + (1 - p) q is
 * how far p is off. */
static double focal(const struct ddp__task *t, const struct row *r)
{
    float gamma = t->call->loss.gamma, alpha = t->call->loss.alpha;
    float factor = r->weight / (float)r->len;
    double sum = 0;

    for (size_t i = 0; i < r->len; i++) {
        struct logistic l = logistic(r->x[i]);
        float q = share(t, r, i), m = l.p * (1 - q) + l.rest * q;
        float a = alpha < 0 ? 1 : alpha * q + (1 - alpha) * (1 - q);
        float power = powf(m, gamma);
        double entropy = binary(r->x[i], q, &l);
        float slope = l.p * l.rest * (1 - 2 * q); /* of m */
        float more = m > 0 ? gamma * power / m * slope : 0;

        sum += (double)(a * power) * entropy;
        r->e[i] = factor * a * (power * (l.p - q) + more * (float)entropy);
    }
    if (r->dx)
        store_row(r->dx, r->e, 1, 0, r->len, ddp__is_bf16(t, DDP__LOSS_DX));
    return sum / (double)r->len;
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

/* Set the label to the class with the largest share, of equals that with the
 * largest logit, and then the first; false: none has one. */
static bool find_main_class(struct row *r)
{
    float most = 0;

    for (size_t i = 0; i < r->len; i++)
        if (r->target[i] > most ||
            (most > 0 && r->target[i] == most && r->x[i] > r->x[r->label])) {
            most = r->target[i];
            r->label = i;
        }
    return most > 0;
}

static int loss_of_sample(const struct ddp__task *t, struct row *r, size_t n,
                          double *stats)
{
    bool classes =
        ddp__loss_info(t->call->loss.kind)->target == DDP__TARGET_CLASS;
    float aux = t->call->loss.aux;

    r->weight = ((const float *)t->data[DDP__LOSS_WEIGHT])[n];
    r->weight *= (aux > 0 ? aux : 1) * (1 - t->call->loss.taught);
    if (t->call->buf[DDP__LOSS_TARGET].type == DDP_I32)
        return loss_of_class(t, r, n, stats);
    r->target = (const float *)t->data[DDP__LOSS_TARGET] + n * r->len;
    stats[DDP__STAT_LOSS] += r->weight * apply_rule(t, r);
    if (classes && !(aux > 0) && find_main_class(r))
        count_top(r, stats);
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
