/* update.c - the updates of a bucket: one for all that have the same rule
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Kernels know one rate and one decay, so parameters that differ in them are
 * different calls on the same bucket.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/step_calls.h"
#include "engine/update.h"
#include "runtime/devices.h"

/* A span, and how it is trained. */
struct trained {
    struct ddp__span span;
    struct ddp__rule rule;
};

static struct ddp__rule rule_of(const struct ddp__engine *e, int block, int i)
{
    if (!e->spec.rule)
        return (struct ddp__rule){1, -1};
    return e->spec.rule[block * DDP_MAX_PARAMS + i];
}

static bool is_frozen(const struct ddp__engine *e, int block)
{
    return e->spec.graph.frozen && e->spec.graph.frozen[block];
}

/* What is clipped by itself: of the last layer, the head, nothing is.  Or the
 * outputs of a matrix. */
static size_t unit_of(const struct ddp__engine *e, int block,
                      const struct ddp_param *p)
{
    bool clips = e->optimizer.clip_unit > 0 && block != e->params->blocks - 1;
    bool projects =
        ddp__optimizer_uses(&e->optimizer, DDP__PROJECTS) && p->ndim > 1;

    if (p->role == DDP_RUNNING || !(clips || projects))
        return 0;
    return ddp__param_len(p) / (size_t)(p->ndim > 1 ? p->dim[0] : 1);
}

/* The spans of a block.  Running statistics have no rate: they go with what is
 * before them. */
static int take_block(const struct ddp__engine *e, int block, struct trained *t)
{
    const struct ddp__param_block *b = &e->params->block[block];
    struct ddp__rule last = {1, -1};
    int n = 0;

    for (int i = 0; i < b->params && !is_frozen(e, block); i++) {
        const struct ddp_param *p = &b->param[i];
        struct ddp__rule r =
            p->role == DDP_RUNNING ? last : rule_of(e, block, i);

        if (r.lr == 0)
            continue;
        last = r;
        t[n++] =
            (struct trained){{.begin = b->offset + b->param_offset[i],
                              .len = ddp__param_len(p),
                              .unit = unit_of(e, block, p),
                              .decay = r.decay >= 0 || p->role == DDP_WEIGHT,
                              .running = p->role == DDP_RUNNING,
                              .momentum = p->momentum},
                             r};
    }
    return n;
}

/* In the order of the bucket. */
static int take_bucket(const struct ddp__engine *e, int bucket,
                       struct trained *t)
{
    int n = 0;

    for (int k = e->params->blocks - 1; k >= 0; k--)
        if (e->params->block[k].bucket == bucket)
            n += take_block(e, k, t + n);
    return n;
}

static int prepare(struct ddp__engine *e, int b, struct ddp__rule r,
                   struct ddp__call *c)
{
    size_t len = e->params->bucket[b].len;
    size_t state = len * (size_t)ddp__optimizer_states(&e->optimizer);

    c->op = DDP__OP_OPTIM;
    c->cap = 1;
    c->buf[DDP__OPTIM_G] = c->buf[DDP__OPTIM_W] =
        ddp__vector_view(len, DDP_F32);
    c->buf[DDP__OPTIM_STATS] = ddp__vector_view(DDP__STATS, DDP_F64);
    c->buffers = DDP__OPTIM_BUFFERS;
    c->optim.o = e->optimizer;
    c->optim.rate = r.lr;
    if (r.decay >= 0)
        c->optim.o.weight_decay = r.decay;
    if (state)
        c->buf[DDP__OPTIM_STATE] = ddp__vector_view(state, DDP_F32);
    if (e->optimizer.clip_norm > 0)
        c->buf[DDP__OPTIM_NORM] = ddp__vector_view(DDP__NORMS, DDP_F64);
    return ddp__call_prepare(e->ddp, c);
}

/* One call for each rule, in the order in which they first occur. */
static int make_calls(struct ddp__engine *e, int b, struct trained *t, int n)
{
    struct ddp__updates *u = &e->updates[b];
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct ddp__call *c = &u->call[u->calls];
        struct ddp__rule r = t[i].rule;

        if (t[i].span.len == 0)
            continue; /* taken */
        c->optim.span = &u->span[u->spans];
        for (int k = i; k < n; k++)
            if (t[k].rule.lr == r.lr && t[k].rule.decay == r.decay &&
                t[k].span.len) {
                u->span[u->spans++] = t[k].span;
                c->optim.spans++;
                t[k].span.len = 0;
            }
        rc = prepare(e, b, r, c);
        u->calls++;
    }
    for (int i = 0; i < u->calls; i++)
        u->call[i].optim.part = u->calls > 1 || n < e->params->bucket[b].spans;
    return rc;
}

int ddp__updates_new(struct ddp__engine *e, int b)
{
    size_t most = (size_t)e->params->bucket[b].spans + 1;
    struct ddp__updates *u = &e->updates[b];
    struct trained *t = calloc(most, sizeof(*t));
    int rc;

    u->span = calloc(most, sizeof(*u->span));
    u->call = calloc(most, sizeof(*u->call));
    if (t && u->span && u->call)
        rc = make_calls(e, b, t, take_bucket(e, b, t));
    else
        rc = ddp__fail(DDP_ENOMEM, "out of memory for the updates of weights");
    free(t);
    return rc;
}

void ddp__updates_free(struct ddp__updates *u)
{
    for (int i = 0; i < u->calls; i++)
        ddp__call_release(&u->call[i]);
    free(u->call);
    free(u->span);
}
