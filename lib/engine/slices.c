/* slices.c - a step that ranks decide on by their slices of the sums
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The norm of the gradients has to have the same bits on any number of ranks,
 * so it is not made of the slices, but of whole buckets when these are there.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/loss_scaler.h"
#include "engine/parts.h"
#include "engine/slices.h"
#include "engine/update.h"
#include "engine/vector.h"
#include "runtime/devices.h"

/* ---- making ------------------------------------------------------------- */

static int bucket_parts(const struct ddp__engine *e, int b)
{
    return ddp__parts_count(e->params->bucket[b].len, e->ranks);
}

/* What of a span is in this rank's slices of the bucket. */
static int cut_span(const struct ddp__engine *e, int b,
                    const struct ddp__span *whole, struct ddp__span *out)
{
    size_t end = whole->begin + whole->len;
    int n = 0;

    for (int i = 0; i < bucket_parts(e, b); i++) {
        size_t from, to;

        ddp__parts_slice(e->params->bucket[b].len, e->ranks,
                         e->ddp->net.wire.rank, i, &from, &to);
        from = from > whole->begin ? from : whole->begin;
        to = to < end ? to : end;
        if (from >= to)
            continue;
        out[n] = *whole;
        out[n].begin = from;
        out[n++].len = to - from;
    }
    return n;
}

/* SQNORM of these spans, divided by 1. */
static int make_check(struct ddp__engine *e, int b, struct ddp__span *span)
{
    const struct ddp__call *whole = &e->sqnorm[b];
    struct ddp__slice *slice = &e->slices->slice[b];
    struct ddp__call *c = &slice->check;

    *c = (struct ddp__call){.op = whole->op,
                            .cap = whole->cap,
                            .buffers = whole->buffers,
                            .optim = whole->optim};
    for (int i = 0; i < c->buffers; i++)
        c->buf[i] = whole->buf[i];
    c->optim.span = span;
    c->optim.spans = 0;
    for (int i = 0; i < whole->optim.spans; i++)
        c->optim.spans +=
            cut_span(e, b, &whole->optim.span[i], span + c->optim.spans);
    if (c->optim.spans)
        ddp__handle_register(&slice->found, slice->memory,
                             sizeof(slice->memory));
    return ddp__call_prepare(e->ddp, c);
}

/* A part's slice may end within a span, and one end within it. */
static size_t most_spans(const struct ddp__engine *e, int b)
{
    return (size_t)(e->sqnorm[b].optim.spans * bucket_parts(e, b));
}

static int make_checks(struct ddp__engine *e)
{
    struct ddp__slices *y = e->slices;
    struct ddp__span *span;
    size_t most = 1;
    int rc = 0;

    for (int b = 0; b < e->params->buckets; b++)
        most += most_spans(e, b);
    y->slice = calloc((size_t)e->params->buckets + 1, sizeof(*y->slice));
    y->span = span = calloc(most, sizeof(*y->span));
    if (!y->slice || !y->span)
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    for (int b = 0; b < e->params->buckets && rc == 0; b++) {
        rc = make_check(e, b, span);
        span += y->slice[b].check.optim.spans;
    }
    return rc;
}

int ddp__slices_new(struct ddp__engine *e)
{
    struct ddp__slices *y;

    if (!ddp__comm_used(e) || e->optimizer.clip_norm > 0)
        return 0;
    if (!(e->slices = y = calloc(1, sizeof(*y))))
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    y->one_memory[DDP__STAT_DIVISOR] = 1;
    ddp__handle_register(&y->one, y->one_memory, sizeof(y->one_memory));
    ddp__handle_register(&y->stats, y->stats_memory, sizeof(y->stats_memory));
    ddp__loss_scaler_slices(e, &y->agree, &y->note);
    return make_checks(e);
}

void ddp__slices_free(struct ddp__engine *e)
{
    struct ddp__slices *y = e->slices;

    if (!y)
        return;
    ddp__handle_unregister(&y->one);
    ddp__handle_unregister(&y->stats);
    for (int b = 0; y->slice && b < e->buckets; b++) {
        ddp__handle_unregister(&y->slice[b].found);
        ddp__call_release(&y->slice[b].check);
    }
    free(y->slice);
    free(y->span);
    free(y);
    e->slices = NULL;
}

bool ddp__slices_used(const struct ddp__engine *e, const struct ddp__step *s)
{
    return e->slices && s->update;
}

static bool is_checked(const struct ddp__engine *e, int b)
{
    return e->reached[b] && e->slices->slice[b].found.h;
}

/* ---- a step ------------------------------------------------------------- */

int ddp__slices_check(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__slices *y = e->slices;
    struct ddp__vector_task t = {.e = e, .s = s};
    int rc = 0;

    for (int b = 0; b < e->params->buckets && rc == 0; b++) {
        struct ddp__handle *buf[] = {[DDP__SQNORM_G] = &e->lane[0].grad[b],
                                     [DDP__SQNORM_STATS] = &y->one,
                                     [DDP__SQNORM_NORM] = &y->slice[b].found};

        if (is_checked(e, b))
            rc = ddp__vector_add(&t, &y->slice[b].check, e->owner[b], buf,
                                 false);
    }
    return rc < 0 ? rc : ddp__vector_flush(&t);
}

void ddp__slices_open(struct ddp__engine *e, atomic_int *left,
                      void (*ready)(void *arg), void *arg)
{
    for (int b = 0; b < e->params->buckets; b++)
        if (is_checked(e, b)) {
            atomic_fetch_add(left, 1);
            ddp__handle_acquire(&e->slices->slice[b].found, DDP__MAIN_MEMORY,
                                true, false, ready, arg);
        }
}

void ddp__slices_close(struct ddp__engine *e)
{
    for (int b = 0; b < e->params->buckets; b++)
        if (is_checked(e, b))
            ddp__handle_release(&e->slices->slice[b].found, DDP__MAIN_MEMORY);
}

void ddp__slices_found(const struct ddp__engine *e, double all[DDP__NORMS])
{
    for (int b = 0; b < e->params->buckets; b++)
        if (is_checked(e, b))
            ddp__slices_join(all, e->slices->slice[b].memory);
}

/* The bucket that the next forward pass reads first. */
static int first_needed(const struct ddp__engine *e)
{
    int b = e->params->buckets - 1;

    while (!e->reached[b])
        b--;
    return b;
}

/* Updates wait for that bucket, too: else those of others, and their copies to
 * all GPUs, would be before it.  Nothing runs, so the data stay where they are.
 */
static int submit_fence(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__task_call fence = {
        .task = {.call = &e->fence[1], .n = 1},
        .buf = {&e->lane[0].grad[first_needed(e)], &e->scaler},
        .access = {DDP_READ, DDP_UPDATE}};

    return ddp__vector_fence(e, s, &fence);
}

int ddp__slices_agree(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__handle *buf[] = {[DDP__AGREE_STATS] = &e->lane[0].stats,
                                 [DDP__AGREE_SCALER] = &e->scaler,
                                 [DDP__AGREE_COPY] = &e->slices->stats};
    struct ddp__vector_task t = {.e = e, .s = s};
    int rc;

    e->slices->copied = true;
    rc = ddp__vector_submit(&t, &e->slices->agree, buf);
    return rc < 0 ? rc : submit_fence(e, s);
}

struct ddp__handle *ddp__slices_stats(struct ddp__engine *e)
{
    return e->slices && e->slices->copied ? &e->slices->stats
                                          : &e->lane[0].stats;
}

void ddp__slices_end(struct ddp__engine *e)
{
    if (e->slices)
        e->slices->copied = false;
}

/* The end of the step waits for the token. */
int ddp__slices_note(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__handle *buf[] = {
        [DDP__NOTE_NORM] = &e->norm, [DDP__NOTE_TOKEN] = &e->token};
    struct ddp__vector_task t = {.e = e, .s = s};

    return ddp__vector_submit(&t, &e->slices->note, buf);
}

/* The first of what is trained, and the last of running statistics, as SQNORM
 * finds them. */
void ddp__slices_join(double all[DDP__NORMS], const double found[DDP__NORMS])
{
    double first = found[DDP__NORM_TRAINED];

    all[DDP__NORM_SQUARES] += isfinite(found[DDP__NORM_SQUARES]) ? 0 : NAN;
    if (first > 0 &&
        (all[DDP__NORM_TRAINED] == 0 || first < all[DDP__NORM_TRAINED]))
        all[DDP__NORM_TRAINED] = first;
    if (found[DDP__NORM_RUNNING] > all[DDP__NORM_RUNNING])
        all[DDP__NORM_RUNNING] = found[DDP__NORM_RUNNING];
}
