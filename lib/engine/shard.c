/* shard.c - the optimizer's state, divided among ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The sum of the gradients has the same bits everywhere, so those of the
 * weights do not depend on who makes the update.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/exchange.h"
#include "engine/shard.h"
#include "engine/slices.h"
#include "engine/step.h"
#include "runtime/context.h"
#include "runtime/trace.h"

/* ---- who keeps what ----------------------------------------------------- */

/* A rank may have so much more than the mean: what it adds and updates takes
 * longer than slices of all would. */
#define UNEVEN 1.25

/* Each bucket in turn goes to the rank that has the least so far. */
static void choose_keepers(const struct ddp__engine *e, int *keeper,
                           size_t *load)
{
    for (int b = 0; b < e->params->buckets; b++) {
        int least = 0;

        for (int r = 1; r < e->ranks; r++)
            if (load[r] < load[least])
                least = r;
        keeper[b] = least;
        load[least] += e->params->bucket[b].len;
    }
}

static bool is_even(const struct ddp__engine *e, const size_t *load)
{
    size_t all = 0, most = 0;

    for (int r = 0; r < e->ranks; r++) {
        all += load[r];
        most = load[r] > most ? load[r] : most;
    }
    return (double)most * e->ranks <= UNEVEN * (double)all;
}

int ddp__shard_new(struct ddp__engine *e)
{
    size_t *load;

    if (e->ranks < 2 || !e->spec.shard)
        return 0;
    load = calloc((size_t)e->ranks, sizeof(*load));
    e->keeper = calloc((size_t)e->params->buckets + 1, sizeof(*e->keeper));
    if (load && e->keeper) {
        choose_keepers(e, e->keeper, load);
        e->kept_sums = e->spec.shard_sums && is_even(e, load);
        e->checker = e->kept_sums ? e->keeper : NULL;
    }
    free(load);
    return load && e->keeper
               ? 0
               : ddp__fail(DDP_ENOMEM, "out of memory for the keepers of the "
                                       "optimizer's state");
}

int ddp__shard_checks(struct ddp__engine *e)
{
    size_t *load = calloc((size_t)e->ranks, sizeof(*load));
    int *checker = calloc((size_t)e->params->buckets + 1, sizeof(*checker));
    bool enough = load && checker;

    if (enough) {
        choose_keepers(e, checker, load);
        if (is_even(e, load)) {
            e->checker = checker;
            checker = NULL;
        }
    }
    free(load);
    free(checker);
    return enough ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for ranks");
}

bool ddp__shard_used(const struct ddp__engine *e)
{
    return e->keeper != NULL;
}

bool ddp__shard_sums(const struct ddp__engine *e, const struct ddp__step *s)
{
    return e->kept_sums && ddp__slices_used(e, s);
}

bool ddp__shard_keeps(const struct ddp__engine *e, int bucket)
{
    return !e->keeper || e->keeper[bucket] == e->ddp->net.wire.rank;
}

/* ---- weights under way -------------------------------------------------- */

struct share {
    struct ddp__net_op op; /* first */
    struct ddp__engine *e; /* not owned */
    int64_t step;
    int bucket;
    struct ddp__trace *trace; /* not owned; NULL: none */
    double begin;             /* when the weights were open */
    bool alone;               /* the submission has failed: nothing is open */
    char *room;               /* if alone: in place of the weights; owned */
    void *data;               /* not owned */
    struct ddp__pass pass;
};

static struct ddp__handle *weights_of(const struct share *s)
{
    return &s->e->params->bucket[s->bucket].handle;
}

static size_t bytes_of(const struct share *s)
{
    return s->e->params->bucket[s->bucket].len * sizeof(float);
}

static int begin(struct share *s, struct ddp__wire *w)
{
    size_t bytes = bytes_of(s);

    if (s->alone)
        s->data = s->room = calloc(1, bytes + 1);
    else
        s->data = ddp__handle_memory(weights_of(s), DDP__MAIN_MEMORY);
    if (!s->data)
        return ddp__buffer_fail(bytes);
    return ddp__pass_begin(&s->pass, w, s->op.tag, s->e->keeper[s->bucket],
                           s->data, bytes);
}

static int poll_share(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct share *s = (struct share *)op;
    int rc = s->data ? 0 : begin(s, w);

    return rc < 0 ? rc : ddp__pass_poll(&s->pass);
}

/* What came is an update, of which a later failure has to know. */
static void note_update(struct share *s)
{
    struct ddp__task_group *g = &s->e->group;

    if (atomic_load(&g->rc) == 0 || atomic_load(&g->failed_step) > s->step)
        atomic_store(&g->updated_step, s->step);
}

static void finish(struct ddp__net_op *op, int rc)
{
    struct share *s = (struct share *)op;
    struct ddp__engine *e = s->e;

    if (s->data && !s->alone)
        note_update(s);
    if (rc < 0)
        ddp__task_group_fail(&e->group, s->step, rc,
                             rc == DDP_EPEER ? NULL : "weights between ranks",
                             NULL);
    if (!s->alone)
        ddp__handle_release(weights_of(s), DDP__MAIN_MEMORY);
    if (s->trace)
        ddp__trace_span(s->trace, DDP__TRACK_WEIGHTS, s->step, s->bucket,
                        s->begin, ddp__now());
    ddp__pass_end(&s->pass);
    free(s->room);
    free(s);
    ddp__task_group_add(&e->group, -1);
}

static void opened(void *arg)
{
    struct share *s = arg;

    s->begin = ddp__now();
    ddp__net_ready(&s->e->ddp->net, &s->op);
}

static int submit(struct ddp__engine *e, const struct ddp__step *step,
                  int bucket, bool alone)
{
    bool ours = ddp__shard_keeps(e, bucket);
    struct ddp__handle *weights = &e->params->bucket[bucket].handle;
    struct share *s = calloc(1, sizeof(*s));
    int64_t number;

    if (!s) {
        ddp__fail(DDP_ENOMEM, "out of memory for an exchange between ranks");
        ddp__net_abandon(&e->ddp->net, DDP_ENOMEM);
        return DDP_ENOMEM;
    }
    *s = (struct share){
        .op = {.poll = poll_share, .done = finish, .patient = true},
        .e = e,
        .trace = e->group.trace,
        .step = step->number,
        .bucket = bucket,
        .alone = alone};
    e->exchanged++;
    ddp__task_group_add(&e->group, 1);
    number = ddp__net_add(&e->ddp->net, &s->op, 1);
    if (alone) {
        opened(s);
        return 0;
    }
    ddp__handle_acquire(weights, DDP__MAIN_MEMORY, ours, !ours, opened, s);
    weights->common = (uint64_t)number;
    return 0;
}

int ddp__shard_submit(struct ddp__engine *e, const struct ddp__step *s,
                      int bucket)
{
    return submit(e, s, bucket, false);
}

/* In the order of the updates. */
void ddp__shard_fail(struct ddp__engine *e, const struct ddp__step *s,
                     int place)
{
    if (!ddp__shard_used(e) || !s->update)
        return;
    for (int b = e->params->buckets - 1; b >= 0; b--)
        if (e->reached[b] && place++ >= e->exchanged &&
            submit(e, s, b, true) < 0)
            return;
}
