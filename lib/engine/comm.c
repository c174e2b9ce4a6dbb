/* comm.c - the gradients and statistics of a step, summed over ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When the tasks before it are done, an exchange gets the pieces of this rank
 * where they are merged: in main memory, or in that of a GPU, where messages
 * are too if they can be, and else between copies of parts.  Later tasks wait
 * for it as they wait for a task.
 */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/comm.h"
#include "engine/comm_news.h"
#include "engine/comm_op.h"
#include "engine/comm_vector.h"
#include "engine/engine.h"
#include "engine/parts.h"
#include "engine/shard.h"
#include "engine/slices.h"
#include "engine/step.h"
#include "runtime/context.h"
#include "runtime/direct.h"
#include "runtime/nodes.h"
#include "runtime/trace.h"

bool ddp__comm_used(const struct ddp__engine *e)
{
    return e->ranks > 1;
}

void ddp__comm_wish(struct ddp__engine *e, unsigned wish)
{
    atomic_fetch_or(&e->wishes, wish);
}

void ddp__comm_unwish(struct ddp__engine *e, unsigned wish)
{
    atomic_fetch_and(&e->wishes, ~wish);
}

static bool has_piece(const struct ddp__comm *c, int lane)
{
    return c->first[lane] && ddp__comm_is_ours(c, lane);
}

/* A piece of this rank is where the result goes. */
static bool is_in_place(const struct ddp__comm *c)
{
    for (int l = 0; l < c->split.used; l++)
        if (has_piece(c, l) && ddp__comm_handle(c, l) == ddp__comm_handle(c, 0))
            return true;
    return false;
}

/* The result goes to lane 0. */
static bool is_open(const struct ddp__comm *c, int lane)
{
    if (ddp__comm_gathers(c))
        return lane == 0;
    return has_piece(c, lane) || (lane == 0 && !is_in_place(c));
}

/* Whether what the vector has now is needed. */
static bool is_read(const struct ddp__comm *c, int lane)
{
    return ddp__comm_gathers(c) || (ddp__comm_is_ours(c, lane) && !c->empty);
}

static bool is_news(const struct ddp__comm *c)
{
    return c->total.kind == DDP__TOTAL_STATS;
}

static void free_comm(struct ddp__comm *c)
{
    free(c->first);
    free(c->piece);
    free(c->near);
    free(c->nothing);
    ddp__parts_free(&c->parts);
    free(c->pieces);
    free(c->block);
    free(c);
}

/* For traces; -1: not that of a bucket. */
static int bucket_of(const struct ddp__comm *c)
{
    return c->total.kind == DDP__TOTAL_BUCKET ? c->total.at : -1;
}

static void finish(struct ddp__net_op *op, int rc)
{
    struct ddp__comm *c = (struct ddp__comm *)op;
    struct ddp__engine *e = c->e;

    if (rc < 0)
        ddp__task_group_fail(&e->group, c->step, rc,
                             rc == DDP_EPEER ? NULL : "sums over ranks", NULL);
    for (int l = 0; l < c->split.lanes && !c->alone; l++)
        if (is_open(c, l))
            ddp__handle_release(ddp__comm_handle(c, l), c->at.node);
    if (c->checked)
        ddp__slices_close(c->e);
    if (c->room.h) {
        ddp__handle_release(&c->room, ddp__comm_room_node(c));
        ddp__handle_unregister_later(&c->room);
    }
    if (is_news(c))
        ddp__gather_end(&c->gather);
    if (c->trace && c->begin > 0)
        ddp__trace_span(c->trace, DDP__TRACK_EXCHANGE, c->step, bucket_of(c),
                        c->begin, ddp__now());
    free_comm(c);
    ddp__task_group_add(&e->group, -1);
}

static void begin_carrying(void *arg)
{
    struct ddp__comm *c = arg;

    c->begin = ddp__now();
    if (!ddp__comm_gathers(c))
        atomic_store(&c->e->given, ddp__clock());
    if (c->e->simulated)
        ddp__nodes_ready(&c->op);
    else
        ddp__net_ready(&c->e->ddp->net, &c->op);
}

/* Room only now: an exchange may wait for the whole backward pass. */
static void handle_opened(void *arg)
{
    struct ddp__comm *c = arg;

    if (atomic_fetch_sub(&c->left, 1) != 1)
        return;
    if (is_news(c) || c->alone) {
        begin_carrying(c);
        return;
    }
    ddp__handle_register(&c->room, NULL, ddp__comm_room_size(c));
    ddp__handle_acquire(&c->room, ddp__comm_room_node(c), false, true,
                        begin_carrying, c);
}

/* One more than there are handles is counted: the operation is not ready before
 * all of them have been asked for. */
static void open_handles(struct ddp__comm *c)
{
    atomic_store(&c->left, 1);
    for (int l = 0; l < c->split.lanes && !c->alone; l++)
        if (is_open(c, l)) {
            atomic_fetch_add(&c->left, 1);
            ddp__handle_acquire(ddp__comm_handle(c, l), c->at.node,
                                is_read(c, l), true, handle_opened, c);
            if (ddp__comm_handle(c, l) != ddp__comm_handle(c, 0))
                ddp__handle_drop(ddp__comm_handle(c, l));
        }
    if (c->checked)
        ddp__slices_open(c->e, &c->left, handle_opened, c);
    handle_opened(c);
}

static void count_pieces(struct ddp__comm *c)
{
    ddp__pieces(&c->split, c->first);
    for (int l = 0; l < c->split.used && !ddp__comm_gathers(c); l++)
        if (c->first[l])
            c->pieces[ddp__lanes_rank(c->split.lanes, c->split.ranks, l)]++;
    c->parts.ours = c->pieces[c->e->ddp->net.wire.rank];
    for (int r = 0; r < c->split.ranks; r++)
        c->parts.others += c->pieces[r];
    c->parts.others -= c->parts.ours;
}

/* The memory of the worker that merges the gradients of a bucket and updates
 * the weights; of all else the main one. */
static int home_of(const struct ddp__comm *c)
{
    const struct ddp__engine *e = c->e;

    if (c->total.kind != DDP__TOTAL_BUCKET || c->alone || e->scarce)
        return DDP__MAIN_MEMORY;
    return ddp__direct_home(e->ddp, e->owner[c->total.at]);
}

/* At home, unless there is nothing yet. */
static void choose_place(struct ddp__comm *c, int home)
{
    ddp__direct_to(c->e->ddp, c->empty ? DDP__MAIN_MEMORY : home, &c->at);
    c->at.messages &= c->at.space && !ddp__comm_is_half(c);
}

struct ddp__split ddp__comm_split(const struct ddp__engine *e, int subs)
{
    int used = ddp__engine_lanes(e, subs);

    return e->spec.own ? (struct ddp__split){e->ranks, e->ranks, e->ranks}
                       : (struct ddp__split){e->spec.lanes, used, e->ranks};
}

static struct ddp__comm *comm_new(struct ddp__engine *e,
                                  const struct ddp__step *s,
                                  struct ddp__total total,
                                  enum ddp__exchange_kind kind, bool alone)
{
    struct ddp__comm *c = calloc(1, sizeof(*c));
    size_t lanes;

    if (!c)
        return NULL;
    c->e = e;
    c->trace = e->group.trace;
    c->step = s->number;
    c->index = e->submitted;
    c->total = total;
    c->kind = kind;
    c->alone = alone;
    c->checked = is_news(c) && !alone && ddp__slices_used(e, s);
    c->kept = is_news(c) && e->checker && ddp__slices_used(e, s);
    c->op.done = finish;
    c->op.pressing = is_news(c);
    c->op.patient = total.kind == DDP__TOTAL_BUCKET;
    c->op.poll = is_news(c) ? ddp__comm_poll_news : ddp__comm_poll_vector;
    c->empty = e->spec.own && s->subs == 0;
    c->split = ddp__comm_split(e, s->subs);
    lanes = (size_t)c->split.lanes;
    c->parts.len = ddp__comm_elements(c);
    c->first = calloc(lanes, sizeof(*c->first));
    c->piece = calloc(lanes, sizeof(*c->piece));
    c->pieces = calloc((size_t)e->ranks, sizeof(*c->pieces));
    c->block = calloc(lanes, sizeof(*c->block));
    c->near = calloc(lanes, sizeof(*c->near));
    if (c->first && c->piece && c->pieces && c->block && c->near)
        return c;
    free_comm(c);
    return NULL;
}

static int parts_of(const struct ddp__comm *c)
{
    return is_news(c) ? 1 : ddp__parts_count(c->parts.len, c->split.ranks);
}

/* With a piece of each rank: slices of it to the others, then to each the sum
 * of this rank's slice; or one of both. */
static struct ddp__load load_of(const struct ddp__comm *c)
{
    int others = c->split.ranks - 1;
    int rounds = c->kind == DDP__ALL_REDUCE ? 2 : 1;
    double bytes = (double)(ddp__comm_elements(c) * ddp__comm_element_size(c));
    double part = (double)ddp__comm_element_size(c) *
                  (double)ddp__parts_longest(c->parts.len, c->split.ranks);
    double slice = part / c->split.ranks;

    struct ddp__load l = {.messages = rounds * others * parts_of(c),
                          .rounds = rounds};

    if (is_news(c))
        return (struct ddp__load){.bytes =
                                      others * (double)ddp__comm_news_len(c, 0),
                                  .messages = others,
                                  .rounds = 1};
    if (ddp__comm_is_staged(c)) {
        l.copied = bytes;
        l.before = ddp__comm_gathers(c) ? slice : part;
        l.after = c->kind == DDP__REDUCE_SCATTER ? slice : part;
    }
    l.bytes = rounds * bytes * others / c->split.ranks /
              (ddp__comm_is_half(c) ? 2 : 1);
    return l;
}

static int submit(struct ddp__engine *e, const struct ddp__step *s,
                  struct ddp__total total, enum ddp__exchange_kind kind,
                  bool alone)
{
    struct ddp__comm *c = comm_new(e, s, total, kind, alone);
    struct ddp__handle *sum;
    bool fetches;
    int home;

    if (!c) {
        ddp__fail(DDP_ENOMEM, "out of memory for an exchange between ranks");
        ddp__net_abandon(&e->ddp->net, DDP_ENOMEM);
        return DDP_ENOMEM;
    }
    count_pieces(c);
    home = home_of(c);
    choose_place(c, home);
    sum = ddp__comm_handle(c, 0);
    fetches = home != c->at.node &&
              (kind == DDP__ALL_REDUCE || kind == DDP__ALL_GATHER);
    e->exchanged++;
    ddp__task_group_add(&e->group, 1);
    c->op.load = load_of(c);
    if (e->simulated)
        ddp__nodes_add(&c->op);
    else
        e->last_exchange =
            (uint64_t)ddp__net_add(&e->ddp->net, &c->op, parts_of(c));
    open_handles(c);
    if (fetches)
        ddp__direct_fetch(sum, home, &e->group);
    return 0;
}

static struct ddp__total bucket(int b)
{
    return (struct ddp__total){DDP__TOTAL_BUCKET, b};
}

static enum ddp__exchange_kind kind_of(const struct ddp__engine *e,
                                       const struct ddp__step *s,
                                       struct ddp__total total)
{
    if (total.kind != DDP__TOTAL_BUCKET || !ddp__slices_used(e, s))
        return DDP__ALL_REDUCE;
    return ddp__shard_sums(e, s) ? DDP__REDUCE : DDP__REDUCE_SCATTER;
}

int ddp__comm_submit(struct ddp__engine *e, const struct ddp__step *s,
                     struct ddp__total total)
{
    return submit(e, s, total, kind_of(e, s, total), false);
}

/* In the order of the updates. */
int ddp__comm_gather(struct ddp__engine *e, const struct ddp__step *s)
{
    int rc = 0;

    if (ddp__shard_sums(e, s))
        return 0;
    for (int b = e->params->buckets - 1; rc == 0 && b >= 0; b--)
        if (e->reached[b])
            rc = submit(e, s, bucket(b), DDP__ALL_GATHER, false);
    return rc;
}

/* The one at this place of a step's, if it has not been submitted. */
static int submit_rest(struct ddp__engine *e, const struct ddp__step *s,
                       struct ddp__total total, enum ddp__exchange_kind kind,
                       int place)
{
    return place < e->exchanged ? 0 : submit(e, s, total, kind, true);
}

/* All that come before the decision. */
static int submit_sums(struct ddp__engine *e, const struct ddp__step *s,
                       int *place)
{
    const struct ddp__total stats = {DDP__TOTAL_STATS, 0};
    int rc = 0;

    for (int i = 0; rc == 0 && i < e->graph->sums; i++)
        rc = submit_rest(e, s, (struct ddp__total){DDP__TOTAL_SUM, i},
                         DDP__ALL_REDUCE, (*place)++);
    for (int b = 0; rc == 0 && b < e->params->buckets; b++)
        if (e->reached[b])
            rc = submit_rest(e, s, bucket(b), kind_of(e, s, bucket(b)),
                             (*place)++);
    return rc < 0 ? rc : submit_rest(e, s, stats, DDP__ALL_REDUCE, (*place)++);
}

void ddp__comm_fail(struct ddp__engine *e, const struct ddp__step *s)
{
    bool gathers = ddp__slices_used(e, s) && !ddp__shard_sums(e, s);
    int place = 0, rc = submit_sums(e, s, &place);

    for (int b = e->params->buckets - 1; rc == 0 && b >= 0 && gathers; b--)
        if (e->reached[b])
            rc = submit_rest(e, s, bucket(b), DDP__ALL_GATHER, place++);
    if (rc == 0)
        ddp__shard_fail(e, s, place);
}
