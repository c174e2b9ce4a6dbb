/* step_calls.c - the calls of a step that belong to no layer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/loss_scaler.h"
#include "engine/reduce.h"
#include "engine/step_calls.h"
#include "engine/strips.h"
#include "engine/update.h"

struct ddp__view ddp__vector_view(size_t len, enum ddp_dtype type)
{
    return (struct ddp__view){.type = type, .shape = {1, 1, (int)len}};
}

static int prepare_merge(struct ddp__engine *e, int b)
{
    struct ddp__call *c = &e->merge_bucket[b];

    c->op = DDP__OP_MERGE;
    c->cap = 1;
    c->buffers = DDP__MERGE_BUFFERS;
    c->buf[DDP__MERGE_DST] =
        ddp__vector_view(e->params->bucket[b].len, DDP_F32);
    c->buf[DDP__MERGE_SRC] = c->buf[DDP__MERGE_DST];
    ddp__reduce_round(e, b);
    return ddp__call_prepare(e->ddp, c);
}

static int prepare_merge_sum(struct ddp__engine *e, int i)
{
    struct ddp__view v =
        ddp__vector_view((size_t)e->graph->sum[i]->shape.c, DDP_F64);

    e->merge_sum[i] = (struct ddp__call){
        .op = DDP__OP_MERGE_STATS,
        .cap = 1,
        .buf = {[DDP__MERGE_STATS_DST] = v, [DDP__MERGE_STATS_SRC] = v},
        .buffers = DDP__MERGE_STATS_BUFFERS};
    return ddp__call_prepare(e->ddp, &e->merge_sum[i]);
}

int ddp__sqnorm_prepare(struct ddp__engine *e, int b)
{
    const struct ddp__bucket *k = &e->params->bucket[b];
    struct ddp__call *c = &e->sqnorm[b];
    size_t begin = 0;

    for (int i = 0; i < b; i++)
        begin += e->params->bucket[i].len;

    *c = (struct ddp__call){
        .op = DDP__OP_SQNORM,
        .cap = 1,
        .buf = {[DDP__SQNORM_G] = ddp__vector_view(k->len, DDP_F32),
                [DDP__SQNORM_STATS] = ddp__vector_view(DDP__STATS, DDP_F64),
                [DDP__SQNORM_NORM] = ddp__vector_view(DDP__NORMS, DDP_F64)},
        .buffers = DDP__SQNORM_BUFFERS,
        .optim = {e->optimizer, e->updates[b].spans, e->updates[b].span, begin,
                  .rate = 1},
    };
    return ddp__call_prepare(e->ddp, c);
}

/* Copy the step's statistics to the host; the last task of every step. */
static int end_step(const struct ddp__task *t, void *arg)
{
    struct ddp__engine *e = arg;
    int64_t number = (int64_t)t->seed;
    struct ddp__result *r = &e->result[number % (e->spec.run_ahead + 1)];
    const struct ddp__agreed *agreed =
        &e->agreed[number % (e->spec.run_ahead + 1)];
    const double *scaler = t->data[DDP__END_SCALER];

    ddp__lock_acquire(&e->lock);
    r->step = number;
    memcpy(r->stats, t->data[DDP__END_STATS], sizeof(r->stats));
    r->scale = scaler[DDP__SCALER_SCALE];
    r->norm =
        sqrt(agreed->scale > 0 ? agreed->squares : scaler[DDP__SCALER_NORM]);
    r->wishes = agreed->wishes;
    r->count = agreed->count;
    r->skips = (int64_t)scaler[DDP__SCALER_SKIPPED];
    r->skips_in_row = (int64_t)scaler[DDP__SCALER_ROW];
    r->skipped = (int64_t)scaler[DDP__SCALER_LAST] == number;
    memcpy(r->why, r->skipped ? e->why : "", r->skipped ? sizeof(r->why) : 1);
    e->finished = number + 1;
    e->last_end = ddp__now();
    ddp__lock_notify(&e->lock);
    ddp__lock_release(&e->lock);
    return 0;
}

static void make_fences(struct ddp__engine *e)
{
    for (int n = 0; n < DDP_MAX_BUFFERS; n++) {
        e->fence[n] =
            (struct ddp__call){.op = DDP__OP_HOST, .cap = 1, .buffers = n + 1};
        for (int i = 0; i <= n; i++)
            e->fence[n].buf[i] = ddp__vector_view(1, DDP_F32);
    }
    ddp__handle_register(&e->token, &e->token_memory, sizeof(float));
}

int ddp__step_calls_new(struct ddp__engine *e)
{
    int rc = 0;

    make_fences(e);
    ddp__loss_scaler_new(e);
    e->merge_stats = (struct ddp__call){
        .op = DDP__OP_MERGE_STATS,
        .cap = 1,
        .buf = {[DDP__MERGE_STATS_DST] = ddp__vector_view(DDP__STATS, DDP_F64),
                [DDP__MERGE_STATS_SRC] = ddp__vector_view(DDP__STATS, DDP_F64)},
        .buffers = DDP__MERGE_STATS_BUFFERS};
    e->end = (struct ddp__call){
        .op = DDP__OP_HOST,
        .cap = 1,
        .buf = {[DDP__END_STATS] = ddp__vector_view(DDP__STATS, DDP_F64),
                [DDP__END_SCALER] = ddp__vector_view(DDP__SCALERS, DDP_F64),
                [DDP__END_TOKEN] = ddp__vector_view(1, DDP_F32)},
        .buffers = DDP__END_BUFFERS,
        .host = {DDP__HOST_END, end_step, e}};
    if ((rc = ddp__call_prepare(e->ddp, &e->merge_stats)) < 0)
        return rc;
    for (int b = 0; rc == 0 && b < e->params->buckets; b++)
        if (ddp_graph_training(e->graph) && (rc = prepare_merge(e, b)) == 0)
            rc = ddp__strips_merge_new(e, b);
    for (int i = 0; rc == 0 && i < e->graph->sums; i++)
        rc = prepare_merge_sum(e, i);
    return rc;
}

void ddp__step_calls_free(struct ddp__engine *e)
{
    for (int b = 0; e->merge_bucket && b < e->buckets; b++)
        ddp__call_release(&e->merge_bucket[b]);
    for (int b = 0; e->sqnorm && b < e->buckets; b++)
        ddp__call_release(&e->sqnorm[b]);
    for (int i = 0; e->merge_sum && i < e->graph->sums; i++)
        ddp__call_release(&e->merge_sum[i]);
    ddp__call_release(&e->merge_stats);
    ddp__loss_scaler_free(e);
    ddp__handle_unregister(&e->token);
}
