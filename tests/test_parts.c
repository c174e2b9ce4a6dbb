/* test_parts.c - long sums over ranks, from and to the memory of a GPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The ranks take turns in one thread.  The GPU is memory to which only its
 * copies lead, and these are made when the exchange asks for them a second
 * time: what is sent before it has come, or stored to where another part is,
 * gives other sums.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "engine/parts.h"
#include "tap.h"

enum { RANKS = 3, PARTS = 6, PART = 1 << 19, GUARD = 64 };
enum { LEN = PARTS * PART - 12345 };

/* ---- a GPU -------------------------------------------------------------- */

struct copies {
    struct copies *next;
    void *to;
    const void *from; /* NULL: a ticket */
    size_t size;
    int asked;
    bool out;
};

static struct copies *queue[2]; /* by direction: the newest first */
static int coming;              /* parts that are being fetched */
static size_t copied[2];        /* bytes, by direction */
static int overlapped;          /* messages that were sent meanwhile */

static int enter(int device)
{
    return device == 7 ? 0 : ddp__fail(DDP_EDEVICE, "not the GPU");
}

static struct copies *append(bool out, struct copies c)
{
    struct copies *new = malloc(sizeof(*new));

    if (!new)
        bail_out("out of memory");
    c.next = queue[out];
    *new = c;
    return queue[out] = new;
}

static int carry(void *to, const void *from, size_t size, bool out)
{
    append(out, (struct copies){.to = to, .from = from, .size = size});
    copied[out] += size;
    return 0;
}

static int mark(bool out, void **ticket)
{
    *ticket = append(out, (struct copies){.out = out});
    coming += out;
    return 0;
}

/* The copies up to this ticket, which others may follow. */
static int passed(void **ticket)
{
    struct copies *t = *ticket;

    if (t->asked++ == 0)
        return 0;
    for (struct copies *c = t->next; c && c->from; c = c->next) {
        memcpy(c->to, c->from, c->size);
        c->size = 0;
    }
    *ticket = NULL;
    coming -= t->out;
    return 1;
}

static const struct ddp__space gpu = {
    .enter = enter, .carry = carry, .mark = mark, .passed = passed};

/* ---- messages ----------------------------------------------------------- */

struct message {
    struct message *next;
    int from, to, tag;
    size_t len;
    const void *data;
    bool taken;
};

struct request {
    struct request *next;
    struct ddp__wire *w;
    int from, tag;
    void *data;
    size_t len;
    struct message *sent;
    bool done;
};

static struct message *first, **end = &first;
static struct request *posted; /* to be received */

static int send(struct ddp__wire *w, int to, int tag, const void *data,
                size_t len, uintptr_t *request)
{
    struct message *m = calloc(1, sizeof(*m));
    struct request *r = calloc(1, sizeof(*r));

    if (!m || !r)
        bail_out("out of memory");
    *m = (struct message){NULL, w->rank, to, tag, len, data, false};
    *end = m;
    end = &m->next;
    r->sent = m;
    *request = (uintptr_t)r;
    overlapped += coming > 0;
    return 0;
}

static int recv(struct ddp__wire *w, int from, int tag, void *data, size_t len,
                uintptr_t *request)
{
    struct request *r = calloc(1, sizeof(*r));

    if (!r)
        bail_out("out of memory");
    *r = (struct request){posted, w, from, tag, data, len, NULL, false};
    posted = r;
    *request = (uintptr_t)r;
    return 0;
}

static bool take(const struct request *r)
{
    struct message *m = first;

    while (m && (m->taken || m->from != r->from || m->to != r->w->rank ||
                 m->tag != r->tag))
        m = m->next;
    if (!m)
        return false;
    if (m->len != r->len)
        bail_out("%zu bytes came, %zu were expected", m->len, r->len);
    memcpy(r->data, m->data, m->len);
    return m->taken = true;
}

/* Whoever asks, all arrive that can, as with an MPI. */
static int test(struct ddp__wire *w, uintptr_t *request)
{
    struct request *r = (struct request *)*request;

    (void)w;
    for (struct request *p = posted; p; p = p->next)
        p->done = p->done || take(p);
    if (!(r->sent ? r->sent->taken : r->done))
        return 0;
    if (r->sent)
        free(r);
    *request = 0;
    return 1;
}

static void free_all(void)
{
    for (int i = 0; i < 2; i++)
        for (struct copies *c; (c = queue[i]); free(c))
            queue[i] = c->next;
    for (struct message *m; (m = first); free(m))
        first = m->next;
    for (struct request *r; (r = posted); free(r))
        posted = r->next;
    end = &first;
}

/* ---- sums --------------------------------------------------------------- */

struct rank {
    struct ddp__wire wire;
    struct ddp__parts parts;
    void *piece[RANKS];
    float *vector, *sum, *room, *theirs; /* theirs: room for others' pieces */
    size_t room_len;
    int rc;
};

/* Sums of these depend on the order. */
static float value_at(int rank, size_t i)
{
    uint32_t x = (uint32_t)(i + 1) * 2654435761u + (uint32_t)rank * 40503u;

    return ldexpf((float)(x >> 8) - (float)(1 << 23), (int)(x % 23) - 30);
}

static float *new_vector(size_t len)
{
    float *v = malloc(len * sizeof(*v));

    if (!v)
        bail_out("out of memory");
    for (size_t i = 0; i < len; i++)
        v[i] = NAN;
    return v;
}

static void begin(struct rank *r, int rank, int ranks, bool half)
{
    r->wire = (struct ddp__wire){.rank = rank,
                                 .count = ranks,
                                 .tags = PARTS + 1,
                                 .send = send,
                                 .recv = recv,
                                 .test = test};
    r->vector = new_vector(LEN);
    for (size_t i = 0; i < LEN; i++)
        r->vector[i] = value_at(rank, i);
    if (half)
        ddp__round_to_bf16(r->vector, LEN);
    r->piece[rank] = r->vector;
    r->sum = rank ? new_vector(LEN) : r->vector;
    r->room_len = ddp__parts_stage(LEN, ranks, 1);
    r->room = new_vector(r->room_len + GUARD);
    r->theirs = new_vector(ddp__parts_room(LEN, ranks, ranks - 1, false));
    r->parts =
        (struct ddp__parts){.all = {.piece = r->piece,
                                    .sum = r->sum,
                                    .room = (char *)r->theirs,
                                    .size = sizeof(float),
                                    .half = half,
                                    .add = half ? ddp__add_bf16 : ddp__add_f32},
                            .len = LEN,
                            .ours = 1,
                            .others = ranks - 1,
                            .stage = {&gpu, 7, (char *)r->room}};
}

static float sum_at(int ranks, size_t i, bool half)
{
    float v[RANKS] = {0};

    for (int r = 0; r < ranks; r++)
        v[r] = value_at(r, i);
    if (half)
        ddp__round_to_bf16(v, RANKS);
    v[0] += v[1];
    if (half)
        ddp__round_to_bf16(v, 1);
    if (ranks < 3)
        return v[0];
    v[0] += v[2];
    if (half)
        ddp__round_to_bf16(v, 1);
    return v[0];
}

static bool is_good(const struct rank *r, int ranks, bool half)
{
    for (size_t i = 0; i < LEN; i++)
        if (r->sum[i] != sum_at(ranks, i, half))
            return false;
    return true;
}

/* Whether nobody wrote behind the room. */
static bool is_bounded(const struct rank *r)
{
    for (size_t i = 0; i < GUARD; i++)
        if (!isnan(r->room[r->room_len + i]))
            return false;
    return r->room_len <= 4 * 2 * PART;
}

static void end_rank(struct rank *r)
{
    ddp__parts_free(&r->parts);
    if (r->sum != r->vector)
        free(r->sum);
    free(r->vector);
    free(r->room);
    free(r->theirs);
}

/* The second half, in which a sum has no more than this rank's slices. */
static void begin_gather(struct rank *r, int ranks)
{
    struct ddp__parts before = r->parts;

    ddp__parts_free(&r->parts);
    for (int i = 0; i < PARTS; i++) {
        size_t from, to, own[2];

        ddp__parts_slice(LEN, ranks, 0, i, &from, &to);
        ddp__parts_slice(LEN, ranks, r->wire.rank, i, &own[0], &own[1]);
        ddp__parts_slice(LEN, ranks, ranks - 1, i, &(size_t){0}, &to);
        for (size_t k = from; k < to; k++)
            if (k < own[0] || k >= own[1])
                r->sum[k] = NAN;
    }
    memset(r->piece, 0, sizeof(r->piece));
    r->piece[0] = r->sum;
    r->parts = (struct ddp__parts){.all = {.kind = DDP__ALL_GATHER,
                                           .piece = r->piece,
                                           .sum = r->sum,
                                           .size = sizeof(float),
                                           .half = before.all.half},
                                   .len = LEN,
                                   .stage = before.stage};
}

static void run(struct rank *r, int ranks)
{
    struct ddp__split s = {ranks, ranks, ranks};
    int done = 0;

    for (int i = 0; i < ranks; i++)
        r[i].rc = 0;
    while (done < ranks) {
        done = 0;
        for (int i = 0; i < ranks; i++) {
            if (r[i].rc == 0)
                r[i].rc = ddp__parts_poll(&r[i].parts, &r[i].wire, &s, 0);
            if (r[i].rc < 0)
                bail_out("%s", ddp_errmsg());
            done += r[i].rc == 1;
        }
    }
}

/* At once, or in two halves: of each a rank copies a slice in one direction. */
static void run_halves(struct rank *r, int ranks)
{
    size_t all = (size_t)ranks * LEN * sizeof(float);

    for (int i = 0; i < ranks; i++)
        r[i].parts.all.kind = DDP__REDUCE_SCATTER;
    run(r, ranks);
    for (int i = 0; i < ranks; i++)
        begin_gather(&r[i], ranks);
    run(r, ranks);
    is_int(copied[1] == all + all / (size_t)ranks && copied[0] == copied[1], 1,
           "of both halves only slices are copied twice");
}

static void test_sums(int ranks, bool half, bool divided)
{
    struct rank r[RANKS] = {0};
    bool good = true, bounded = true;

    overlapped = 0;
    copied[0] = copied[1] = 0;
    for (int i = 0; i < ranks; i++)
        begin(&r[i], i, ranks, half);
    if (divided)
        run_halves(r, ranks);
    else
        run(r, ranks);
    for (int i = 0; i < ranks; i++) {
        good &= is_good(&r[i], ranks, half);
        bounded &= is_bounded(&r[i]);
        end_rank(&r[i]);
    }
    free_all();
    is_int(good, 1, "%d ranks, %s on the wire%s: the tree's sums of %d parts",
           ranks, half ? "bf16" : "f32", divided ? ", in two halves" : "",
           PARTS);
    is_int(bounded, 1, "in main memory there are at most four of them");
    is_int(overlapped > 0, 1, "some are copied while others travel");
}

int main(void)
{
    for (int ranks = 2; ranks <= RANKS; ranks++)
        for (int half = 0; half < 2; half++)
            for (int divided = 0; divided < 2; divided++)
                test_sums(ranks, half, divided);
    return done_testing();
}
