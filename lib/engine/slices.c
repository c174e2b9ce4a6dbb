/* slices.c - a step that is decided on by slices of the sums
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The norm of the gradients has to have the same bits on any number of ranks,
 * so it is not made of the slices that ranks have, but of whole buckets when
 * these are there; strips of one process are branches of its tree (ops_norm.h).
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/early.h"
#include "engine/engine.h"
#include "engine/loss_scaler.h"
#include "engine/parts.h"
#include "engine/shard.h"
#include "engine/slices.h"
#include "engine/strips.h"
#include "engine/update.h"
#include "engine/vector.h"
#include "ops_norm.h"
#include "runtime/devices.h"

/* Elements whose norm takes as long as the additional tasks would. */
enum { LEAST = 1 << 17 };

/* ---- making ------------------------------------------------------------- */

static int bucket_parts(const struct ddp__engine *e, int b)
{
    return ddp__parts_count(e->params->bucket[b].len, e->ranks);
}

/* What of a span is in this rank's slices of the bucket; or in a strip of it.
 */
static int cut_span(const struct ddp__engine *e, const struct ddp__slice *slice,
                    const struct ddp__span *whole, struct ddp__span *out)
{
    size_t len = e->params->bucket[slice->bucket].len, from, to;
    int n = 0;

    if (!ddp__comm_used(e)) {
        ddp__strip_range(len, ddp__strips_last(e, slice->bucket), slice->strip,
                         &from, &to);
        return ddp__strip_span(whole, from, to, out);
    }
    for (int i = 0; i < bucket_parts(e, slice->bucket); i++) {
        ddp__parts_slice(len, e->ranks, e->ddp->net.wire.rank, i, &from, &to);
        n += ddp__strip_span(whole, from, to, &out[n]);
    }
    return n;
}

/* Spans of this rank's slices of a bucket, or of one strip. */
static void cut_spans(const struct ddp__engine *e,
                      const struct ddp__slice *slice, struct ddp__span *span,
                      struct ddp__optim *out)
{
    const struct ddp__optim *whole = &e->sqnorm[slice->bucket].optim;

    out->span = span;
    out->spans = 0;
    for (int i = 0; i < whole->spans; i++)
        out->spans += cut_span(e, slice, &whole->span[i], span + out->spans);
    for (int i = 0; i < out->spans; i++)
        out->cut += span[i].len;
}

/* SQNORM of these spans, divided by 1. */
static int make_check(struct ddp__engine *e, struct ddp__slice *slice,
                      struct ddp__span *span)
{
    const struct ddp__call *whole = &e->sqnorm[slice->bucket];
    struct ddp__call *c = &slice->check;

    *c = (struct ddp__call){.op = whole->op,
                            .cap = whole->cap,
                            .buffers = whole->buffers,
                            .optim = whole->optim};
    for (int i = 0; i < c->buffers; i++)
        c->buf[i] = whole->buf[i];
    if (!e->checker)
        cut_spans(e, slice, span, &c->optim);
    else if (e->checker[slice->bucket] != e->ddp->net.wire.rank)
        c->optim.spans = 0;
    if (c->optim.spans)
        ddp__handle_register(&slice->found, slice->memory,
                             sizeof(slice->memory));
    return ddp__call_prepare(e->ddp, c);
}

/* Of a rank one, though it has some of each part. */
static int slices_of(const struct ddp__engine *e, int b)
{
    return ddp__comm_used(e) ? 1 : ddp__strips_last(e, b);
}

/* A part's slice may end within a span, and one end within it. */
static size_t most_spans(const struct ddp__engine *e, int b)
{
    int cuts = ddp__comm_used(e) ? bucket_parts(e, b) : slices_of(e, b);

    return (size_t)(e->sqnorm[b].optim.spans * cuts);
}

static int make_room(struct ddp__engine *e)
{
    struct ddp__slices *y = e->slices;
    size_t slices = 1, spans = 1;

    for (int b = 0; b < e->params->buckets; b++) {
        slices += (size_t)slices_of(e, b);
        spans += most_spans(e, b);
    }
    y->slice = calloc(slices, sizeof(*y->slice));
    y->first = calloc((size_t)e->params->buckets + 1, sizeof(*y->first));
    y->span = calloc(spans, sizeof(*y->span));
    return y->slice && y->first && y->span
               ? 0
               : ddp__fail(DDP_ENOMEM, "out of memory for an engine");
}

static int make_checks(struct ddp__engine *e)
{
    struct ddp__slices *y = e->slices;
    struct ddp__span *span;
    int rc = make_room(e);

    span = y->span;
    for (int b = 0; b < e->params->buckets && rc == 0; b++) {
        y->first[b] = y->slices;
        for (int i = 0; i < slices_of(e, b) && rc == 0; i++) {
            struct ddp__slice *slice = &y->slice[y->slices++];

            slice->bucket = b;
            slice->strip = i;
            rc = make_check(e, slice, span);
            span += slice->check.optim.spans;
        }
    }
    return rc;
}

/* Clipping needs the norm, which one task makes.  Without merges there is no
 * task to check in, one worker waits for nobody, and the norm of few parameters
 * is computed before other tasks would begin. */
static bool can_use(const struct ddp__engine *e)
{
    if (e->optimizer.clip_norm > 0)
        return false;
    return ddp__comm_used(e) || (!e->ddp->gpu_workers && e->ddp->workers > 1 &&
                                 e->spec.lanes > 1 && e->params->held >= LEAST);
}

int ddp__slices_new(struct ddp__engine *e)
{
    struct ddp__slices *y;

    if (!can_use(e))
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
    for (int i = 0; i < y->slices; i++) {
        ddp__handle_unregister(&y->slice[i].found);
        ddp__call_release(&y->slice[i].check);
    }
    free(y->slice);
    free(y->first);
    free(y->span);
    free(y);
    e->slices = NULL;
}

bool ddp__slices_used(const struct ddp__engine *e, const struct ddp__step *s)
{
    return e->slices && s->update && !ddp__early_used(e);
}

static bool is_checked(const struct ddp__engine *e,
                       const struct ddp__slice *slice)
{
    return e->reached[slice->bucket] && slice->found.h;
}

/* ---- a step ------------------------------------------------------------- */

/* What is rounded after it has been merged is checked then. */
bool ddp__slices_merged(const struct ddp__engine *e, const struct ddp__step *s)
{
    return ddp__slices_used(e, s) && !ddp__comm_used(e) && s->subs > 1 &&
           e->spec.wire != DDP_BF16 && !e->scarce;
}

static void fill_buffers(struct ddp__engine *e, struct ddp__slice *slice,
                         struct ddp__handle *buf[DDP__SQNORM_BUFFERS])
{
    buf[DDP__SQNORM_G] = &e->lane[0].grad[slice->bucket];
    buf[DDP__SQNORM_STATS] = &e->slices->one;
    buf[DDP__SQNORM_NORM] = &slice->found;
}

void ddp__slices_join(struct ddp__vector_task *t, int b, int strip)
{
    struct ddp__slices *y = t->e->slices;
    struct ddp__slice *slice = &y->slice[y->first[b] + strip];
    struct ddp__handle *buf[DDP__SQNORM_BUFFERS];

    fill_buffers(t->e, slice, buf);
    if (is_checked(t->e, slice))
        ddp__vector_join(t, &slice->check, buf);
}

int ddp__slices_check(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__slices *y = e->slices;
    struct ddp__vector_task t = {.e = e, .s = s};
    int rc = 0;

    for (int i = 0; i < y->slices && rc == 0; i++) {
        struct ddp__slice *slice = &y->slice[i];
        int owner = e->owner[slice->bucket] + slice->strip;
        struct ddp__handle *buf[DDP__SQNORM_BUFFERS];

        fill_buffers(e, slice, buf);
        if (is_checked(e, slice))
            rc = ddp__vector_add(&t, &slice->check, owner % e->ddp->workers,
                                 buf, false);
    }
    return rc < 0 ? rc : ddp__vector_flush(&t);
}

void ddp__slices_open(struct ddp__engine *e, atomic_int *left,
                      void (*ready)(void *arg), void *arg)
{
    struct ddp__slices *y = e->slices;

    for (int i = 0; i < y->slices; i++)
        if (is_checked(e, &y->slice[i])) {
            atomic_fetch_add(left, 1);
            ddp__handle_acquire(&y->slice[i].found, DDP__MAIN_MEMORY, true,
                                false, ready, arg);
        }
}

void ddp__slices_close(struct ddp__engine *e)
{
    struct ddp__slices *y = e->slices;

    for (int i = 0; i < y->slices; i++)
        if (is_checked(e, &y->slice[i]))
            ddp__handle_release(&y->slice[i].found, DDP__MAIN_MEMORY);
}

void ddp__slices_found(const struct ddp__engine *e, double all[DDP__NORMS])
{
    const struct ddp__slices *y = e->slices;

    for (int i = 0; i < y->slices; i++)
        if (is_checked(e, &y->slice[i]))
            ddp__slices_add(all, y->slice[i].memory);
}

void ddp__slices_kept(const struct ddp__engine *e, double *squares)
{
    const struct ddp__slices *y = e->slices;

    for (int i = 0; i < y->slices; i++)
        if (is_checked(e, &y->slice[i]))
            squares[y->slice[i].bucket] = y->slice[i].memory[DDP__NORM_SQUARES];
}

double ddp__slices_squares(const struct ddp__engine *e, double divisor)
{
    const struct ddp__slices *y = e->slices;
    double sum = 0;

    for (int b = 0; b < e->params->buckets && divisor != 0; b++) {
        struct ddp__norm_tree tree = {0};

        for (int i = 0; i < slices_of(e, b); i++) {
            const struct ddp__slice *slice = &y->slice[y->first[b] + i];

            ddp__norm_tree_add(&tree, is_checked(e, slice)
                                          ? slice->memory[DDP__NORM_SQUARES]
                                          : 0);
        }
        sum += tree.branch[0] / (divisor * divisor);
    }
    return sum;
}

/* Within a process the decision waits for all checks, a few at a time. */
static int submit_found(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__slices *y = e->slices;
    struct ddp__task_call fence = {.task = {.n = 1}};
    int n = 0, rc = 0;

    for (int i = 0; i <= y->slices && rc == 0; i++) {
        bool last = i == y->slices;

        if (!last && !is_checked(e, &y->slice[i]))
            continue;
        if (!last) {
            fence.buf[n] = &y->slice[i].found;
            fence.access[n++] = DDP_READ;
        }
        if (n == 0 || (!last && n < DDP_MAX_BUFFERS - 1))
            continue;
        fence.buf[n] = &e->scaler;
        fence.access[n] = DDP_UPDATE;
        fence.task.call = &e->fence[n];
        rc = ddp__vector_fence(e, s, &fence);
        n = 0;
    }
    return rc;
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
    if (!ddp__comm_used(e) && (rc = submit_found(e, s)) < 0)
        return rc;
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
void ddp__slices_add(double all[DDP__NORMS], const double found[DDP__NORMS])
{
    double first = found[DDP__NORM_TRAINED];

    all[DDP__NORM_SQUARES] += isfinite(found[DDP__NORM_SQUARES]) ? 0 : NAN;
    if (first > 0 &&
        (all[DDP__NORM_TRAINED] == 0 || first < all[DDP__NORM_TRAINED]))
        all[DDP__NORM_TRAINED] = first;
    if (found[DDP__NORM_RUNNING] > all[DDP__NORM_RUNNING])
        all[DDP__NORM_RUNNING] = found[DDP__NORM_RUNNING];
}
