/* losses.h - losses, their gradients and the counts of right answers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block has a sample; its loss and rank are added up by another kernel.
 */
#ifndef DDP_LOSSES_H
#define DDP_LOSSES_H

#include "arith.h"
#include "ops_loss.h"

struct ddp__k_loss_rows_shared {
    float largest[DDP__THREADS], logit[DDP__THREADS];
    double sum[DDP__THREADS], rest[DDP__THREADS], total[DDP__THREADS];
    int rank[DDP__THREADS], label[DDP__THREADS];
};

/* A sample: where its values begin, and its label; -1: it has none. */
struct ddp__k_row {
    size_t n, begin;
    int label;
    float mine; /* the logit of the label */
};

DDP__DEVICE float ddp__k_value(const struct ddp__k_loss *p,
                               const struct ddp__k_row *r, size_t i,
                               enum ddp_dtype type)
{
    return ddp__k_get(type, p->x, r->begin + i);
}

/* The share q of class i: that of the sample, smoothed. */
DDP__DEVICE float ddp__k_share(const struct ddp__k_loss *p,
                               const struct ddp__k_row *r, size_t i)
{
    float s = p->smoothing;
    float own =
        p->shares ? p->target[r->begin + i] : (float)(i == (size_t)r->label);

    return s / (float)p->len + (1 - s) * own;
}

/* Whether the label takes part: evaluation leaves out those it has none for.
 * One that is no class makes the loss NaN, which ends the step. */
DDP__DEVICE bool ddp__k_has_label(const struct ddp__k_loss *p,
                                  const struct ddp__k_row *r)
{
    return r->label >= 0 && (size_t)r->label < p->len;
}

/* The largest of all: half by half. */
DDP__DEVICE void ddp__k_largest(const struct ddp__k_loss *p,
                                const struct ddp__k_row *r,
                                struct ddp__k_loss_rows_shared *sh,
                                enum ddp_dtype type)
{
    DDP__EACH(t, DDP__THREADS)
    {
        float v = -INFINITY;

        for (size_t i = t; i < p->len; i += DDP__THREADS) {
            float x = ddp__k_value(p, r, i, type);

            v = x > v ? x : v;
        }
        sh->largest[t] = v;
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            float other = sh->largest[t + half];

            sh->largest[t] = other > sh->largest[t] ? other : sh->largest[t];
        }
}

/* Whether a class of a share and a logit comes before the one at t. */
DDP__DEVICE bool ddp__k_leads(const struct ddp__k_loss_rows_shared *sh,
                              unsigned t, float share, float logit, int label)
{
    if (share != sh->largest[t] || label < 0 || sh->label[t] < 0)
        return share > sh->largest[t];
    return logit > sh->logit[t] ||
           (logit == sh->logit[t] && label < sh->label[t]);
}

/* The class with the largest share, of equals that with the largest logit, and
 * then the first; none has one: -1. */
DDP__DEVICE void ddp__k_main_class(const struct ddp__k_loss *p,
                                   struct ddp__k_row *r,
                                   struct ddp__k_loss_rows_shared *sh,
                                   enum ddp_dtype type)
{
    DDP__EACH(t, DDP__THREADS)
    {
        sh->largest[t] = 0;
        sh->label[t] = -1;
        for (size_t i = t; i < p->len; i += DDP__THREADS) {
            float share = p->target[r->begin + i];
            float logit = ddp__k_value(p, r, i, type);

            if (ddp__k_leads(sh, t, share, logit, (int)i)) {
                sh->largest[t] = share;
                sh->logit[t] = logit;
                sh->label[t] = (int)i;
            }
        }
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            float share = sh->largest[t + half], logit = sh->logit[t + half];
            int label = sh->label[t + half];

            if (ddp__k_leads(sh, t, share, logit, label)) {
                sh->largest[t] = share;
                sh->logit[t] = logit;
                sh->label[t] = label;
            }
        }
    r->label = sh->label[0];
}

/* Whether class i beats the label: of equals the lower one, and one that is not
 * a number. */
DDP__DEVICE int ddp__k_beats(const struct ddp__k_row *r, size_t i, float x)
{
    if (i == (size_t)r->label)
        return 0;
    return i < (size_t)r->label ? !(x < r->mine) : !(x <= r->mine);
}

/* sum = sum of exp(x - largest), rank = how many classes beat the label; of a
 * label, rest = sum of x; of shares q, rest = sum of q x, total = sum of q. */
DDP__DEVICE void ddp__k_class_sums(const struct ddp__k_loss *p,
                                   const struct ddp__k_row *r,
                                   struct ddp__k_loss_rows_shared *sh,
                                   enum ddp_dtype type)
{
    DDP__EACH(t, DDP__THREADS)
    {
        double sum = 0, rest = 0, total = 0;
        int rank = 0;

        for (size_t i = t; i < p->len; i += DDP__THREADS) {
            float x = ddp__k_value(p, r, i, type);
            float q = p->shares ? ddp__k_share(p, r, i) : 1;

            sum += expf(x - sh->largest[0]);
            rest += (double)q * x;
            total += q;
            rank += ddp__k_beats(r, i, x);
        }
        sh->sum[t] = sum;
        sh->rest[t] = rest;
        sh->total[t] = total;
        sh->rank[t] = rank;
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            sh->sum[t] += sh->sum[t + half];
            sh->rest[t] += sh->rest[t + half];
            sh->total[t] += sh->total[t + half];
            sh->rank[t] += sh->rank[t + half];
        }
}

/* -sum of q log softmax(x); of a label, q = (1 - s) [i = label] + s / len */
DDP__DEVICE double ddp__k_entropy(const struct ddp__k_loss *p,
                                  const struct ddp__k_row *r,
                                  const struct ddp__k_loss_rows_shared *sh)
{
    double s = p->smoothing, share = s / (double)p->len;
    double log_sum = sh->largest[0] + log(sh->sum[0]);
    double loss = (1 - s) * (log_sum - r->mine);

    if (p->shares)
        return sh->total[0] * log_sum - sh->rest[0];
    return s != 0 ? loss + share * ((double)p->len * log_sum - sh->rest[0])
                  : loss;
}

/* What the loss of sample n is times; its gradient is so by the scale too. */
DDP__DEVICE float ddp__k_loss_weight(const struct ddp__k_loss *p, size_t n)
{
    return p->weight[n] * ((p->aux > 0 ? p->aux : 1) * (1 - p->taught));
}

DDP__DEVICE float ddp__k_gradient_weight(const struct ddp__k_loss *p, size_t n)
{
    return (float)(ddp__k_loss_weight(p, n) * (p->scale ? *p->scale : 1));
}

/* Gradient: softmax(x) sum of q - q */
DDP__DEVICE void ddp__k_class_gradient(const struct ddp__k_loss *p,
                                       const struct ddp__k_row *r,
                                       struct ddp__k_loss_rows_shared *sh,
                                       enum ddp_dtype type)
{
    float weight = ddp__k_gradient_weight(p, r->n), s = p->smoothing;
    float share = s / (float)p->len;

    DDP__EACH(t, DDP__THREADS)
    {
        float inverse = (float)((p->shares ? sh->total[0] : 1) / sh->sum[0]);

        for (size_t i = t; i < p->len; i += DDP__THREADS) {
            float x = ddp__k_value(p, r, i, type);
            float e = expf(x - sh->largest[0]) * inverse;

            e -= p->shares ? ddp__k_share(p, r, i) : share;
            if (!p->shares && i == (size_t)r->label)
                e -= 1 - s;
            ddp__k_put(p->type_dx, p->dx, r->begin + i, weight * e);
        }
    }
}

DDP__DEVICE void ddp__k_no_gradient(const struct ddp__k_loss *p,
                                    const struct ddp__k_row *r)
{
    DDP__EACH(t, DDP__THREADS)
    {
        for (size_t i = t; i < p->len; i += DDP__THREADS)
            ddp__k_put(p->type_dx, p->dx, r->begin + i, 0);
    }
}

DDP__DEVICE void ddp__k_keep_loss(const struct ddp__k_loss *p, size_t n,
                                  double loss, int rank)
{
    DDP__EACH(t, 1)
    {
        p->loss[n + t] = loss;
        p->rank[n + t] = rank;
    }
}

/* Of the label, among the classes; of none, beyond all that is counted. */
DDP__DEVICE int ddp__k_rank(const struct ddp__k_row *r,
                            const struct ddp__k_loss_rows_shared *sh)
{
    return r->label < 0 ? 1 << 20 : sh->rank[0];
}

/* Three times b in, of which two from the cache, b out. */
DDP__DEVICE void ddp__k_cross_entropy(const struct ddp__k_loss *p,
                                      struct ddp__k_row *r,
                                      struct ddp__k_loss_rows_shared *sh,
                                      enum ddp_dtype type)
{
    ddp__k_largest(p, r, sh, type);
    ddp__k_class_sums(p, r, sh, type);
    ddp__k_keep_loss(p, r->n,
                     ddp__k_loss_weight(p, r->n) * ddp__k_entropy(p, r, sh),
                     ddp__k_rank(r, sh));
    if (p->dx)
        ddp__k_class_gradient(p, r, sh, type);
}

/* What the binary losses need of a logit: its sigmoid p, 1 - p, and the binary
 * cross entropy, -q log p - (1 - q) log(1 - p). */
struct ddp__k_logistic {
    float p, rest, entropy;
};

DDP__DEVICE struct ddp__k_logistic ddp__k_logistic(float x, float q)
{
    float e = expf(-fabsf(x));
    float large = 1 / (1 + e), small = e / (1 + e);
    struct ddp__k_logistic l = {x < 0 ? small : large, x < 0 ? large : small,
                                (x > 0 ? x : 0) - x * q + log1pf(e)};

    return l;
}

/* The loss of class i by its logit; *dx: its gradient. */
DDP__DEVICE float ddp__k_one_binary(const struct ddp__k_loss *p, size_t i,
                                    float x, float q, float *dx)
{
    float more;

    struct ddp__k_logistic l;

    if (p->threshold > 0)
        q = q > p->threshold ? 1 : 0;
    l = ddp__k_logistic(x, q);
    *dx = l.p - q;
    if (!p->positive)
        return l.entropy;
    more = (p->positive[i] - 1) * q;
    *dx -= more * l.rest;
    return l.entropy + more * ddp__k_logistic(x, 1).entropy;
}

/* a m^gamma times the binary cross entropy, where m = p (1 - q) + (1 - p) q is
 * how far p is off. */
DDP__DEVICE float ddp__k_one_focal(const struct ddp__k_loss *p, float x,
                                   float q, float *dx)
{
    struct ddp__k_logistic l = ddp__k_logistic(x, q);
    float m = l.p * (1 - q) + l.rest * q, power = powf(m, p->gamma);
    float a = p->alpha < 0 ? 1 : p->alpha * q + (1 - p->alpha) * (1 - q);
    float slope = l.p * l.rest * (1 - 2 * q); /* of m */
    float more = m > 0 ? p->gamma * power / m * slope : 0;

    *dx = a * (power * (l.p - q) + more * l.entropy);
    return a * power * l.entropy;
}

/* What a thread adds to the sums of a loss that has one for each class. */
DDP__DEVICE void ddp__k_add_binary(const struct ddp__k_loss *p,
                                   const struct ddp__k_row *r,
                                   struct ddp__k_loss_rows_shared *sh,
                                   unsigned t, enum ddp_dtype type)
{
    float factor = ddp__k_gradient_weight(p, r->n) / (float)p->len;

    sh->sum[t] = 0;
    sh->rank[t] = 0;
    for (size_t i = t; i < p->len; i += DDP__THREADS) {
        float x = ddp__k_value(p, r, i, type), q = ddp__k_share(p, r, i), dx;

        sh->sum[t] += p->kind == DDP_FOCAL ? ddp__k_one_focal(p, x, q, &dx)
                                           : ddp__k_one_binary(p, i, x, q, &dx);
        sh->rank[t] += ddp__k_beats(r, i, x);
        if (p->dx)
            ddp__k_put(p->type_dx, p->dx, r->begin + i, factor * dx);
    }
}

/* Their mean over the classes, each for itself.  b and 4 in, b out. */
DDP__DEVICE void ddp__k_binary_entropy(const struct ddp__k_loss *p,
                                       struct ddp__k_row *r,
                                       struct ddp__k_loss_rows_shared *sh,
                                       enum ddp_dtype type)
{
    DDP__EACH(t, DDP__THREADS)
    {
        ddp__k_add_binary(p, r, sh, t, type);
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            sh->sum[t] += sh->sum[t + half];
            sh->rank[t] += sh->rank[t + half];
        }
    ddp__k_keep_loss(p, r->n,
                     ddp__k_loss_weight(p, r->n) * sh->sum[0] / (double)p->len,
                     ddp__k_rank(r, sh));
}

DDP__DEVICE void ddp__k_focal(const struct ddp__k_loss *p, struct ddp__k_row *r,
                              struct ddp__k_loss_rows_shared *sh,
                              enum ddp_dtype type)
{
    ddp__k_binary_entropy(p, r, sh, type);
}

/* The mean over a sample's values of (x - target)^2.  b and 4 in, b out. */
DDP__DEVICE void ddp__k_squared_error(const struct ddp__k_loss *p,
                                      struct ddp__k_row *r,
                                      struct ddp__k_loss_rows_shared *sh,
                                      enum ddp_dtype type)
{
    float weight = ddp__k_loss_weight(p, r->n);
    float factor = ddp__k_gradient_weight(p, r->n) * 2 / (float)p->len;

    DDP__EACH(t, DDP__THREADS)
    {
        sh->sum[t] = 0;
        for (size_t i = t; i < p->len; i += DDP__THREADS) {
            float d = ddp__k_value(p, r, i, type) - p->target[r->begin + i];

            sh->sum[t] += (double)d * d;
            if (p->dx)
                ddp__k_put(p->type_dx, p->dx, r->begin + i, factor * d);
        }
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            sh->sum[t] += sh->sum[t + half];
        }
    ddp__k_keep_loss(p, r->n, weight * (sh->sum[0] / (double)p->len), 1 << 20);
}

DDP__DEVICE void ddp__k_apply_loss(const struct ddp__k_loss *p,
                                   struct ddp__k_row *r,
                                   struct ddp__k_loss_rows_shared *sh,
                                   enum ddp_dtype type)
{
    switch (p->kind) {
#define X(id, name, rule, target)                                              \
    case DDP_##id:                                                             \
        ddp__k_##rule(p, r, sh, type);                                         \
        break;
        DDP__LOSSES(X)
#undef X
    case DDP_CUSTOM_LOSS:
        break; /* ddp__cuda_kernels_prepare() refuses it */
    }
}

DDP__DEVICE void ddp__k_loss_rows_block(const struct ddp__k_loss *p,
                                        struct ddp__k_loss_rows_shared *sh,
                                        unsigned block, enum ddp_dtype type)
{
    struct ddp__k_row r = {block, block * p->len, 0, NAN};

    if (p->shares)
        ddp__k_main_class(p, &r, sh, type);
    else if (p->classes)
        r.label = p->label[r.n];
    if (p->classes && ddp__k_has_label(p, &r))
        r.mine = ddp__k_value(p, &r, (size_t)r.label, type);
    if (!p->classes || p->shares || ddp__k_has_label(p, &r)) {
        ddp__k_apply_loss(p, &r, sh, type);
        return;
    }
    ddp__k_keep_loss(p, r.n, r.label == -1 && !p->dx ? 0 : NAN, 1 << 20);
    if (p->dx)
        ddp__k_no_gradient(p, &r);
}

struct ddp__k_loss_sum_shared {
    double loss[DDP__THREADS];
    int top1[DDP__THREADS], top5[DDP__THREADS], top10[DDP__THREADS];
};

/* What the samples of a thread add to the counts. */
DDP__DEVICE void ddp__k_count_samples(const struct ddp__k_loss *p,
                                      struct ddp__k_loss_sum_shared *sh,
                                      unsigned t)
{
    sh->loss[t] = 0;
    sh->top1[t] = sh->top5[t] = sh->top10[t] = 0;
    for (unsigned n = t; n < (unsigned)p->n; n += DDP__THREADS) {
        sh->loss[t] += p->loss[n];
        sh->top1[t] += p->rank[n] < 1;
        sh->top5[t] += p->rank[n] < 5;
        sh->top10[t] += p->rank[n] < 10;
    }
}

/* The statistics of a sub-batch, in the order of enum ddp__stat. */
DDP__DEVICE void ddp__k_loss_sum_block(const struct ddp__k_loss *p,
                                       struct ddp__k_loss_sum_shared *sh,
                                       unsigned block)
{
    (void)block;
    DDP__EACH(t, DDP__THREADS)
    {
        ddp__k_count_samples(p, sh, t);
    }
    for (unsigned half = DDP__THREADS / 2; half > 0; half /= 2)
        DDP__EACH(t, half)
        {
            sh->loss[t] += sh->loss[t + half];
            sh->top1[t] += sh->top1[t + half];
            sh->top5[t] += sh->top5[t + half];
            sh->top10[t] += sh->top10[t + half];
        }
    DDP__EACH(t, 1)
    {
        double v[] = {sh->loss[t],
                      p->weight[p->cap],
                      (double)p->n,
                      (double)sh->top1[t],
                      (double)sh->top5[t],
                      (double)sh->top10[t],
                      0};

        for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
            /* An auxiliary loss counts nothing but itself. */
            double one = i > 0 && p->aux > 0 ? 0 : v[i];

            p->stats[i] = p->add ? p->stats[i] + one : one;
        }
    }
}

#endif
