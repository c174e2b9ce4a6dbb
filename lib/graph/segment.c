/* segment.c - which operations one task runs, and where their results live
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task costs the host some 10 us, during which a GPU with one lane is idle.
 * So consecutive operations share a task until it lasts long enough.  Their
 * results are in one arena, memory that is a single buffer of the task;
 * later results reuse the place of those that no other task reads.
 *
 * An arena exists until all in it has been read.  Where forward writes both
 * what backward reads and something large that backward does not, they have an
 * arena each on CPUs: the statistics of a batch norm, a few kilobytes, would
 * keep its whole output.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/segment.h"
#include "runtime/devices.h"

enum { ALIGN = 256 }; /* alignment for vector loads and cuDNN */

enum { APART = 1 << 16 }; /* bytes that are worth another buffer */

#define SHORT_US 500 /* a task that may enter another bucket */

size_t ddp__value_size(const ddp_graph_t *g, const ddp_value_t *v)
{
    size_t n = v->per_sample ? (size_t)g->spec.cap : 1;

    return n * (size_t)v->shape.h * (size_t)v->shape.w * (size_t)v->shape.c *
           ddp__dtype_size(v->type);
}

/* ---- cutting ------------------------------------------------------------ */

/* Custom kernels and host functions get a separate task, because their device
 * and duration are not known.  So do the nodes that fetch the input, because
 * they do not wait for weights. */
static bool needs_own_task(const ddp_graph_t *g, const struct ddp__node *n)
{
    return !g->spec.joined &&
           ddp__op_is(n->call.op, DDP__IS_HOST | DDP__IS_USER | DDP__IS_INPUT);
}

/* The bucket of gradients that a node writes to; -1: none. */
static int bucket_of(const struct ddp__node *n)
{
    for (int b = 0; b < n->call.buffers; b++)
        if (n->buf[b] && n->buf[b]->role == DDP__GRAD)
            return n->buf[b]->bucket;
    return -1;
}

/* Whether node i continues a segment of one stage that writes to `bucket` and
 * takes `us` so far.  A bucket can be merged earlier if its last task does less
 * work for the next bucket, but a task for each of many short parts would leave
 * a GPU with one lane idle between them. */
static bool goes_on(const ddp_graph_t *g, const struct ddp__segment *s, int i,
                    int bucket, double us)
{
    const struct ddp__node *a = g->node[s->begin], *b = g->node[i];
    int other = bucket_of(b);
    bool is_short = us < fmin(g->spec.segment_us / 2, SHORT_US);

    if (g->spec.mode == DDP__PULL && i == g->forward_nodes)
        return false; /* the halves are submitted separately */
    return !ddp__graph_ends_stage(g, i - 1) && !needs_own_task(g, a) &&
           !needs_own_task(g, b) &&
           (a->phase == DDP__FORWARD) == (b->phase == DDP__FORWARD) &&
           (is_short || !g->spec.merged || bucket < 0 || other < 0 ||
            bucket == other);
}

static struct ddp__segment cut_segment(const ddp_graph_t *g, int begin)
{
    struct ddp__segment s = {.begin = begin};
    bool forward = g->node[begin]->phase == DDP__FORWARD;
    double least = forward && g->spec.forward_us > 0 ? g->spec.forward_us
                                                     : g->spec.segment_us;
    int i = begin, bucket = -1;
    double us = 0;

    do {
        us += ddp__call_us(g->spec.ddp, &g->node[i]->call, g->spec.cap);
        if (bucket < 0)
            bucket = bucket_of(g->node[i]);
        i++;
    } while (i < g->nodes && us < least && goes_on(g, &s, i, bucket, us));
    s.end = i;
    return s;
}

/* ---- placing ------------------------------------------------------------ */

/* Whether v and w are in use at the same time; w is not written before v. */
static bool overlap_in_time(const struct ddp__segment *s, const ddp_value_t *v,
                            const ddp_value_t *w)
{
    return v->last_use >= s->end || v->last_use >= w->first_use;
}

/* The lowest place in the arena that is free while v is in use. */
static size_t find_place(const ddp_graph_t *g, const struct ddp__segment *s,
                         ddp_value_t *const placed[], int n,
                         const ddp_value_t *v)
{
    size_t at = 0, size = ddp__value_size(g, v);

    for (int i = 0; i < n; i++) {
        const ddp_value_t *p = placed[i];
        size_t end = p->offset + ddp__value_size(g, p);

        if (!overlap_in_time(s, p, v) || p->offset >= at + size || end <= at)
            continue;
        at = (end + ALIGN - 1) / ALIGN * ALIGN;
        i = -1; /* look at all again */
    }
    return at;
}

/* The value that owns the memory of buffer b of a node; NULL: it is absent. */
static ddp_value_t *base_of(const struct ddp__node *n, int b)
{
    return n->buf[b] ? n->buf[b]->base : NULL;
}

/* Buffer b of a node, if its place is not known yet, or NULL. */
static ddp_value_t *unplaced(const struct ddp__node *n, int b)
{
    ddp_value_t *v = base_of(n, b);

    return v && v->role == DDP__ACTIVATION && v->segment < 0 ? v : NULL;
}

/* Whether backward reads it. */
static bool is_kept(const ddp_graph_t *g, const ddp_value_t *v)
{
    return v->last_use >= g->forward_nodes;
}

/* The size of the largest value that segment k is the first to write, of those
 * that are kept or of the others. */
static size_t largest(const ddp_graph_t *g, int k, bool kept)
{
    size_t most = 0;

    for (int i = g->segment[k].begin; i < g->segment[k].end; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            const ddp_value_t *v = unplaced(g->node[i], b);
            size_t size =
                v && is_kept(g, v) == kept ? ddp__value_size(g, v) : 0;

            most = size > most ? size : most;
        }
    return most;
}

/* Place the values that segment k is the first to write, all of them or only
 * those that are kept or not; room has an entry for each value of the graph. */
static void fill_arena(ddp_graph_t *g, int k, bool all, bool kept,
                       ddp_value_t **room)
{
    struct ddp__arena *a = &g->arena[g->arenas];
    int n = 0;

    *a = (struct ddp__arena){.segment = k, .last_use = k};
    for (int i = g->segment[k].begin; i < g->segment[k].end; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            ddp_value_t *v = unplaced(g->node[i], b);
            size_t end;

            if (!v || (!all && is_kept(g, v) != kept))
                continue;
            v->segment = k;
            v->arena = g->arenas;
            v->offset = find_place(g, &g->segment[k], room, n, v);
            end = v->offset + ddp__value_size(g, v);
            a->size = end > a->size ? end : a->size;
            room[n++] = v;
        }
    g->arenas += a->size > 0;
}

static void fill_arenas(ddp_graph_t *g, int k, ddp_value_t **room)
{
    bool apart = !g->spec.on_gpus && largest(g, k, true) > 0 &&
                 largest(g, k, false) >= APART;

    fill_arena(g, k, !apart, false, room);
    if (apart)
        fill_arena(g, k, false, true, room);
}

/* Record where the values of segment k are, and that it uses their arenas. */
static void use_arenas(ddp_graph_t *g, int k)
{
    for (int i = g->segment[k].begin; i < g->segment[k].end; i++)
        for (int b = 0; b < g->node[i]->call.buffers; b++) {
            const ddp_value_t *v = base_of(g->node[i], b);

            if (!v || v->role != DDP__ACTIVATION)
                continue;
            g->node[i]->call.buf[b].offset = v->offset;
            g->arena[v->arena].last_use = k;
        }
}

int ddp__graph_segment(ddp_graph_t *g)
{
    ddp_value_t **room = calloc((size_t)g->values + 1, sizeof(ddp_value_t *));

    g->segment = calloc((size_t)g->nodes + 1, sizeof(*g->segment));
    g->arena = calloc(2 * (size_t)g->nodes + 1, sizeof(*g->arena));
    if (!room || !g->segment || !g->arena) {
        free(room);
        return ddp__fail(DDP_ENOMEM, "out of memory for a graph");
    }
    for (int i = 0; i < g->nodes; i = g->segment[g->segments++].end)
        g->segment[g->segments] = cut_segment(g, i);
    for (int k = 0; k < g->segments; k++) {
        fill_arenas(g, k, room);
        use_arenas(g, k);
    }
    free(room);
    return 0;
}
