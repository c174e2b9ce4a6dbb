/* step_updates.c - the decision on a step, its updates and averages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine/early.h"
#include "engine/engine.h"
#include "engine/shard.h"
#include "engine/slices.h"
#include "engine/step.h"
#include "engine/step_updates.h"
#include "engine/strips.h"
#include "engine/update.h"
#include "engine/vector.h"

bool ddp__step_reached(const struct ddp__engine *e, int b)
{
    return e->grad_begun[b];
}

bool ddp__step_reached_any(const struct ddp__engine *e)
{
    for (int b = 0; b < e->params->buckets; b++)
        if (ddp__step_reached(e, b))
            return true;
    return false;
}

static int submit_norms(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__vector_task t = {.e = e, .s = s};
    bool begun = false;
    int rc;

    for (int b = 0; b < e->params->buckets; b++) {
        struct ddp__handle *buf[] = {[DDP__SQNORM_G] = &e->lane[0].grad[b],
                                     [DDP__SQNORM_STATS] = ddp__slices_stats(e),
                                     [DDP__SQNORM_NORM] = &e->norm};

        if (!ddp__step_reached(e, b))
            continue;
        if ((rc = ddp__vector_add(&t, &e->sqnorm[b], e->owner[b], buf, begun)) <
            0)
            return rc;
        begun = true;
    }
    return ddp__vector_flush(&t);
}

/* Whether the step is applied: all gradients are known to be finite. */
static int submit_decision(struct ddp__engine *e, const struct ddp__step *s,
                           const struct ddp__call *decide)
{
    struct ddp__handle *buf[] = {[DDP__DECIDE_STATS] = &e->lane[0].stats,
                                 [DDP__DECIDE_NORM] = &e->norm,
                                 [DDP__DECIDE_SCALER] = &e->scaler};
    struct ddp__vector_task t = {.e = e, .s = s};
    int rc = submit_norms(e, s);

    return rc < 0 ? rc : ddp__vector_submit(&t, decide, buf);
}

static int add_update(struct ddp__vector_task *t, int b)
{
    struct ddp__engine *e = t->e;
    struct ddp__handle *buf[] = {
        [DDP__OPTIM_G] = &e->lane[0].grad[b],
        [DDP__OPTIM_W] = &e->params->bucket[b].handle,
        [DDP__OPTIM_STATS] = &e->scaler,
        [DDP__OPTIM_STATE] = e->state[b].h ? &e->state[b] : NULL,
        [DDP__OPTIM_NORM] = e->optimizer.clip_norm > 0 ? &e->norm : NULL};
    int rc = 0;

    if (!ddp__shard_keeps(e, b))
        return 0;
    if (e->strips[b].update)
        return (rc = ddp__vector_flush(t)) < 0 ? rc
                                               : ddp__strips_update(t, b, buf);
    for (int i = 0; i < e->updates[b].calls && rc == 0; i++)
        rc =
            ddp__vector_add(t, &e->updates[b].call[i], e->owner[b], buf, false);
    return rc;
}

/* From the rank that has updated them. */
static int submit_weights(struct ddp__engine *e, const struct ddp__step *s)
{
    int rc = 0;

    if (!ddp__shard_used(e))
        return 0;
    for (int b = e->params->buckets - 1; b >= 0 && rc == 0; b--)
        if (ddp__step_reached(e, b))
            rc = ddp__shard_submit(e, s, b);
    return rc;
}

/* Update the averages of the weights, unless the loss scaler skips the step. */
static int add_average(struct ddp__vector_task *t, int b)
{
    struct ddp__average *a = &t->e->ema->bucket[b];
    struct ddp__handle *buf[] = {[DDP__EMA_DST] = &a->handle,
                                 [DDP__EMA_SRC] =
                                     &t->e->params->bucket[b].handle,
                                 [DDP__EMA_STATS] = &t->e->scaler};

    return ddp__vector_add(t, &a->call, t->e->owner[b], buf, false);
}

/* The next step starts with the first layers, which are in the last bucket.
 * Buckets that come one by one do not wait for each other. */
static int submit_each(struct ddp__engine *e, const struct ddp__step *s,
                       int (*add)(struct ddp__vector_task *t, int b))
{
    struct ddp__vector_task t = {.e = e, .s = s};
    int rc = 0;

    for (int b = e->params->buckets - 1; b >= 0 && rc == 0; b--)
        if (ddp__step_reached(e, b) && (rc = add(&t, b)) == 0 &&
            ddp__comm_used(e))
            rc = ddp__vector_flush(&t);
    return rc < 0 ? rc : ddp__vector_flush(&t);
}

/* After the updates. */
static int end_updates(struct ddp__engine *e, const struct ddp__step *s)
{
    for (int b = 0; b < e->params->buckets; b++)
        if (ddp__step_reached(e, b) && !s->keep)
            ddp__handle_drop(&e->lane[0].grad[b]);
    return e->ema ? submit_each(e, s, add_average) : 0;
}

int ddp__step_updates(struct ddp__engine *e, const struct ddp__step *s,
                      bool slices)
{
    int rc =
        slices ? ddp__slices_agree(e, s) : submit_decision(e, s, &e->decide);

    if (rc < 0 || (rc = submit_each(e, s, add_update)) < 0 ||
        (rc = submit_weights(e, s)) < 0)
        return rc;
    if (slices && ddp__comm_used(e) && !e->checker &&
        ((rc = submit_norms(e, s)) < 0 || (rc = ddp__slices_note(e, s)) < 0))
        return rc;
    return end_updates(e, s);
}

int ddp__step_early(struct ddp__engine *e, const struct ddp__step *s, int b)
{
    struct ddp__vector_task t = {.e = e, .s = s};
    int rc;

    if (!e->updates[b].calls)
        return 0;
    if ((rc = ddp__early_keep(&t, b)) < 0 || (rc = add_update(&t, b)) < 0)
        return rc;
    return ddp__vector_flush(&t);
}

int ddp__step_early_end(struct ddp__engine *e, const struct ddp__step *s)
{
    int rc;

    if ((rc = submit_decision(e, s, &e->early->decide)) < 0 ||
        (rc = ddp__early_end(e, s)) < 0)
        return rc;
    return end_updates(e, s);
}
