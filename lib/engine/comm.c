/* comm.c - the gradients and statistics of a step, summed over ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When the tasks before it are done, an exchange gets the pieces of this rank
 * where they are merged: in main memory, or in that of a GPU, where messages
 * are too if they can be, and else between copies of parts.  Later tasks wait
 * for it as they wait for a task.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/comm.h"
#include "engine/engine.h"
#include "engine/parts.h"
#include "engine/shard.h"
#include "engine/slices.h"
#include "engine/step.h"
#include "runtime/context.h"
#include "runtime/direct.h"
#include "runtime/nodes.h"
#include "runtime/trace.h"

/* What a rank tells the others with its statistics. */
struct news {
    int64_t code, count; /* code: the failure of this step or an earlier one */
    double found[DDP__NORMS]; /* in this rank's slices of the gradients */
    unsigned wishes;
    char text[512];
};

struct comm {
    struct ddp__net_op op; /* first */
    struct ddp__engine *e; /* not owned */
    int64_t step, index;   /* of the step; index: among those of the engine */
    struct ddp__total total;
    enum ddp__exchange_kind kind; /* of a vector */
    struct ddp__split split;
    struct ddp__trace *trace; /* not owned; NULL: none */
    double begin;             /* all handles are open; 0: not yet */
    bool alone;               /* nothing is open: the submission has failed */
    bool empty;               /* with own sub-batches: this rank has none */
    bool checked;             /* news: slices of the gradients have been */
    struct ddp__direct at;    /* where the vectors are opened */
    struct ddp__handle room;  /* where messages are; h NULL: none */
    atomic_int left;          /* handles that are not open yet */
    bool *first;   /* by lane: has a piece; owned, like what follows */
    void **piece;  /* by lane: of this rank */
    char *nothing; /* if alone: in place of all pieces, and of the sum */
    struct ddp__parts parts;
    struct ddp__gather gather;
    bool begun;     /* the gathering */
    double **block; /* by lane: the statistics of a piece */
    int *pieces;    /* by rank */
};

/* ---- what it needs ------------------------------------------------------ */

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

/* Ranks with sub-batches of their own have a piece each, in lane 0. */
static int lane_of(const struct comm *c, int lane)
{
    return c->e->spec.own ? 0 : lane;
}

static struct ddp__handle *handle_of(const struct comm *c, int lane)
{
    return ddp__total_handle(c->e, lane_of(c, lane), c->total);
}

static bool is_ours(const struct comm *c, int lane)
{
    if (c->e->spec.own)
        return lane == c->e->ddp->net.wire.rank;
    return lane >= c->e->lane_begin && lane < c->e->lane_end;
}

static bool gathers(const struct comm *c)
{
    return c->kind == DDP__ALL_GATHER;
}

/* The result goes to lane 0. */
static bool is_open(const struct comm *c, int lane)
{
    if (gathers(c))
        return lane == 0;
    return (lane == 0 && !c->e->spec.own) ||
           (c->first[lane] && is_ours(c, lane));
}

/* Whether what the vector has now is needed. */
static bool is_read(const struct comm *c, int lane)
{
    return gathers(c) || (is_ours(c, lane) && !c->empty);
}

static const struct ddp__view *vector(const struct comm *c)
{
    return &ddp__total_merge(c->e, c->total)->buf[DDP__MERGE_DST];
}

static size_t elements(const struct comm *c)
{
    return (size_t)vector(c)->shape.c;
}

static size_t element_size(const struct comm *c)
{
    return ddp__dtype_size(vector(c)->type);
}

static bool is_news(const struct comm *c)
{
    return c->total.kind == DDP__TOTAL_STATS;
}

static bool is_half(const struct comm *c)
{
    return c->total.kind == DDP__TOTAL_BUCKET && c->e->spec.wire == DDP_BF16;
}

static void free_comm(struct comm *c)
{
    free(c->first);
    free(c->piece);
    free(c->nothing);
    ddp__parts_free(&c->parts);
    free(c->pieces);
    free(c->block);
    free(c);
}

/* ---- a vector ----------------------------------------------------------- */

/* In place of a sum of no sub-batches: what changes no other number's bits. */
static void fill_none(const struct comm *c, void *piece)
{
    bool wide = element_size(c) == sizeof(double);

    for (size_t i = 0; i < elements(c); i++)
        if (wide)
            ((double *)piece)[i] = -0.0;
        else
            ((float *)piece)[i] = -0.0f;
}

/* Messages are in main memory, and the vectors are not. */
static bool is_staged(const struct comm *c)
{
    return c->at.space && !c->at.messages;
}

static int room_node(const struct comm *c)
{
    return c->at.messages ? c->at.node : DDP__MAIN_MEMORY;
}

static size_t others_room(const struct comm *c)
{
    return ddp__parts_room(c->parts.len, c->split.ranks, c->parts.others);
}

static size_t room_size(const struct comm *c)
{
    size_t len = others_room(c);

    if (is_staged(c))
        len += ddp__parts_stage(c->parts.len, c->split.ranks, c->parts.ours);
    return len * element_size(c) + 1;
}

static void *memory_of(const struct comm *c, int lane)
{
    return ddp__handle_memory(handle_of(c, lane), c->at.node);
}

/* The slice of this rank is in it. */
static int find_sum(struct comm *c, size_t size)
{
    c->piece[0] = c->parts.all.sum = c->alone ? c->nothing : memory_of(c, 0);
    return c->piece[0] ? 0 : ddp__buffer_fail(size);
}

/* Without memory there is nothing to send: the others learn by our end. */
static int find_vectors(struct comm *c)
{
    size_t size = elements(c) * element_size(c);

    if (c->alone && !(c->nothing = calloc(2, size)))
        return ddp__buffer_fail(2 * size);
    if (gathers(c))
        return find_sum(c, size);
    for (int l = 0; l < c->split.lanes; l++)
        if (c->first[l] && is_ours(c, l) &&
            !(c->piece[l] = c->alone ? c->nothing : memory_of(c, l)))
            return ddp__buffer_fail(size);
    if (c->empty && !c->alone)
        fill_none(c, c->piece[c->e->ddp->net.wire.rank]);
    c->parts.all.sum = is_ours(c, 0) ? c->piece[0]
                       : c->alone    ? c->nothing + size
                                     : memory_of(c, 0);
    return c->parts.all.sum ? 0 : ddp__buffer_fail(size);
}

static ddp__add_f *addition(const struct comm *c)
{
    return is_half(c)                          ? ddp__add_bf16
           : element_size(c) == sizeof(double) ? ddp__add_f64
                                               : ddp__add_f32;
}

/* Behind that for others' pieces is that for parts of the vectors of a GPU. */
static int find_room(struct comm *c)
{
    char *room;

    if (!c->room.h)
        return 0;
    if (!(room = ddp__handle_memory(&c->room, room_node(c))))
        return c->at.messages ? ddp__device_buffer_fail(c->room.size)
                              : ddp__buffer_fail(c->room.size);
    c->parts.all.room = room;
    if (is_staged(c))
        c->parts.stage = (struct ddp__stage){
            c->at.space, c->at.device, room + others_room(c) * element_size(c)};
    return 0;
}

static int begin_vector(struct comm *c)
{
    struct ddp__exchange *x = &c->parts.all;

    x->kind = c->kind;
    x->piece = c->piece;
    x->size = element_size(c);
    x->half = is_half(c);
    x->add = addition(c);
    if (c->at.messages) {
        x->space = c->at.space;
        x->device = c->at.device;
    }
    return find_room(c) < 0 ? ddp_errcode() : find_vectors(c);
}

static int poll_vector(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct comm *c = (struct comm *)op;
    int rc = c->parts.all.sum ? 0 : begin_vector(c);

    return rc < 0 ? rc : ddp__parts_poll(&c->parts, w, &c->split, c->op.tag);
}

/* ---- the statistics, and what the ranks agree on ------------------------ */

static size_t news_len(const void *arg, int rank)
{
    const struct comm *c = arg;

    return sizeof(struct news) +
           (size_t)c->pieces[rank] * sizeof(double) * DDP__STATS;
}

/* A failure of a later step is told with that step. */
static void write_news(struct comm *c)
{
    struct ddp__task_group *g = &c->e->group;
    struct news *mine = ddp__gather_of(&c->gather, c->e->ddp->net.wire.rank);

    *mine = (struct news){.wishes = atomic_load(&c->e->wishes)};
    if (c->checked)
        ddp__slices_found(c->e, mine->found);
    if (c->e->spec.count)
        mine->count = __atomic_load_n(c->e->spec.count, __ATOMIC_RELAXED);
    if (atomic_load(&g->rc) == 0 || atomic_load(&g->failed_step) > c->step)
        return;
    mine->code = ddp__task_group_error(g);
    snprintf(mine->text, sizeof(mine->text), "%s", ddp_errmsg());
}

static int begin_news(struct comm *c)
{
    struct ddp__wire *w = &c->e->ddp->net.wire;
    double *stats;
    int rc = ddp__gather_new(&c->gather, w, c->op.tag, news_len, c);

    if (rc < 0)
        return rc;
    write_news(c);
    stats = (double *)((struct news *)ddp__gather_of(&c->gather, w->rank) + 1);
    for (int l = 0; l < c->split.used && !c->alone; l++)
        if (c->first[l] && is_ours(c, l)) {
            if (!c->empty)
                memcpy(stats, c->e->lane[lane_of(c, l)].stats_memory,
                       sizeof(double) * DDP__STATS);
            stats += DDP__STATS;
        }
    return ddp__gather_begin(&c->gather);
}

/* The rest of the tree, as MERGE_STATS adds. */
static void add_stats(struct comm *c)
{
    int rank = -1, lanes = c->split.lanes;
    double *next = NULL, **block = c->block;
    struct ddp__merge m = {0};

    for (int l = 0; l < c->split.used; l++) {
        if (!c->first[l])
            continue;
        if (ddp__lanes_rank(lanes, c->split.ranks, l) != rank) {
            rank = ddp__lanes_rank(lanes, c->split.ranks, l);
            next =
                (double *)((struct news *)ddp__gather_of(&c->gather, rank) + 1);
        }
        block[l] = next;
        next += DDP__STATS;
    }
    while (ddp__tree_next(c->split.used, &m))
        if (!ddp__merge_is_local(&c->split, &m))
            for (int i = 0; i < DDP__STATS; i++)
                block[m.to][i] += block[m.from][i];
    memcpy(c->e->lane[0].stats_memory, block[0], sizeof(double) * DDP__STATS);
}

/* The first rank's failure is everybody's. */
static void read_news(struct comm *c)
{
    struct ddp__engine *e = c->e;
    struct ddp__agreed *all = &e->agreed[c->index % (e->spec.run_ahead + 1)];
    bool failed = false;

    *all = (struct ddp__agreed){0};
    for (int r = 0; r < c->split.ranks; r++) {
        const struct news *n = ddp__gather_of(&c->gather, r);

        all->wishes |= n->wishes;
        all->count += n->count;
        ddp__slices_join(all->found, n->found);
        if (n->code == 0 || failed)
            continue;
        failed = true;
        ddp__fail((int)n->code, "rank %d (%s): %s", r,
                  e->ddp->net.wire.hosts[r], n->text);
        if (r != e->ddp->net.wire.rank)
            ddp__task_group_fail(&e->group, c->step, (int)n->code, NULL, NULL);
    }
}

/* The news of a step come after all of it, backward pass included. */
static int poll_news(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct comm *c = (struct comm *)op;
    int rc = 0;

    (void)w;
    if (!ddp__net_is_oldest(&c->e->ddp->net, op))
        return 0;
    if (!c->begun) {
        c->begun = true;
        rc = begin_news(c);
    }
    if (rc == 0)
        rc = ddp__gather_poll(&c->gather);
    if (rc != 1)
        return rc;
    if (!c->alone)
        add_stats(c);
    read_news(c);
    ddp__status_wait(&c->e->ddp->status,
                     ddp__clock() - atomic_load(&c->e->given));
    return 1;
}

/* ---- submission --------------------------------------------------------- */

/* For traces; -1: not that of a bucket. */
static int bucket_of(const struct comm *c)
{
    return c->total.kind == DDP__TOTAL_BUCKET ? c->total.at : -1;
}

static void finish(struct ddp__net_op *op, int rc)
{
    struct comm *c = (struct comm *)op;
    struct ddp__engine *e = c->e;

    if (rc < 0)
        ddp__task_group_fail(&e->group, c->step, rc,
                             rc == DDP_EPEER ? NULL : "sums over ranks", NULL);
    for (int l = 0; l < c->split.lanes && !c->alone; l++)
        if (is_open(c, l))
            ddp__handle_release(handle_of(c, l), c->at.node);
    if (c->checked)
        ddp__slices_close(c->e);
    if (c->room.h) {
        ddp__handle_release(&c->room, room_node(c));
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
    struct comm *c = arg;

    c->begin = ddp__now();
    if (!gathers(c))
        atomic_store(&c->e->given, ddp__clock());
    if (c->e->simulated)
        ddp__nodes_ready(&c->op);
    else
        ddp__net_ready(&c->e->ddp->net, &c->op);
}

/* Room only now: an exchange may wait for the whole backward pass. */
static void handle_opened(void *arg)
{
    struct comm *c = arg;

    if (atomic_fetch_sub(&c->left, 1) != 1)
        return;
    if (is_news(c) || c->alone) {
        begin_carrying(c);
        return;
    }
    ddp__handle_register(&c->room, NULL, room_size(c));
    ddp__handle_acquire(&c->room, room_node(c), false, true, begin_carrying, c);
}

/* One more than there are handles is counted: the operation is not ready before
 * all of them have been asked for. */
static void open_handles(struct comm *c)
{
    atomic_store(&c->left, 1);
    for (int l = 0; l < c->split.lanes && !c->alone; l++)
        if (is_open(c, l)) {
            atomic_fetch_add(&c->left, 1);
            ddp__handle_acquire(handle_of(c, l), c->at.node, is_read(c, l),
                                true, handle_opened, c);
            if (lane_of(c, l) > 0)
                ddp__handle_drop(handle_of(c, l));
        }
    if (c->checked)
        ddp__slices_open(c->e, &c->left, handle_opened, c);
    handle_opened(c);
}

static void count_pieces(struct comm *c)
{
    ddp__pieces(&c->split, c->first);
    for (int l = 0; l < c->split.used && !gathers(c); l++)
        if (c->first[l])
            c->pieces[ddp__lanes_rank(c->split.lanes, c->split.ranks, l)]++;
    c->parts.ours = c->pieces[c->e->ddp->net.wire.rank];
    for (int r = 0; r < c->split.ranks; r++)
        c->parts.others += c->pieces[r];
    c->parts.others -= c->parts.ours;
}

/* The memory of the worker that merges the gradients of a bucket and updates
 * the weights; of all else the main one. */
static int home_of(const struct comm *c)
{
    const struct ddp__engine *e = c->e;

    if (c->total.kind != DDP__TOTAL_BUCKET || c->alone || e->scarce)
        return DDP__MAIN_MEMORY;
    return ddp__direct_home(e->ddp, e->owner[c->total.at]);
}

/* At home, unless there is nothing yet. */
static void choose_place(struct comm *c, int home)
{
    ddp__direct_to(c->e->ddp, c->empty ? DDP__MAIN_MEMORY : home, &c->at);
    c->at.messages &= c->at.space && !is_half(c);
}

struct ddp__split ddp__comm_split(const struct ddp__engine *e, int subs)
{
    int used = subs < e->spec.lanes ? subs : e->spec.lanes;

    return e->spec.own ? (struct ddp__split){e->ranks, e->ranks, e->ranks}
                       : (struct ddp__split){e->spec.lanes, used, e->ranks};
}

static struct comm *comm_new(struct ddp__engine *e, const struct ddp__step *s,
                             struct ddp__total total,
                             enum ddp__exchange_kind kind, bool alone)
{
    struct comm *c = calloc(1, sizeof(*c));
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
    c->op.done = finish;
    c->op.pressing = is_news(c);
    c->op.poll = is_news(c) ? poll_news : poll_vector;
    c->empty = e->spec.own && s->subs == 0;
    c->split = ddp__comm_split(e, s->subs);
    lanes = (size_t)c->split.lanes;
    c->parts.len = elements(c);
    c->first = calloc(lanes, sizeof(*c->first));
    c->piece = calloc(lanes, sizeof(*c->piece));
    c->pieces = calloc((size_t)e->ranks, sizeof(*c->pieces));
    c->block = calloc(lanes, sizeof(*c->block));
    if (c->first && c->piece && c->pieces && c->block)
        return c;
    free_comm(c);
    return NULL;
}

static int parts_of(const struct comm *c)
{
    return is_news(c) ? 1 : ddp__parts_count(c->parts.len, c->split.ranks);
}

/* With a piece of each rank: slices of it to the others, then to each the sum
 * of this rank's slice; or one of both. */
static struct ddp__load load_of(const struct comm *c)
{
    int others = c->split.ranks - 1;
    int rounds = c->kind == DDP__ALL_REDUCE ? 2 : 1;
    double bytes = (double)(elements(c) * element_size(c));
    double part = (double)element_size(c) *
                  (double)ddp__parts_longest(c->parts.len, c->split.ranks);
    double slice = part / c->split.ranks;

    struct ddp__load l = {.messages = rounds * others * parts_of(c),
                          .rounds = rounds};

    if (is_news(c))
        return (struct ddp__load){.bytes = others * (double)news_len(c, 0),
                                  .messages = others,
                                  .rounds = 1};
    if (is_staged(c)) {
        l.copied = bytes;
        l.before = gathers(c) ? slice : part;
        l.after = c->kind == DDP__REDUCE_SCATTER ? slice : part;
    }
    l.bytes = rounds * bytes * others / c->split.ranks / (is_half(c) ? 2 : 1);
    return l;
}

static int submit(struct ddp__engine *e, const struct ddp__step *s,
                  struct ddp__total total, enum ddp__exchange_kind kind,
                  bool alone)
{
    struct comm *c = comm_new(e, s, total, kind, alone);
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
    sum = handle_of(c, 0);
    fetches = home != c->at.node && kind != DDP__REDUCE_SCATTER;
    e->exchanged++;
    ddp__task_group_add(&e->group, 1);
    c->op.load = load_of(c);
    if (e->simulated)
        ddp__nodes_add(&c->op);
    else
        ddp__net_add(&e->ddp->net, &c->op, parts_of(c));
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
    return total.kind == DDP__TOTAL_BUCKET && ddp__slices_used(e, s)
               ? DDP__REDUCE_SCATTER
               : DDP__ALL_REDUCE;
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
    int place = 0, rc = submit_sums(e, s, &place);

    for (int b = e->params->buckets - 1;
         rc == 0 && b >= 0 && ddp__slices_used(e, s); b--)
        if (e->reached[b])
            rc = submit_rest(e, s, bucket(b), DDP__ALL_GATHER, place++);
    if (rc == 0)
        ddp__shard_fail(e, s, place);
}
