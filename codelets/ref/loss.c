/* loss.c - losses, their gradients and the counts of right answers, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * weight holds one factor per sample, and in element [cap] what this sub-batch
 * adds to the divisor of the step.  Gradients are not divided by anything.  An
 * auxiliary loss counts nothing but itself, times its factor.
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include "backend.h"
#include "base/error.h"
#include "ref.h"

/* One sample: its logits or outputs, and what the loss compares them with. */
struct row {
    struct ddp__ref_buf x;
    size_t begin;
    int len;
    double weight;
    int label;           /* of a loss of classes */
    const float *target; /* of a loss of values, or the share of each class;
                            NULL: the label has all of it */
};

static double factor(const struct ddp__task *t)
{
    double aux = t->call->loss.aux;

    return (aux > 0 ? aux : 1) * (1 - (double)t->call->loss.taught);
}

static double value(const struct row *r, int i)
{
    return ddp__ref_read(&r->x, r->begin + (size_t)i);
}

/* Element i of the gradient, where one is wanted. */
static void set_gradient(const struct ddp__task *t, const struct row *r, int i,
                         double d)
{
    const double *scale = t->data[DDP__LOSS_SCALE];

    if (t->data[DDP__LOSS_DX])
        ddp__ref_set(t->call->buf[DDP__LOSS_DX].type, t->data[DDP__LOSS_DX],
                     r->begin + (size_t)i,
                     factor(t) * (scale ? *scale : 1) * d);
}

/* How many classes beat the label; one that is not a number beats it. */
static int rank_of(const struct row *r, int label)
{
    double mine = value(r, label);
    int rank = 0;

    for (int i = 0; i < r->len; i++) {
        double other = value(r, i);

        if (i != label && (!(other <= mine) || (other == mine && i < label)))
            rank++;
    }
    return rank;
}

static void count_top(double stats[DDP__STATS], int rank)
{
    stats[DDP__STAT_TOP1] += rank < 1;
    stats[DDP__STAT_TOP5] += rank < 5;
    stats[DDP__STAT_TOP10] += rank < 10;
}

/* log(sum of exp(x)), without overflow: the largest is taken out */
static double log_sum_exp(const struct row *r)
{
    int largest = 0;
    double rest = 0;

    for (int i = 1; i < r->len; i++)
        if (value(r, i) > value(r, largest))
            largest = i;
    for (int i = 0; i < r->len; i++)
        if (i != largest)
            rest += exp(value(r, i) - value(r, largest));
    return value(r, largest) + log1p(rest);
}

/* ---- rules: the loss of a sample, and its gradient ----------------------- */

/* The share q of class i: that of the sample, smoothed. */
static double share(const struct ddp__task *t, const struct row *r, int i)
{
    double s = t->call->loss.smoothing;
    double own = r->target ? r->target[i] : i == r->label;

    return s / r->len + (1 - s) * own;
}

/* -sum over i of q[i] log softmax(x)[i]; gradient: softmax(x) sum of q - q */
static double cross_entropy(const struct ddp__task *t, const struct row *r)
{
    double log_sum = log_sum_exp(r), loss = 0, sum = 0;

    for (int i = 0; i < r->len; i++)
        sum += share(t, r, i);
    for (int i = 0; i < r->len; i++) {
        double q = share(t, r, i);
        double log_p = value(r, i) - log_sum;

        if (q != 0)
            loss -= q * log_p;
        set_gradient(t, r, i, r->weight * (exp(log_p) * sum - q));
    }
    return loss;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* -q log p - (1 - q) log(1 - p), p = sigmoid(x), without overflow */
static double binary(double x, double q)
{
    return fmax(x, 0) - x * q + log1p(exp(-fabs(x)));
}

/* What more the positive part of class i counts. */
static double positive(const struct ddp__task *t, int i)
{
    const float *weight = t->data[DDP__LOSS_WEIGHT];

    return t->call->loss.positives ? weight[t->call->cap + 1 + i] - 1.0 : 0;
}

/* The mean of it over the classes, each for itself; gradient: p - q.  Where the
 * positive part counts w, (w - 1) q times -log p more. */
static double binary_entropy(const struct ddp__task *t, const struct row *r)
{
    double threshold = t->call->loss.threshold, loss = 0;

    for (int i = 0; i < r->len; i++) {
        double x = value(r, i), q = share(t, r, i);

        if (threshold > 0)
            q = q > threshold;
        loss += binary(x, q) + positive(t, i) * q * binary(x, 1);
        set_gradient(t, r, i,
                     r->weight *
                         (sigmoid(x) - q - positive(t, i) * q * sigmoid(-x)) /
                         r->len);
    }
    return loss / r->len;
}

/* Source: torchvision.ops.sigmoid_focal_loss.  a m^gamma times the binary
 * cross entropy, where m = p (1 - q) + (1 - p) q is how far p is off. */
static double focal(const struct ddp__task *t, const struct row *r)
{
    double gamma = t->call->loss.gamma, alpha = t->call->loss.alpha, loss = 0;

    for (int i = 0; i < r->len; i++) {
        double x = value(r, i), q = share(t, r, i), p = sigmoid(x);
        double m = p * (1 - q) + sigmoid(-x) * q, entropy = binary(x, q);
        double slope = p * sigmoid(-x) * (1 - 2 * q); /* of m */
        double a = alpha < 0 ? 1 : alpha * q + (1 - alpha) * (1 - q);
        double more = m > 0 ? gamma * pow(m, gamma - 1) * slope : 0;

        loss += a * pow(m, gamma) * entropy;
        set_gradient(t, r, i,
                     r->weight * a *
                         (pow(m, gamma) * (p - q) + more * entropy) / r->len);
    }
    return loss / r->len;
}

/* The mean over a sample's values of (x - target)^2 */
static double squared_error(const struct ddp__task *t, const struct row *r)
{
    double loss = 0;

    for (int i = 0; i < r->len; i++) {
        double d = value(r, i) - r->target[i];

        loss += d * d;
        set_gradient(t, r, i, r->weight * 2 * d / r->len);
    }
    return loss / r->len;
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
        break; /* custom_loss() */
    }
    return NAN;
}

/* ---- kernels ------------------------------------------------------------ */

/* The class with the largest share, of equals that with the largest logit, and
 * then the first; none has one: -1. */
static int main_class(const struct row *r)
{
    int best = -1;

    for (int i = 0; i < r->len; i++) {
        float most = best < 0 ? 0 : r->target[best];

        if (r->target[i] > most ||
            (best >= 0 && r->target[i] == most && value(r, i) > value(r, best)))
            best = i;
    }
    return best;
}

static int loss_of_shares(const struct ddp__task *t, struct row r,
                          double stats[DDP__STATS])
{
    const float *weight = t->data[DDP__LOSS_WEIGHT];

    r.target = t->data[DDP__LOSS_TARGET];
    for (int n = 0; n < t->n; n++) {
        r.weight = weight[n];
        stats[DDP__STAT_LOSS] += r.weight * apply_rule(t, &r);
        if ((r.label = main_class(&r)) >= 0)
            count_top(stats, rank_of(&r, r.label));
        r.begin += (size_t)r.len;
        r.target += r.len;
    }
    return 0;
}

static int loss_of_classes(const struct ddp__task *t, struct row r,
                           double stats[DDP__STATS])
{
    const int32_t *label = t->data[DDP__LOSS_TARGET];
    const float *weight = t->data[DDP__LOSS_WEIGHT];

    for (int n = 0; n < t->n; n++, r.begin += (size_t)r.len) {
        if (label[n] == DDP__NO_LABEL && !t->data[DDP__LOSS_DX])
            continue;
        if (label[n] < 0 || label[n] >= r.len)
            return ddp__fail(DDP_EDATA,
                             "sample %d of a sub-batch has label %d, "
                             "but the network has %d outputs",
                             n, label[n], r.len);
        r.label = label[n];
        r.weight = weight[n];
        stats[DDP__STAT_LOSS] += r.weight * apply_rule(t, &r);
        count_top(stats, rank_of(&r, r.label));
    }
    return 0;
}

static int loss_of_values(const struct ddp__task *t, struct row r,
                          double stats[DDP__STATS])
{
    const float *weight = t->data[DDP__LOSS_WEIGHT];

    r.target = t->data[DDP__LOSS_TARGET];
    for (int n = 0; n < t->n; n++) {
        r.weight = weight[n];
        stats[DDP__STAT_LOSS] += r.weight * apply_rule(t, &r);
        r.begin += (size_t)r.len;
        r.target += r.len;
    }
    return 0;
}

/* The program's function sees f32 for activations of any type. */
static int custom_loss(const struct ddp__task *t, struct row r,
                       double stats[DDP__STATS])
{
    const struct ddp__loss *l = &t->call->loss;
    bool want_dx = t->data[DDP__LOSS_DX] != NULL;
    size_t len = ddp__len(t, DDP__LOSS_X);
    float *x = calloc(2 * len, sizeof(*x)), *dx;

    if (!x)
        return ddp__fail(DDP_ENOMEM, "out of memory for the loss of %d samples",
                         t->n);
    dx = x + len;
    for (size_t i = 0; i < len; i++)
        x[i] = ddp__ref_read(&r.x, i);
    stats[DDP__STAT_LOSS] +=
        l->fn(x, t->data[DDP__LOSS_TARGET], t->data[DDP__LOSS_WEIGHT], t->n,
              r.len, want_dx ? dx : NULL, l->arg);
    for (size_t i = 0; i < len && want_dx; i++)
        set_gradient(t, &r, (int)i, dx[i]);
    free(x);
    return 0;
}

/* An auxiliary loss contributes to the loss alone: samples, divisor and
 * right answers are counted by the chain's loss. */
int ddp__ref_loss(const struct ddp__task *t)
{
    struct row r = {.x = ddp__ref_buf(t, DDP__LOSS_X),
                    .len = (int)ddp__ref_sample_len(t, DDP__LOSS_X)};
    const float *weight = t->data[DDP__LOSS_WEIGHT];
    double stats[DDP__STATS] = {
        [DDP__STAT_DIVISOR] = weight[t->call->cap], [DDP__STAT_COUNT] = t->n};
    double *out = t->data[DDP__LOSS_STATS];
    int rc = 0;

    switch (ddp__loss_info(t->call->loss.kind)->target) {
    case DDP__TARGET_CLASS:
        rc = t->call->buf[DDP__LOSS_TARGET].type == DDP_I32
                 ? loss_of_classes(t, r, stats)
                 : loss_of_shares(t, r, stats);
        break;
    case DDP__TARGET_VALUES:
        rc = loss_of_values(t, r, stats);
        break;
    case DDP__TARGET_ANY:
        rc = custom_loss(t, r, stats);
        break;
    }
    stats[DDP__STAT_LOSS] *= factor(t);
    for (int i = 0; i < DDP__STATS && t->call->loss.aux > 0; i++)
        stats[i] *= i == DDP__STAT_LOSS;
    for (int i = 0; i < DDP__STATS && rc == 0; i++)
        out[i] = t->accumulate ? out[i] + stats[i] : stats[i];
    return rc;
}
