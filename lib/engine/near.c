/* near.c - gradients that the ranks of a host add where they are
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The memory has a vector of all gradients for each lane that is the first of a
 * piece of any rank.  A short step has no pieces that begin elsewhere.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/host.h"
#include "engine/near.h"
#include "engine/ranks.h"
#include "engine/shard.h"
#include "engine/slices.h"

enum { PAGE = 4096 };

struct ddp__near {
    struct ddp__host_memory memory;
    bool *first;   /* by lane; owned, like at */
    size_t *at;    /* by bucket: where it begins in a vector */
    size_t vector; /* bytes */
};

static bool can_share(const struct ddp__engine *e)
{
    const struct ddp__wire *w = &e->ddp->net.wire;

    return e->ranks > 1 && !e->simulated && w->local_count == w->count &&
           !e->spec.own && e->spec.wire == DDP_F32 &&
           e->spec.lanes >= e->ranks && ddp_graph_training(e->graph);
}

static void free_near(struct ddp__near *n)
{
    if (!n)
        return;
    ddp__host_unmap(&n->memory);
    free(n->first);
    free(n->at);
    free(n);
}

/* NULL: no memory for it. */
static struct ddp__near *make_layout(const struct ddp__engine *e)
{
    const struct ddp__params *p = e->params;
    struct ddp__near *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->first = calloc((size_t)e->spec.lanes, sizeof(*n->first));
    n->at = calloc((size_t)p->buckets + 1, sizeof(*n->at));
    if (!n->first || !n->at) {
        free_near(n);
        return NULL;
    }
    for (int b = 0; b < p->buckets; b++) {
        n->at[b] = n->vector;
        n->vector += (p->bucket[b].len * 4 + PAGE - 1) / PAGE * PAGE;
    }
    ddp__pieces(&(struct ddp__split){e->spec.lanes, e->spec.lanes, e->ranks},
                n->first);
    return n;
}

/* 0: this rank cannot. */
static size_t size_of(const struct ddp__engine *e, const struct ddp__near *n)
{
    size_t size = 0;

    for (int l = 0; n && l < e->spec.lanes; l++)
        size += n->first[l] ? n->vector : 0;
    return e->ddp->accelerator ? 0 : size;
}

/* Whether all ranks have it. */
static int agree(ddp_t *ddp, bool mine, bool *all)
{
    int count = ddp->net.wire.count, rc;
    bool *have = calloc((size_t)count, sizeof(*have));

    if (!have) {
        rc = ddp__fail(DDP_ENOMEM, "out of memory for ranks");
        ddp__net_abandon(&ddp->net, rc);
        return rc;
    }
    rc = ddp__ranks_gather(ddp, &mine, sizeof(mine), have);
    *all = rc == 0;
    for (int r = 0; r < count; r++)
        *all &= have[r];
    free(have);
    return rc;
}

void ddp__near_pieces(const struct ddp__engine *e, int bucket, void **piece)
{
    const struct ddp__near *n = e->near;
    char *at = n->memory.at + n->at[bucket];

    for (int l = 0; l < e->spec.lanes; l++) {
        piece[l] = n->first[l] ? at : NULL;
        at += n->first[l] ? n->vector : 0;
    }
}

/* In place of memory that tasks allocate. */
static int move_gradients(struct ddp__engine *e)
{
    void **piece = calloc((size_t)e->spec.lanes, sizeof(*piece));

    if (!piece)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    for (int b = 0; b < e->params->buckets; b++) {
        ddp__near_pieces(e, b, piece);
        for (int l = e->lane_begin; l < e->lane_end; l++) {
            struct ddp__handle *h = &e->lane[l].grad[b];

            if (!piece[l])
                continue;
            ddp__handle_unregister(h);
            ddp__handle_register(h, piece[l], h->size);
        }
    }
    free(piece);
    return 0;
}

/* Whole sums need to be checked by one rank only, and their norms are its. */
static int divide_checks(struct ddp__engine *e)
{
    int rc;

    if (!e->slices || e->checker || !e->spec.divides)
        return 0;
    if ((rc = ddp__shard_checks(e)) < 0 || !e->checker)
        return rc;
    ddp__slices_free(e);
    return ddp__slices_new(e);
}

int ddp__near_new(struct ddp__engine *e)
{
    struct ddp__near *n;
    bool all = false;
    int rc;

    if (!can_share(e))
        return 0;
    n = make_layout(e);
    if ((rc = ddp__host_map(e->ddp, "ddp-gradients", size_of(e, n), 0,
                            n ? &n->memory : &(struct ddp__host_memory){0})) <
            0 ||
        (rc = agree(e->ddp, n && n->memory.at, &all)) < 0 || !all) {
        free_near(n);
        return rc;
    }
    e->near = n;
    if ((rc = move_gradients(e)) == 0)
        rc = divide_checks(e);
    return ddp__ranks_agree(e->ddp, rc);
}

void ddp__near_free(struct ddp__engine *e)
{
    free_near(e->near);
    e->near = NULL;
}
