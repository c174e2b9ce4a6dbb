/* early.c - updates that begin before it is known whether the step is applied
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The scaler orders all of it.  TERMS writes what updates need; updates read
 * it; the decision, made when all sums have arrived, waits for them and changes
 * it.  The verdict holds it while it undoes updates of a step that is skipped.
 * Then fences let later tasks have the weights and the state, which nobody
 * changes between: copies of new weights are on their way to all devices before
 * the decision.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/early.h"
#include "engine/engine.h"
#include "engine/loss_scaler.h"
#include "engine/update.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "runtime/undo.h"

/* ---- making ------------------------------------------------------------- */

/* Elements of a layer whose weights and state take longer to keep than is won
 * by not waiting, as the first dense one of VGG-16 does. */
enum { LARGE = 16 << 20 };

static bool has_large_layer(const struct ddp__params *p)
{
    for (int i = 0; i < p->blocks; i++)
        if (p->block[i].len > LARGE)
            return true;
    return false;
}

/* What a program's own optimizer has noted elsewhere cannot be undone, and
 * other ranks may fail after all sums have arrived.  With one worker nothing
 * would be overlapped, and in main memory copies cost more than waiting. */
static bool is_wanted(const struct ddp__engine *e)
{
    const struct ddp_optimizer *o = e->spec.optimizer;

    if (!o || o->clip_norm > 0 || o->kind == DDP_CUSTOM_OPTIMIZER ||
        e->ranks > 1)
        return false;
    if (e->ddp->early >= 0)
        return e->ddp->early > 0;
    return e->ddp->gpu_workers > 1 && e->spec.lanes > 1 &&
           !has_large_layer(e->params);
}

/* Weights that are updated early have come before a forward pass, so a long
 * task of it waits no longer than a short one. */
int ddp__early_prepare(struct ddp__engine *e)
{
    if (!is_wanted(e))
        return 0;
    if (e->ddp->segment_us < 0 && e->ddp->gpu_workers)
        e->spec.graph.forward_us = 3 * e->spec.graph.segment_us;
    return ddp__params_join(e->params);
}

static int make_keep(struct ddp__engine *e, size_t size, struct ddp__handle *h,
                     struct ddp__call *c)
{
    struct ddp__view v = {.type = DDP_F32, .shape = {1, 1, (int)(size / 4)}};

    ddp__handle_register(h, NULL, size);
    *c = (struct ddp__call){.op = DDP__OP_KEEP,
                            .cap = 1,
                            .buf = {[DDP__KEEP_DST] = v, [DDP__KEEP_SRC] = v},
                            .buffers = DDP__KEEP_BUFFERS};
    return ddp__call_prepare(e->ddp, c);
}

static int make_bucket(struct ddp__engine *e, int b)
{
    struct ddp__before *k = &e->early->kept[b];
    int rc;

    k->updated = -1;
    if (!e->updates[b].calls)
        return 0;
    rc = make_keep(e, e->params->bucket[b].handle.size, &k->w, &k->keep_w);
    return rc == 0 && e->state[b].h
               ? make_keep(e, e->state[b].size, &k->state, &k->keep_state)
               : rc;
}

int ddp__early_new(struct ddp__engine *e)
{
    struct ddp__early *y;
    int rc = 0;

    if (!is_wanted(e))
        return 0;
    if (!(e->early = y = calloc(1, sizeof(*y))))
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    y->kept = calloc((size_t)e->params->buckets + 1, sizeof(*y->kept));
    y->verdict = calloc((size_t)e->spec.run_ahead + 1, sizeof(*y->verdict));
    if (!y->kept || !y->verdict)
        return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
    ddp__loss_scaler_early(e, &y->terms, &y->decide);
    for (int b = 0; rc == 0 && b < e->params->buckets; b++)
        rc = make_bucket(e, b);
    return rc;
}

void ddp__early_free(struct ddp__engine *e)
{
    struct ddp__early *y = e->early;

    for (int b = 0; y && y->kept && b < e->buckets; b++) {
        ddp__handle_unregister(&y->kept[b].w);
        ddp__handle_unregister(&y->kept[b].state);
        ddp__call_release(&y->kept[b].keep_w);
        ddp__call_release(&y->kept[b].keep_state);
    }
    if (y) {
        free(y->kept);
        free(y->verdict);
    }
    free(y);
    e->early = NULL;
}

double ddp__early_size(const struct ddp__engine *e)
{
    double size = 0;

    for (int b = 0; ddp__early_used(e) && b < e->params->buckets; b++)
        size += (double)ddp__pool_size(e->early->kept[b].w.size) +
                (double)ddp__pool_size(e->early->kept[b].state.size);
    return size;
}

bool ddp__early_used(const struct ddp__engine *e)
{
    return e->early && !e->scarce;
}

struct ddp__verdict *ddp__early_verdict(struct ddp__engine *e, int64_t index)
{
    return &e->early->verdict[index % (e->spec.run_ahead + 1)];
}

/* ---- before the decision ------------------------------------------------ */

int ddp__early_begin(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__handle *buf[] = {[DDP__TERMS_STATS] = &e->lane[0].stats,
                                 [DDP__TERMS_SCALER] = &e->scaler};
    struct ddp__vector_task t = {.e = e, .s = s};
    struct ddp__verdict *v = ddp__early_verdict(e, e->submitted);

    v->e = e;
    v->step = s->number;
    v->index = e->submitted;
    v->taken = false;
    e->early->begun = true;
    return ddp__vector_submit(&t, &e->early->terms, buf);
}

int ddp__early_keep(struct ddp__vector_task *t, int bucket)
{
    struct ddp__engine *e = t->e;
    struct ddp__before *k = &e->early->kept[bucket];
    struct ddp__handle *w[] = {[DDP__KEEP_DST] = &k->w,
                               [DDP__KEEP_SRC] =
                                   &e->params->bucket[bucket].handle};
    struct ddp__handle *state[] = {
        [DDP__KEEP_DST] = &k->state, [DDP__KEEP_SRC] = &e->state[bucket]};
    int rc;

    t->updated = &k->updated;
    rc = ddp__vector_add(t, &k->keep_w, e->owner[bucket], w, false);
    return rc == 0 && k->state.h
               ? ddp__vector_add(t, &k->keep_state, e->owner[bucket], state,
                                 false)
               : rc;
}

/* ---- the verdict -------------------------------------------------------- */

/* Whether the step, or one before it, has failed. */
static bool has_failed(const struct ddp__verdict *v)
{
    const struct ddp__task_group *g = &v->e->group;

    return atomic_load(&g->rc) != 0 && atomic_load(&g->failed_step) <= v->step;
}

static bool is_refused(const struct ddp__verdict *v)
{
    return (int64_t)v->e->scaler_memory[DDP__SCALER_LAST] == v->index;
}

/* The last vector, or none at all, has been undone. */
static void end_verdict(struct ddp__verdict *v, int vectors)
{
    struct ddp__engine *e = v->e;

    if (atomic_fetch_sub(&v->left, vectors) != vectors)
        return;
    ddp__handle_release(&e->scaler, DDP__MAIN_MEMORY);
    ddp__task_group_add(&e->group, -1);
}

/* What could not be undone remains an update of that step. */
static void note_undone(int rc, void *arg)
{
    struct ddp__verdict *v = arg;

    if (rc < 0) {
        atomic_store(&v->e->group.updated_step, v->step);
        ddp__task_group_fail(&v->e->group, v->step, rc, "undo", NULL);
    }
    end_verdict(v, 1);
}

static void undo_bucket(struct ddp__verdict *v, int b)
{
    struct ddp__engine *e = v->e;
    struct ddp__before *k = &e->early->kept[b];

    atomic_fetch_add(&v->left, k->state.h ? 2 : 1);
    ddp__handle_undo(&e->params->bucket[b].handle, &k->w, note_undone, v);
    if (k->state.h)
        ddp__handle_undo(&e->state[b], &k->state, note_undone, v);
}

/* The scaler is open, and all updates are done. */
static void judge_step(void *arg)
{
    struct ddp__verdict *v = arg;
    struct ddp__engine *e = v->e;
    bool failed = has_failed(v), undo = failed || is_refused(v);

    if (failed && v->taken)
        memcpy(e->scaler_memory, v->scaler, sizeof(v->scaler));
    atomic_store(&v->left, 1);
    for (int b = 0; b < e->params->buckets; b++) {
        if (atomic_exchange(&e->early->kept[b].updated, -1) != v->step)
            continue;
        if (undo)
            undo_bucket(v, b);
        else
            atomic_store(&e->group.updated_step, v->step);
    }
    end_verdict(v, 1);
}

static void submit_verdict(struct ddp__engine *e)
{
    ddp__task_group_add(&e->group, 1);
    ddp__handle_acquire(&e->scaler, DDP__MAIN_MEMORY, true, true, judge_step,
                        ddp__early_verdict(e, e->submitted));
    e->early->begun = false;
}

/* ---- after it ----------------------------------------------------------- */

/* Nothing runs, so the data stay where they are. */
static int submit_fence(struct ddp__engine *e, const struct ddp__step *s,
                        struct ddp__handle **buf, int n)
{
    struct ddp__task_call fence = {.task = {.call = &e->fence[n], .n = 1}};

    for (int i = 0; i < n; i++) {
        fence.buf[i] = buf[i];
        fence.access[i] = DDP_UPDATE;
    }
    fence.buf[n] = &e->scaler;
    fence.access[n] = DDP_READ;
    return ddp__vector_fence(e, s, &fence);
}

int ddp__early_end(struct ddp__engine *e, const struct ddp__step *s)
{
    struct ddp__handle *buf[DDP_MAX_BUFFERS];
    int n = 0, rc = 0;

    submit_verdict(e);
    for (int b = 0; rc == 0 && b < e->params->buckets; b++) {
        if (!e->grad_begun[b] || !e->updates[b].calls)
            continue;
        buf[n++] = &e->params->bucket[b].handle;
        if (e->state[b].h)
            buf[n++] = &e->state[b];
        if (n < DDP_MAX_BUFFERS - 2)
            continue;
        rc = submit_fence(e, s, buf, n);
        n = 0;
    }
    return rc == 0 && n ? submit_fence(e, s, buf, n) : rc;
}

void ddp__early_fail(struct ddp__engine *e)
{
    if (e->early && e->early->begun)
        submit_verdict(e);
}
