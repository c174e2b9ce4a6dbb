/* strips.c - large gradients in strips, merged by several CPU workers at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/slices.h"
#include "engine/step_calls.h"
#include "engine/strips.h"
#include "engine/update.h"
#include "engine/vector.h"
#include "ops_norm.h"
#include "runtime/devices.h"

/* Elements: what only the bucket of a single large layer exceeds; a strip, a
 * task of 30 us at least.  And strips for each worker, which do not all end at
 * the same time. */
enum { LARGE = 4 << 20, LEAST = DDP__NORM_PIECE, PER_WORKER = 4 };

/* Usual buckets are updated side by side: a worker's strips are of all. */
static size_t least_strip(const struct ddp__engine *e, int b)
{
    size_t share = e->params->held / (size_t)(PER_WORKER * e->ddp->workers);

    return e->params->bucket[b].len > LARGE || share < LEAST ? LEAST : share;
}

int ddp__strips_count(const struct ddp__engine *e, int b)
{
    size_t len = e->params->bucket[b].len;
    int n = 1;

    if (e->ddp->gpu_workers || e->ddp->workers < 2)
        return 1;
    while (2 * n <= PER_WORKER * e->ddp->workers &&
           len / (size_t)(2 * n) >= least_strip(e, b))
        n *= 2;
    return n;
}

bool ddp__strips_large(const struct ddp__engine *e, int b)
{
    return ddp__strips_count(e, b) > 1 && e->params->bucket[b].len > LARGE;
}

int ddp__strips_last(const struct ddp__engine *e, int b)
{
    return e->params->bucket[b].len > LARGE || b == e->params->buckets - 1
               ? ddp__strips_count(e, b)
               : 1;
}

/* ---- making ------------------------------------------------------------- */

static int out_of_memory(void)
{
    return ddp__fail(DDP_ENOMEM, "out of memory for an engine");
}

static int prepare_merge(struct ddp__engine *e, int b, int n, int i)
{
    struct ddp__call *c = &e->strips[b].merge[n - 1 + i];
    size_t from, to;

    *c = (struct ddp__call){
        .op = DDP__OP_MERGE, .cap = 1, .buffers = DDP__MERGE_BUFFERS};
    ddp__strip_range(e->params->bucket[b].len, n, i, &from, &to);
    c->buf[DDP__MERGE_DST] = ddp__vector_view(to - from, DDP_F32);
    c->buf[DDP__MERGE_DST].offset = from * sizeof(float);
    c->buf[DDP__MERGE_SRC] = c->buf[DDP__MERGE_DST];
    return ddp__call_prepare(e->ddp, c);
}

int ddp__strips_merge_new(struct ddp__engine *e, int b)
{
    struct ddp__strips *k = &e->strips[b];
    int rc = 0;

    k->count = ddp__strips_count(e, b);
    if (k->count == 1)
        return 0;
    if (!(k->merge = calloc((size_t)k->count * 2, sizeof(*k->merge))))
        return out_of_memory();
    for (int n = 1; n <= k->count; n *= 2)
        for (int i = 0; i < n && rc == 0; i++)
            rc = prepare_merge(e, b, n, i);
    return rc;
}

/* Not what needs norms of a parameter, or of its outputs; a program's own
 * optimizer gets whole parameters. */
static bool can_cut(const struct ddp__engine *e, int b)
{
    const struct ddp__updates *u = &e->updates[b];

    if (e->strips[b].count < 2 || !u->calls ||
        e->optimizer.kind == DDP_CUSTOM_OPTIMIZER ||
        ddp__optimizer_uses(&e->optimizer, DDP__LAYERWISE))
        return false;
    for (int i = 0; i < u->spans; i++)
        if (u->span[i].unit)
            return false;
    return true;
}

/* The whole call, but for fewer spans. */
static int prepare_update(struct ddp__engine *e, int b, int strip, int i,
                          struct ddp__span *span)
{
    const struct ddp__updates *u = &e->updates[b];
    struct ddp__call *c = &e->strips[b].update[strip * u->calls + i];
    const struct ddp__optim *whole = &u->call[i].optim;
    size_t from, to;

    ddp__strip_range(e->params->bucket[b].len, e->strips[b].count, strip, &from,
                     &to);
    *c = (struct ddp__call){.op = DDP__OP_OPTIM,
                            .cap = 1,
                            .buffers = u->call[i].buffers,
                            .optim = *whole};
    for (int k = 0; k < c->buffers; k++)
        c->buf[k] = u->call[i].buf[k];
    c->optim.span = span;
    c->optim.spans = 0;
    c->optim.part = true;
    for (int k = 0; k < whole->spans; k++)
        if (ddp__strip_span(&whole->span[k], from, to, &span[c->optim.spans]))
            c->optim.cut += span[c->optim.spans++].len;
    return ddp__call_prepare(e->ddp, c);
}

/* A strip ends within a span at most. */
int ddp__strips_update_new(struct ddp__engine *e, int b)
{
    const struct ddp__updates *u = &e->updates[b];
    struct ddp__strips *k = &e->strips[b];
    size_t calls = (size_t)(k->count * u->calls);
    struct ddp__span *span;
    int rc = 0;

    if (!can_cut(e, b))
        return 0;
    k->update = calloc(calls, sizeof(*k->update));
    k->span = span = calloc((size_t)u->spans + 2 * calls, sizeof(*k->span));
    if (!k->update || !k->span)
        return out_of_memory();
    for (int s = 0; s < k->count; s++)
        for (int i = 0; i < u->calls && rc == 0; i++) {
            rc = prepare_update(e, b, s, i, span);
            span += k->update[s * u->calls + i].optim.spans;
        }
    return rc;
}

void ddp__strips_free(struct ddp__strips *k)
{
    free(k->merge);
    free(k->update);
    free(k->span);
}

/* ---- a step ------------------------------------------------------------- */

/* Before strips of a call and after them: on what they write. */
static int submit_fence(struct ddp__engine *e, const struct ddp__step *s,
                        const struct ddp__call *call,
                        struct ddp__handle *const buf[])
{
    struct ddp__task_call fence = {.task = {.n = 1}};
    int n = 0;

    for (int i = 0; i < call->buffers; i++)
        if (buf[i] && ddp__call_access(call, i, true) != DDP_READ) {
            fence.buf[n] = buf[i];
            fence.access[n++] = DDP_UPDATE;
        }
    fence.task.call = &e->fence[n - 1];
    return ddp__vector_fence(e, s, &fence);
}

/* So many calls for each of n strips: t's owner has the first, and the workers
 * after it the others.  checked: a bucket whose strips are then checked; or -1.
 */
static int submit_strips(struct ddp__vector_task *t,
                         const struct ddp__call *call, int calls, int n,
                         struct ddp__handle *const buf[], int checked)
{
    int rc = submit_fence(t->e, t->s, call, buf), first = t->owner;

    t->shared = true;
    for (int i = 0; i < n && rc == 0; i++) {
        int owner = (first + i) % t->e->ddp->workers;

        for (int k = 0; k < calls && rc == 0; k++)
            rc = ddp__vector_add(t, &call[i * calls + k], owner, buf, false);
        if (rc == 0 && checked >= 0)
            ddp__slices_join(t, checked, i);
        if (rc == 0)
            rc = ddp__vector_flush(t);
    }
    return rc < 0 ? rc : submit_fence(t->e, t->s, call, buf);
}

/* Strips of merges that can run at the same time, and so need not have as many
 * each. */
static int strips_of(const struct ddp__engine *e, const struct ddp__step *s,
                     int b, const struct ddp__merge *m)
{
    int used = ddp__engine_lanes(e, s->subs);
    int n = e->strips[b].count;

    if (2 * m->stride >= used)
        return ddp__strips_last(e, b);
    if (!ddp__strips_large(e, b))
        return 1;
    for (int merges = used / (2 * m->stride); merges > 1 && n > 1; merges /= 2)
        n /= 2;
    return n;
}

int ddp__strips_merge(struct ddp__engine *e, const struct ddp__step *s, int b,
                      const struct ddp__merge *m, bool check)
{
    struct ddp__handle *buf[] = {[DDP__MERGE_DST] = &e->lane[m->to].grad[b],
                                 [DDP__MERGE_SRC] = &e->lane[m->from].grad[b]};
    struct ddp__vector_task t = {
        .e = e, .s = s, .owner = m->to % e->ddp->workers};
    int n = strips_of(e, s, b, m);
    int rc = n > 1 ? submit_strips(&t, &e->strips[b].merge[n - 1], 1, n, buf,
                                   check ? b : -1)
                   : 0;

    return rc < 0 ? rc : n > 1;
}

int ddp__strips_update(const struct ddp__vector_task *whole, int b,
                       struct ddp__handle *const buf[])
{
    struct ddp__engine *e = whole->e;
    const struct ddp__strips *k = &e->strips[b];
    struct ddp__vector_task t = {
        .e = e, .s = whole->s, .owner = e->owner[b], .updated = whole->updated};

    return submit_strips(&t, k->update, e->updates[b].calls, k->count, buf, -1);
}
