/* loader.c - samples of a data set into the input buffers of sub-batches
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/philox.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "storage/settings.h"
#include "train/loader.h"

struct ddp__loader ddp__loader(ddp_dataset_t *data, int batch, int sub_batch)
{
    return (struct ddp__loader){
        .data = data,
        .steps = (data->count + batch - 1) / batch,
        .filled = (data->count + batch - 1) / batch,
        .end = (data->count + batch - 1) / batch,
        .batch = batch,
        .sub_batch = sub_batch,
        .subs = (batch + sub_batch - 1) / sub_batch,
    };
}

void ddp__loader_drop_last(struct ddp__loader *l)
{
    l->steps = l->filled = l->data->count / l->batch;
}

/* The last sub-batch of a step of so many samples. */
static int last_of(const struct ddp__loader *l, int64_t samples)
{
    int rest = (int)(samples % l->sub_batch);

    return rest ? rest : l->sub_batch;
}

/* The last sub-batch of an epoch, and those of the steps before its last.  Of a
 * stream both are unknown. */
static int ends(const struct ddp__loader *l, int *before)
{
    int last = last_of(l, ddp__loader_least_step(l));

    *before = l->filled > 1 ? last_of(l, l->batch) : last;
    return last;
}

int ddp__loader_least_step(const struct ddp__loader *l)
{
    int64_t rest = l->data->count - (l->filled - 1) * l->batch;

    if (ddp__is_stream(l->data))
        return 1;
    return rest < l->batch ? (int)rest : l->batch;
}

int ddp__loader_least(const struct ddp__loader *l)
{
    int before, last;

    if (ddp__is_stream(l->data))
        return 1;
    last = ends(l, &before);
    return last < before ? last : before;
}

void ddp__loader_fewer(const struct ddp__loader *l, int n[DDP__FEWER])
{
    int before, last;

    if (ddp__is_stream(l->data)) {
        n[0] = l->batch % l->sub_batch;
        n[1] = 0;
        return;
    }
    last = ends(l, &before);
    n[0] = last < l->sub_batch ? last : 0;
    n[1] = before < l->sub_batch && before != last ? before : 0;
}

struct ddp__place ddp__loader_place(const struct ddp__loader *l, int64_t step)
{
    struct ddp__place p;
    int64_t left;

    if (ddp__is_stream(l->data))
        return *ddp__stream_place(l->data, step);
    p = (struct ddp__place){.epoch = step / l->steps, .step = step % l->steps};
    p.first = p.step * l->batch;
    p.last = p.step + 1 == l->steps;
    left = p.step < l->filled ? l->data->count - p.first : 0;
    p.n = left < l->batch ? (int)left : l->batch;
    return p;
}

int ddp__loader_take(struct ddp__loader *l, int64_t step)
{
    return ddp__is_stream(l->data) ? ddp__stream_take(l->data, step) : 0;
}

bool ddp__loader_epoch_ends(const struct ddp__loader *l, int64_t steps)
{
    return steps > 0 && ddp__loader_place(l, steps - 1).last;
}

int ddp__loader_sizes(const struct ddp__loader *l, int64_t step, int *n)
{
    int left = ddp__loader_place(l, step).n, subs = 0;

    for (; left > 0; left -= l->sub_batch)
        n[subs++] = left < l->sub_batch ? left : l->sub_batch;
    return subs;
}

/* A sample that could not be read has neither loss nor class, and the caller of
 * the evaluation does not count it. */
static void fill_bad(struct ddp__loader *l, const struct ddp__task *t,
                     struct ddp_sample *s)
{
    __atomic_add_fetch(&l->bad, 1, __ATOMIC_RELAXED);
    memset(s->x, 0,
           ddp__len(t, DDP__FILL_X) / (size_t)t->n *
               ddp__dtype_size(t->call->buf[DDP__FILL_X].type));
    s->label = DDP__NO_LABEL;
    s->weight = s->norm = 0;
    if (s->target)
        memset(s->target, 0,
               (size_t)t->call->buf[DDP__FILL_TARGET].shape.c * 4);
}

/* Where the task's buffers have sample i, before it is read. */
static struct ddp_sample sample_at(const struct ddp__loader *l,
                                   const struct ddp__task *t, int i)
{
    const struct ddp__view *x = &t->call->buf[DDP__FILL_X];
    const struct ddp__view *target = &t->call->buf[DDP__FILL_TARGET];
    size_t size =
        ddp__len(t, DDP__FILL_X) / (size_t)t->n * ddp__dtype_size(x->type);
    size_t at = (size_t)i * (size_t)target->shape.c;

    return (struct ddp_sample){
        .x = (char *)t->data[DDP__FILL_X] + size * (size_t)i,
        .target = target->type == DDP_I32 ||
                          (l->shares && !ddp__dataset_has_several(l->data))
                      ? NULL
                      : (float *)t->data[DDP__FILL_TARGET] + at,
        .weight = 1,
        .norm = -1,
    };
}

/* Where the task wants shares, the sample's class has all of it, unless it may
 * have several. */
static void put_label(const struct ddp__loader *l, const struct ddp__task *t,
                      int i, int32_t label)
{
    int len = t->call->buf[DDP__FILL_TARGET].shape.c;
    float *share = t->data[DDP__FILL_TARGET];

    if (t->call->buf[DDP__FILL_TARGET].type == DDP_I32)
        ((int32_t *)t->data[DDP__FILL_TARGET])[i] = label;
    else if (l->shares && !ddp__dataset_has_several(l->data))
        for (int k = 0; k < len; k++)
            share[(size_t)i * (size_t)len + (size_t)k] = k == label;
}

/* What a sample of a class counts; 1 where samples are mixed and have none. */
static float weight_of(const struct ddp__loader *l, int32_t label)
{
    if (!l->class_weight || ddp__mix_used(&l->mix) || label < 0 ||
        label >= l->data->classes)
        return 1;
    return l->class_weight[label];
}

/* Smooth the shares of each class, and give them their weights: the loss of the
 * product is the weighted one. */
static void weigh_shares(const struct ddp__loader *l, const struct ddp__task *t)
{
    int len = t->call->buf[DDP__FILL_TARGET].shape.c;
    float *share = t->data[DDP__FILL_TARGET];
    float own = 1 - l->smoothing, rest = l->smoothing / (float)len;

    if (!l->class_weight || t->call->buf[DDP__FILL_TARGET].type != DDP_F32)
        return;
    for (int i = 0; i < t->n; i++, share += len)
        for (int k = 0; k < len; k++)
            share[k] = l->class_weight[k] * (own * share[k] + rest);
}

/* The loss finds those of the classes after its divisor. */
static void put_pos_weight(const struct ddp__loader *l,
                           const struct ddp__task *t)
{
    int first = t->call->cap + 1;
    int len = t->call->buf[DDP__FILL_WEIGHT].shape.c - first;

    if (l->pos_weight)
        memcpy((float *)t->data[DDP__FILL_WEIGHT] + first, l->pos_weight,
               (size_t)len * sizeof(float));
}

static int read_sample(struct ddp__loader *l, const struct ddp__order *o,
                       int64_t pos, struct ddp_sample *s)
{
    int rc;

    if (l->status)
        ddp__status_read(l->status, 1);
    rc = ddp__dataset_read(l->data, o, pos, l->replace, s);
    if (l->status)
        ddp__status_read(l->status, -1);
    return rc;
}

/* Sample i of a sub-batch that begins so far from the step's first sample. */
static int fill_one(struct ddp__loader *l, const struct ddp__task *t,
                    const struct ddp__place *p, int64_t from, int i)
{
    struct ddp__order o = {l->seed, p->epoch, l->shuffle, l->repeats};
    float *weight = t->data[DDP__FILL_WEIGHT];
    struct ddp_sample s = sample_at(l, t, i);
    int64_t pos = p->first + from + i, id = pos;
    int rc = 0;

    if (ddp__is_stream(l->data)) {
        ddp__stream_get(l->data, p->at + from + i, &s);
    } else {
        rc = read_sample(l, &o, pos, &s);
        id = ddp__dataset_id(l->data, &o, pos);
    }
    if (rc < 0)
        return rc;
    if (rc == DDP__BAD)
        fill_bad(l, t, &s);
    put_label(l, t, i, s.label);
    ((int64_t *)t->data[DDP__FILL_IDS])[i] = id;
    weight[i] = s.weight * (l->shares ? 1 : weight_of(l, s.label));
    weight[t->call->cap] +=
        (s.norm < 0 ? s.weight : s.norm) * weight_of(l, s.label);
    return 0;
}

/* Samples that are on their way, or there, for each request at a time: a server
 * whose answers take eight times as long for a while is not noticed. */
enum { AHEAD = 8 };

static void begin_sub(struct ddp__loader *l, int64_t step, int64_t sub)
{
    struct ddp__place p = ddp__loader_place(l, step);
    struct ddp__order o = {l->seed, p.epoch, l->shuffle, l->repeats};
    int64_t pos = p.first + sub * l->sub_batch, end = p.first + p.n;

    if (end > pos + l->sub_batch)
        end = pos + l->sub_batch;
    for (; pos < end; pos++)
        ddp__dataset_ahead(l->data, &o, pos);
}

/* Have what this rank reads next fetched: of each step it reads the same
 * sub-batches.  The farthest step is a new one; those at half the distance and
 * so on were begun before, unless the run has just started or there was no room
 * for them. */
static void begin_next(struct ddp__loader *l, int64_t step, int64_t sub)
{
    int64_t ahead = (int64_t)AHEAD * ddp__storage_at_once();
    int64_t last = 1 + ahead / l->batch;

    begin_sub(l, step, sub);
    for (int half = 62; half >= 0; half--)
        if (last >> half && step + (last >> half) < l->end)
            begin_sub(l, step + (last >> half), sub);
}

/* The upper counter word of the keys of sub-batches: see order.c. */
static const uint64_t mix_domain = (uint64_t)1 << 62;

/* Mix sub-batch number `sub` of an epoch. */
static void mix_samples(const struct ddp__loader *l, const struct ddp__task *t,
                        int64_t epoch, int64_t sub)
{
    uint64_t key =
        ddp__key(l->seed, mix_domain | (uint64_t)epoch, (uint64_t)sub);
    struct ddp__mixture m;

    if (!ddp__mix_used(&l->mix) ||
        (l->mix.off_epoch > 0 && epoch >= l->mix.off_epoch))
        return;
    m = ddp__mix_plan(&l->mix, key, t->call->buf[DDP__FILL_X].shape);
    ddp__mix_apply(&m, t);
}

int ddp__loader_fill(const struct ddp__task *t, void *arg)
{
    struct ddp__loader *l = arg;
    int64_t step = (int64_t)(t->seed / (uint64_t)l->subs);
    int64_t sub = (int64_t)(t->seed % (uint64_t)l->subs);
    const struct ddp__place p = ddp__loader_place(l, step);
    int rc;

    if (l->data->far)
        begin_next(l, step, sub);
    ((float *)t->data[DDP__FILL_WEIGHT])[t->call->cap] = 0;
    for (int i = 0; i < t->n; i++)
        if ((rc = fill_one(l, t, &p, sub * l->sub_batch, i)) < 0)
            return rc;
    put_pos_weight(l, t);
    mix_samples(l, t, p.epoch, p.step * l->subs + sub);
    weigh_shares(l, t);
    return 0;
}
