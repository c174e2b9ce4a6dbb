/* comm_news.c - the statistics of a step, and what the ranks agree on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/comm_news.h"
#include "engine/comm_op.h"
#include "engine/slices.h"

/* What a rank tells the others with its statistics. */
struct news {
    int64_t code, count; /* code: the failure of this step or an earlier one */
    double found[DDP__NORMS]; /* in this rank's slices of the gradients */
    unsigned wishes;
    char text[512];
};

/* Numbers of a rank before the squares of its sums, by bucket. */
static size_t squares_at(const struct ddp__comm *c, int rank)
{
    return (size_t)c->pieces[rank] * DDP__STATS;
}

size_t ddp__comm_news_len(const void *arg, int rank)
{
    const struct ddp__comm *c = arg;

    return sizeof(struct news) + sizeof(double) * squares_at(c, rank) +
           (c->kept ? sizeof(double) * (size_t)c->e->params->buckets : 0);
}

static double *numbers_of(struct ddp__comm *c, int rank)
{
    return (double *)((struct news *)ddp__gather_of(&c->gather, rank) + 1);
}

/* A failure of a later step is reported with that step. */
static void write_news(struct ddp__comm *c)
{
    struct ddp__task_group *g = &c->e->group;
    int rank = c->e->ddp->net.wire.rank;
    struct news *mine = ddp__gather_of(&c->gather, rank);

    *mine = (struct news){.wishes = atomic_load(&c->e->wishes)};
    if (c->checked)
        ddp__slices_found(c->e, mine->found);
    if (c->checked && c->kept)
        ddp__slices_kept(c->e, numbers_of(c, rank) + squares_at(c, rank));
    if (c->e->spec.count)
        mine->count = __atomic_load_n(c->e->spec.count, __ATOMIC_RELAXED);
    ddp__task_group_check(g, c->step);
    if (atomic_load(&g->rc) == 0 || atomic_load(&g->failed_step) > c->step)
        return;
    mine->code = ddp__task_group_error(g);
    snprintf(mine->text, sizeof(mine->text), "%s", ddp_errmsg());
}

static int begin_news(struct ddp__comm *c)
{
    struct ddp__wire *w = &c->e->ddp->net.wire;
    double *stats;
    int rc = ddp__gather_new(&c->gather, w, c->op.tag, ddp__comm_news_len, c);

    if (rc < 0)
        return rc;
    write_news(c);
    stats = numbers_of(c, w->rank);
    for (int l = 0; l < c->split.used && !c->alone; l++)
        if (c->first[l] && ddp__comm_is_ours(c, l)) {
            if (!c->empty)
                memcpy(stats, c->e->lane[ddp__comm_lane(c, l)].stats_memory,
                       sizeof(double) * DDP__STATS);
            stats += DDP__STATS;
        }
    return ddp__gather_begin(&c->gather);
}

/* The rest of the tree, as MERGE_STATS adds. */
static void add_stats(struct ddp__comm *c)
{
    int rank = -1, lanes = c->split.lanes;
    double *next = NULL, **block = c->block;
    struct ddp__merge m = {0};

    for (int l = 0; l < c->split.used; l++) {
        if (!c->first[l])
            continue;
        if (ddp__lanes_rank(lanes, c->split.ranks, l) != rank) {
            rank = ddp__lanes_rank(lanes, c->split.ranks, l);
            next = numbers_of(c, rank);
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

/* As one SQNORM after another adds them. */
static double add_squares(struct ddp__comm *c)
{
    const struct ddp__engine *e = c->e;
    double divisor = e->lane[0].stats_memory[DDP__STAT_DIVISOR], sum = 0;

    for (int b = 0; b < e->params->buckets && divisor != 0; b++)
        if (e->reached[b]) {
            int r = e->checker[b];

            sum += numbers_of(c, r)[squares_at(c, r) + (size_t)b] /
                   (divisor * divisor);
        }
    return sum;
}

/* The first rank's failure is everybody's. */
static void read_news(struct ddp__comm *c)
{
    struct ddp__engine *e = c->e;
    struct ddp__agreed *all = &e->agreed[c->index % (e->spec.run_ahead + 1)];
    bool failed = false;

    *all = (struct ddp__agreed){.kept = c->kept};
    if (c->kept && !c->alone)
        all->squares = add_squares(c);
    for (int r = 0; r < c->split.ranks; r++) {
        const struct news *n = ddp__gather_of(&c->gather, r);

        all->wishes |= n->wishes;
        all->count += n->count;
        ddp__slices_add(all->found, n->found);
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
int ddp__comm_poll_news(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct ddp__comm *c = (struct ddp__comm *)op;
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
