/* loss_rules.c - the loss of a sample and its gradient, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * e and sums of e are made per sample, so the result does not depend on its
 * neighbours.
 */
#include "config.h"

#include <math.h>

#include "cpu/vector/vmath.h"
#include "loss_rules.h"

/* dx = factor e + shift */
DDP__INLINE void store_gradient(void *restrict dx, const float *restrict e,
                                float factor, float shift, size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        ddp__store(dx, i, e[i] * factor + shift, b);
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

/* ---- classes, of which one is right ------------------------------------- */

/* dx = (weight / sum) e - shift, and for the label 1 - s times weight less */
static void class_gradient(const struct ddp__task *t,
                           const struct ddp__loss_row *r, double sum,
                           double share)
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

DDP__CLONES static struct sums sum_shares(const struct ddp__loss_row *r,
                                          double s)
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
DDP__CLONES static void make_share_gradient(const struct ddp__loss_row *r,
                                            double s, double factor)
{
    float own = (float)(1 - s), rest = (float)(s / (double)r->len);
    float times = (float)(r->weight * factor);

    for (size_t i = 0; i < r->len; i++)
        r->e[i] = r->e[i] * times - r->weight * (own * r->target[i] + rest);
}

static double entropy_of_shares(const struct ddp__task *t,
                                const struct ddp__loss_row *r, double log_sum,
                                double sum)
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
static double cross_entropy(const struct ddp__task *t,
                            const struct ddp__loss_row *r)
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

/* ---- classes, each for itself ------------------------------------------- */

/* The share q of class i: that of the sample, smoothed. */
static float share(const struct ddp__task *t, const struct ddp__loss_row *r,
                   size_t i)
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
static double binary_entropy(const struct ddp__task *t,
                             const struct ddp__loss_row *r)
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
static double focal(const struct ddp__task *t, const struct ddp__loss_row *r)
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

/* ---- values ------------------------------------------------------------- */

/* The mean of (x - target)^2; its gradient goes through r->e. */
static double squared_error(const struct ddp__task *t,
                            const struct ddp__loss_row *r)
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

/* ---- the one of a task -------------------------------------------------- */

double ddp__loss_rule(const struct ddp__task *t, const struct ddp__loss_row *r)
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
