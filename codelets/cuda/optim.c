/* optim.c - update rules, the norm they clip by, averages: on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "tasks.h"
#include "weights.h"

_Static_assert(DDP__NORM_SQUARES == 0 && DDP__NORM_TRAINED == 1 &&
                   DDP__NORM_RUNNING == 2 && DDP__NORMS == 3,
               "as updates.h has them");
_Static_assert(sizeof(struct ddp__k_optim) <= 4096, "CUDA takes no more");

/* In the form that the kernel reads; decay and keep are those of OPTIM. */
static struct ddp__k_span span_of(const struct ddp__task *t,
                                  const struct ddp__span *s)
{
    const struct ddp_optimizer *o = &t->call->optim.o;
    float decay = s->decay || o->decay_all ? o->weight_decay : 0;
    bool decoupled = ddp__optimizer_uses(o, DDP__DECOUPLED_DECAY);

    return (struct ddp__k_span){.begin = s->begin,
                                .end = s->begin + s->len,
                                .decay = decoupled ? 0 : decay,
                                .keep = decoupled ? 1 - t->lr * decay : 1,
                                .momentum = s->momentum,
                                .running = s->running};
}

static bool by_outputs(const struct ddp__k_optim *p)
{
    return p->clip_unit > 0 || p->projects;
}

/* Whether b begins where a ends, and is treated equally. */
static bool continues_span(const struct ddp__k_optim *p,
                           const struct ddp__k_span *a,
                           const struct ddp__k_span *b)
{
    if (p->layerwise || by_outputs(p) || a->end != b->begin ||
        a->running != b->running)
        return false;
    return a->running ? a->momentum == b->momentum
                      : a->decay == b->decay && a->keep == b->keep;
}

/* Add a span to p, of outputs of so many elements that are clipped or
 * projected; false: it has to wait for the next launch. */
static bool add_span(struct ddp__k_optim *p, struct ddp__k_span s, size_t unit)
{
    int most = by_outputs(p) ? DDP__UNIT_SPANS : DDP__SPANS;
    struct ddp__k_span *last = p->spans ? &p->span[p->spans - 1] : NULL;

    if (s.begin == s.end)
        return true;
    if (last && continues_span(p, last, &s)) {
        last->end = s.end;
        return true;
    }
    if (p->spans == most || (last && s.begin < last->end))
        return false;
    if (by_outputs(p)) {
        p->unit[p->spans] = (struct ddp__k_units){(unsigned)unit, p->units};
        p->units += unit ? (unsigned)((s.end - s.begin) / unit) : 0;
    }
    p->span[p->spans++] = s;
    return true;
}

/* As many spans as fit, from span `from` on; returns the next one.  Neighbours
 * that are equal become one; a span that does not ascend waits. */
static int take_spans(const struct ddp__task *t, int from,
                      struct ddp__k_optim *p)
{
    int i = from;
    size_t last;

    p->spans = 0;
    p->blocks = p->units = 0;
    while (i < t->call->optim.spans &&
           add_span(p, span_of(t, &t->call->optim.span[i]),
                    t->call->optim.span[i].unit))
        i++;
    if (p->spans == 0)
        return i;
    last = p->span[p->spans - 1].end - 1;
    p->first = p->span[0].begin / DDP__TILE;
    p->blocks = (unsigned)(last / DDP__TILE - p->first + 1);
    return i;
}

static void set_rule(const struct ddp__task *t, struct ddp__k_optim *p)
{
    const struct ddp_optimizer o = ddp__optimizer_of(t);

    p->kind = o.kind;
    p->corrects = ddp__optimizer_uses(&o, DDP_USES_BETA2);
    p->layerwise = ddp__optimizer_uses(&o, DDP__LAYERWISE);
    p->projects = ddp__optimizer_uses(&o, DDP__PROJECTS);
    p->clip_norm = o.clip_norm;
    p->clip_value = o.clip_value;
    p->clip_unit = o.clip_unit;
    p->lookahead = o.lookahead;
    p->lr = o.lr;
    p->momentum = o.momentum;
    p->beta1 = o.beta1;
    p->beta2 = o.beta2;
    p->eps = o.eps;
}

/* The buffers that an optimizer has: states of its rule, norm. */
static void set_buffers(const struct ddp__task *t, struct ddp__k_optim *p)
{
    size_t states = (size_t)ddp__rule_states(&t->call->optim.o);

    p->g = t->data[DDP__OPTIM_G];
    p->w = t->data[DDP__OPTIM_W];
    p->stats = t->data[DDP__OPTIM_STATS];
    p->m = t->data[DDP__OPTIM_STATE];
    if (states > 1)
        p->v = p->m + ddp__len(t, DDP__OPTIM_W);
    if (states > 2)
        p->x = p->v + ddp__len(t, DDP__OPTIM_W);
    if (p->lookahead > 0)
        p->slow = p->m + states * ddp__len(t, DDP__OPTIM_W);
    if (states == 0)
        p->m = NULL;
    p->norm = t->data[DDP__OPTIM_NORM];
}

/* The trust of each span, which the update then reads. */
static int find_trust(const struct ddp__cuda_place *place,
                      struct ddp__k_optim *p)
{
    struct ddp__k_optim sum;
    int rc;

    p->squares = place->scratch;
    p->trust = (float *)(p->squares + p->blocks + p->spans);
    sum = *p;
    sum.blocks = (unsigned)p->spans;
    rc = DDP__LAUNCH(place, trust, p);
    return rc < 0 ? rc : DDP__LAUNCH(place, trust_sum, &sum);
}

/* The factor of each output, likewise. */
static int find_units(const struct ddp__cuda_place *place,
                      struct ddp__k_optim *p)
{
    struct ddp__k_optim units;

    p->unit_factor = place->scratch;
    units = *p;
    units.blocks = p->units;
    return DDP__LAUNCH(place, units, &units);
}

/* AdamP: what each output's step has of its weights, and which spans decay
 * less. */
static int find_projection(const struct ddp__cuda_place *place,
                           struct ddp__k_optim *p)
{
    struct ddp__k_optim of;
    int rc = 0;

    p->products = place->scratch;
    p->unit_factor = (float *)(p->products + p->units);
    p->trust = p->unit_factor + p->units;
    of = *p;
    of.blocks = p->units;
    if (of.blocks)
        rc = DDP__LAUNCH(place, outputs, &of);
    of.blocks = (unsigned)p->spans;
    return rc < 0 ? rc : DDP__LAUNCH(place, project, &of);
}

int ddp__cuda_optim(const struct ddp__task *t)
{
    struct ddp__k_optim p = {0};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    set_rule(t, &p);
    set_buffers(t, &p);
    if (!t->call->optim.part) /* the copy is of all weights */
        p.half = ddp__cuda_copy_begin(t, DDP__OPTIM_W, &p.half_type);
    for (int i = 0; i < t->call->optim.spans && rc == 0;) {
        i = take_spans(t, i, &p);
        if (p.blocks && p.layerwise)
            rc = find_trust(&place, &p);
        if (p.blocks && p.projects)
            rc = find_projection(&place, &p);
        else if (p.units)
            rc = find_units(&place, &p);
        if (p.blocks && rc == 0)
            rc = DDP__LAUNCH(&place, optim, &p);
    }
    return rc == 0 && p.half ? ddp__cuda_copy_end(t, DDP__OPTIM_W) : rc;
}

int ddp__cuda_sqnorm(const struct ddp__task *t)
{
    struct ddp__k_optim p = {0};
    struct ddp__k_sqnorm_sum sum = {
        .blocks = 1, .norm = t->data[DDP__SQNORM_NORM], .add = t->accumulate};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.g = t->data[DDP__SQNORM_G];
    p.stats = t->data[DDP__SQNORM_STATS];
    p.begin = t->call->optim.begin;
    if (rc < 0)
        return rc;
    sum.part = p.part = place.scratch;
    for (int i = 0; i < t->call->optim.spans && rc == 0;) {
        i = take_spans(t, i, &p);
        if (p.blocks)
            rc = DDP__LAUNCH(&place, sqnorm, &p);
        p.part += p.blocks;
    }
    sum.count = (unsigned)(p.part - sum.part);
    return rc < 0 ? rc : DDP__LAUNCH(&place, sqnorm_sum, &sum);
}

int ddp__cuda_ema(const struct ddp__task *t)
{
    size_t len = ddp__len(t, DDP__EMA_DST);
    struct ddp__k_ema p = {.blocks =
                               (unsigned)((len + DDP__TILE - 1) / DDP__TILE),
                           .share = (float)ddp__ema_share(t),
                           .dst = t->data[DDP__EMA_DST],
                           .src = t->data[DDP__EMA_SRC],
                           .stats = t->data[DDP__EMA_STATS],
                           .len = len};
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    return rc < 0 ? rc : DDP__LAUNCH(&place, ema, &p);
}
