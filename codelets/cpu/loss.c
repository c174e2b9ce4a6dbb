/* loss.c - losses and the counts of right answers, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sample's values are taken to f32 first.
 */
#include "config.h"

#include "backend.h"
#include "base/error.h"
#include "cpu.h"
#include "loss_rules.h"
#include "thread.h"

DDP__INLINE void load_floats(const void *restrict from, float *restrict x,
                             size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        x[i] = ddp__load(from, i, b);
}

DDP__CLONES static void load_row(const void *from, float *x, size_t len, bool b)
{
    if (b)
        load_floats(from, x, len, true);
    else
        load_floats(from, x, len, false);
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

static void count_top(const struct ddp__loss_row *r, double *stats)
{
    size_t rank = rank_of(r->x, r->len, r->label);

    stats[DDP__STAT_TOP1] += rank < 1;
    stats[DDP__STAT_TOP5] += rank < 5;
    stats[DDP__STAT_TOP10] += rank < 10;
}

/* Sample n of a loss of classes. */
static int loss_of_class(const struct ddp__task *t, struct ddp__loss_row *r,
                         size_t n, double *stats)
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
    stats[DDP__STAT_LOSS] += r->weight * ddp__loss_rule(t, r);
    if (!(t->call->loss.aux > 0))
        count_top(r, stats);
    return 0;
}

/* Set the label to the class with the largest share, of equals that with the
 * largest logit, and then the first; false: none has one. */
static bool find_main_class(struct ddp__loss_row *r)
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

static int loss_of_sample(const struct ddp__task *t, struct ddp__loss_row *r,
                          size_t n, double *stats)
{
    bool classes =
        ddp__loss_info(t->call->loss.kind)->target == DDP__TARGET_CLASS;
    float aux = t->call->loss.aux;

    r->weight = ((const float *)t->data[DDP__LOSS_WEIGHT])[n];
    r->weight *= (aux > 0 ? aux : 1) * (1 - t->call->loss.taught);
    if (t->call->buf[DDP__LOSS_TARGET].type == DDP_I32)
        return loss_of_class(t, r, n, stats);
    r->target = (const float *)t->data[DDP__LOSS_TARGET] + n * r->len;
    stats[DDP__STAT_LOSS] += r->weight * ddp__loss_rule(t, r);
    if (classes && !(aux > 0) && find_main_class(r))
        count_top(r, stats);
    return 0;
}

/* Sample by sample, so that a row in f32 and its exponentials remain in the
 * cache; sums are kept here and added to the lane's at the end. */
int ddp__cpu_loss(const struct ddp__task *t)
{
    size_t len = ddp__len(t, DDP__LOSS_X) / (size_t)t->n;
    struct ddp__loss_row r = {.x = ddp__scratch(2 * len * sizeof(float)),
                              .len = len};
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
