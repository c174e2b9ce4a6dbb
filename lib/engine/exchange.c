/* exchange.c - a sum over ranks, as messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each rank sends and receives 2 (n - 1) / n of the vector, as in a ring, plus
 * a slice for every further piece of a rank.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "engine/exchange.h"
#include "engine/near_sum.h"

/* ---- the sum of a vector ------------------------------------------------ */

void ddp__add_f32(void *to, const void *from, size_t n)
{
    const float *b = from;
    float *a = to;

    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

void ddp__add_bf16(void *to, const void *from, size_t n)
{
    ddp__add_f32(to, from, n);
    ddp__round_to_bf16(to, n);
}

void ddp__add_f64(void *to, const void *from, size_t n)
{
    const double *b = from;
    double *a = to;

    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

size_t ddp__slice_begin(size_t n, int ranks, int rank)
{
    size_t count = (size_t)ranks, r = (size_t)rank;

    return n / count * r + n % count * r / count;
}

size_t ddp__exchange_slice(const struct ddp__exchange *x, size_t n, int ranks,
                           int rank)
{
    if (x->kind == DDP__REDUCE)
        return rank > x->root ? n : 0;
    return ddp__slice_begin(n, ranks, rank);
}

size_t ddp__exchange_begins(const struct ddp__exchange *x, int rank)
{
    return x->begin +
           ddp__exchange_slice(x, x->end - x->begin, x->split.ranks, rank);
}

static size_t slice_len(const struct ddp__exchange *x, int rank)
{
    return ddp__exchange_begins(x, rank + 1) - ddp__exchange_begins(x, rank);
}

static size_t slice_bytes(const struct ddp__exchange *x, int rank)
{
    return slice_len(x, rank) * x->size;
}

static char *slice_of(const struct ddp__exchange *x, void *vector, int rank)
{
    return (char *)vector + ddp__exchange_begins(x, rank) * x->size;
}

static int rank_of(const struct ddp__exchange *x, int lane)
{
    return ddp__lanes_rank(x->split.lanes, x->split.ranks, lane);
}

/* ---- its elements on the wire ------------------------------------------- */

/* What is sent: each piece of ours to the others, and our slice of the sum.
 * What is received: our slice of the others' pieces, and theirs of the sum. */
static int make_half(struct ddp__exchange *x)
{
    size_t len = x->end - x->begin, own = 1, others = 1;

    if (!x->half)
        return 0;
    for (int l = 0; l < x->split.used && x->kind != DDP__ALL_GATHER; l++) {
        own += x->first[l] && x->piece[l];
        others += x->first[l] && !x->piece[l];
    }
    x->out = malloc((own * len + 1) * sizeof(*x->out));
    x->in = malloc((others * len + 1) * sizeof(*x->in));
    return x->out && x->in
               ? 0
               : ddp__fail(DDP_ENOMEM, "out of memory for gradients as bf16");
}

/* Slice r of a vector. */
static int send_slice(struct ddp__exchange *x, int to, void *vector, int r)
{
    const float *from = (void *)slice_of(x, vector, r);
    size_t len = slice_len(x, r);
    uint16_t *out = x->out + x->outs;

    if (!x->half)
        return ddp__messages_send(&x->m, to, from, slice_bytes(x, r));
    for (size_t i = 0; i < len; i++)
        out[i] = ddp__to_bf16(from[i]);
    x->outs += len;
    return ddp__messages_send(&x->m, to, out, len * sizeof(*out));
}

static void widen(float *to, const uint16_t *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = ddp__from_bf16(from[i]);
}

/* ---- pieces and sums ---------------------------------------------------- */

/* Send the other ranks' slices of a piece of ours. */
static int send_piece(struct ddp__exchange *x, void *piece)
{
    int rc = 0;

    for (int r = 0; r < x->split.ranks && rc == 0; r++)
        if (r != x->m.wire->rank)
            rc = send_slice(x, r, piece, r);
    return rc;
}

/* Those of other ranks get room, lane 0's too: the sum's may be that of our own
 * piece. */
static int place_pieces(struct ddp__exchange *x)
{
    int me = x->m.wire->rank;
    size_t bytes = slice_bytes(x, me), n = 0;

    for (int l = 0; l < x->split.used; l++)
        n += x->first[l] && !x->piece[l];
    if (!x->room && !(x->room = x->own_room = malloc(n * bytes + 1)))
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for %zu bytes from other "
                         "ranks",
                         n * bytes);
    n = 0;
    for (int l = 0; l < x->split.used; l++)
        if (x->first[l])
            x->block[l] = x->piece[l] ? slice_of(x, x->piece[l], me)
                                      : x->room + n++ * bytes;
    return 0;
}

static int exchange_pieces(struct ddp__exchange *x)
{
    int me = x->m.wire->rank, rc = place_pieces(x);
    uint16_t *in = x->in;

    for (int l = 0; l < x->split.used && rc == 0; l++) {
        if (!x->first[l])
            continue;
        if (x->piece[l]) {
            rc = send_piece(x, x->piece[l]);
        } else if (x->half) {
            rc = ddp__messages_receive(&x->m, rank_of(x, l), in,
                                       slice_len(x, me) * 2);
            in += slice_len(x, me);
        } else {
            rc = ddp__messages_receive(&x->m, rank_of(x, l), x->block[l],
                                       slice_bytes(x, me));
        }
    }
    return rc;
}

/* Into the room of the others' pieces. */
static void widen_pieces(struct ddp__exchange *x)
{
    size_t len = slice_len(x, x->m.wire->rank);
    const uint16_t *in = x->in;

    for (int l = 0; l < x->split.used; l++)
        if (x->first[l] && !x->piece[l]) {
            widen((void *)x->block[l], in, len);
            in += len;
        }
}

static int add(const struct ddp__exchange *x, void *to, const void *from,
               size_t len)
{
    if (x->space)
        return x->space->add(to, from, len);
    x->add(to, from, len);
    return 0;
}

static int copy(const struct ddp__exchange *x, void *to, const void *from,
                size_t bytes)
{
    if (x->space)
        return x->space->copy(to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

static int add_pieces(struct ddp__exchange *x)
{
    int me = x->m.wire->rank, rc = 0;
    size_t len = slice_len(x, me);
    struct ddp__merge m = {0};

    if (x->half)
        widen_pieces(x);
    if (x->space)
        rc = x->space->enter(x->device);
    while (rc == 0 && ddp__tree_next(x->split.used, &m))
        if (!ddp__merge_is_local(&x->split, &m))
            rc = add(x, x->block[m.to], x->block[m.from], len);
    if (rc == 0 && !x->piece[0])
        rc = copy(x, slice_of(x, x->sum, me), x->block[0], slice_bytes(x, me));
    if (rc == 0 && x->space)
        rc = x->space->wait();
    x->added = true;
    return rc;
}

/* Where another rank's slice of the sum arrives. */
static void *sum_of(struct ddp__exchange *x, int r)
{
    return x->half ? (void *)(x->in + ddp__exchange_begins(x, r) - x->begin)
                   : slice_of(x, x->sum, r);
}

static size_t sum_bytes(const struct ddp__exchange *x, int r)
{
    return slice_len(x, r) * (x->half ? sizeof(*x->in) : x->size);
}

/* Send our slice of the sum, and get the others. */
static int exchange_sums(struct ddp__exchange *x)
{
    int me = x->m.wire->rank, rc = 0;

    for (int r = 0; r < x->split.ranks && rc == 0; r++)
        if (r != me && (rc = send_slice(x, r, x->sum, me)) == 0)
            rc = ddp__messages_receive(&x->m, r, sum_of(x, r), sum_bytes(x, r));
    return rc;
}

static void widen_sums(struct ddp__exchange *x)
{
    for (int r = 0; r < x->split.ranks; r++)
        if (r != x->m.wire->rank)
            widen((void *)slice_of(x, x->sum, r), sum_of(x, r),
                  slice_len(x, r));
}

/* ---- an exchange --------------------------------------------------------- */

int ddp__exchange_begin(struct ddp__exchange *x, struct ddp__wire *w,
                        const struct ddp__split *s, int tag)
{
    size_t lanes = (size_t)s->lanes;
    int rc;

    x->split = *s;
    if ((rc = ddp__messages_new(&x->m, w, tag, (s->lanes + 2) * s->ranks)) < 0)
        return rc;
    x->first = calloc(lanes, sizeof(*x->first));
    x->block = calloc(lanes, sizeof(*x->block));
    if (!x->first || !x->block)
        return ddp__fail(DDP_ENOMEM, "out of memory for an exchange");
    ddp__pieces(s, x->first);
    if ((rc = make_half(x)) < 0)
        return rc;
    x->added = x->kind == DDP__ALL_GATHER;
    if (x->near)
        return ddp__near_sum_begin(x);
    return x->added ? exchange_sums(x) : exchange_pieces(x);
}

int ddp__exchange_poll(struct ddp__exchange *x)
{
    bool gathers = x->kind == DDP__ALL_REDUCE || x->kind == DDP__ALL_GATHER;
    int rc = ddp__messages_poll(&x->m);

    if (rc == 1 && !x->added) {
        rc = x->near ? ddp__near_sum_make(x) : add_pieces(x);
        if (rc == 0 && gathers && !x->near)
            rc = exchange_sums(x);
        rc = rc < 0 ? rc : ddp__messages_poll(&x->m);
    }
    if (rc == 1 && x->half && gathers && !x->over)
        widen_sums(x);
    x->over = rc == 1;
    return rc;
}

void ddp__exchange_end(struct ddp__exchange *x)
{
    if (!ddp__messages_over(&x->m))
        return;
    free(x->m.request);
    free(x->first);
    free(x->block);
    free(x->own_room);
    free(x->said);
    free(x->out);
    free(x->in);
}

/* ---- a vector of one rank ----------------------------------------------- */

enum { PASS_PART = 4 << 20, PASS_AHEAD = 4 }; /* bytes; parts at a time */

int ddp__pass_begin(struct ddp__pass *p, struct ddp__wire *w, int tag, int root,
                    void *data, size_t len)
{
    *p = (struct ddp__pass){.root = root, .data = data, .len = len};
    return ddp__messages_new(&p->m, w, tag, PASS_AHEAD * w->count);
}

static int pass_part(struct ddp__pass *p)
{
    size_t left = p->len - p->done, len = left < PASS_PART ? left : PASS_PART;
    char *data = p->data + p->done;
    int me = p->m.wire->rank, rc = 0;

    if (me != p->root)
        rc = ddp__messages_receive(&p->m, p->root, data, len);
    for (int r = 0; me == p->root && r < p->m.wire->count && rc == 0; r++)
        if (r != me)
            rc = ddp__messages_send(&p->m, r, data, len);
    p->done += len;
    return rc;
}

int ddp__pass_poll(struct ddp__pass *p)
{
    int rc = ddp__messages_poll(&p->m);

    while (rc == 1 && p->done < p->len) {
        rc = 0;
        for (int i = 0; rc == 0 && i < PASS_AHEAD && p->done < p->len; i++)
            rc = pass_part(p);
        if (rc == 0)
            rc = ddp__messages_poll(&p->m);
    }
    return rc;
}

void ddp__pass_end(struct ddp__pass *p)
{
    if (ddp__messages_over(&p->m))
        free(p->m.request);
}

/* ---- something small of every rank -------------------------------------- */

int ddp__gather_new(struct ddp__gather *g, struct ddp__wire *w, int tag,
                    size_t (*len)(const void *arg, int rank), const void *arg)
{
    int rc = ddp__messages_new(&g->m, w, tag, 2 * w->count);

    g->data = NULL;
    if (!(g->at = calloc((size_t)w->count + 1, sizeof(*g->at))) || rc < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for messages");
    for (int r = 0; r < w->count; r++)
        g->at[r + 1] = g->at[r] + len(arg, r);
    if (!(g->data = calloc(1, g->at[w->count] + 1)))
        return ddp__fail(DDP_ENOMEM, "out of memory for messages");
    return 0;
}

void *ddp__gather_of(const struct ddp__gather *g, int rank)
{
    return g->data + g->at[rank];
}

int ddp__gather_begin(struct ddp__gather *g)
{
    int me = g->m.wire->rank, rc = 0;

    for (int r = 0; r < g->m.wire->count && rc == 0; r++)
        if (r != me &&
            (rc = ddp__messages_send(&g->m, r, ddp__gather_of(g, me),
                                     g->at[me + 1] - g->at[me])) == 0)
            rc = ddp__messages_receive(&g->m, r, ddp__gather_of(g, r),
                                       g->at[r + 1] - g->at[r]);
    return rc;
}

int ddp__gather_poll(struct ddp__gather *g)
{
    return ddp__messages_poll(&g->m);
}

void ddp__gather_end(struct ddp__gather *g)
{
    if (!ddp__messages_over(&g->m))
        return;
    free(g->m.request);
    free(g->data);
    free(g->at);
}
