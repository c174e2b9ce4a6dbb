/* test_exchange.c - sums over ranks, which are threads here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The oracle is the tree by its definition: the sum of 2^k lanes is that of the
 * first half plus that of the second.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ddp.h"
#include "late_wire.h"
#include "tap.h"

enum { LANES = 64, LEN = 1003, CUT = 700, SUMS = TAGS / 2 };

/* ---- their values ------------------------------------------------------- */

static bool half; /* sums are rounded to bf16, and sent as such */

/* 8 bits of the fraction, as many as bf16 has, or those of its subnormals. */
static float rounded(float x)
{
    int e;

    if (!half || !isfinite(x))
        return x;
    frexp(x, &e);
    e = e - 8 < -133 ? -133 : e - 8;
    return (float)ldexp(rint(ldexp(x, -e)), e);
}

/* Values whose sum depends on the order, and special ones. */
static float value_at(int tag, int lane, int i)
{
    static const float special[] = {-0.0f,    1e-45f,    -1e-45f, 1e-40f, 3e38f,
                                    INFINITY, -INFINITY, NAN,     1e-38f};
    uint32_t x = (uint32_t)(tag * 7919 + lane * 1000003 + i) * 2654435761u;

    if (i % 10 == 0)
        return rounded(special[(x >> 8) % 9]);
    return rounded(
        ldexpf((float)(x >> 8) - (float)(1 << 23), (int)(x % 23) - 30));
}

static float tree(int tag, int lane, int lanes, int used, int i)
{
    float left;

    if (lanes == 1)
        return value_at(tag, lane, i);
    left = tree(tag, lane, lanes / 2, used, i);
    return lane + lanes / 2 < used
               ? rounded(left + tree(tag, lane + lanes / 2, lanes / 2, used, i))
               : left;
}

/* Bits that are a NaN's are equal to those of any other. */
static bool is_sum_in(int tag, int used, const float *sum, size_t from,
                      size_t to)
{
    int lanes = 1;

    while (lanes < used)
        lanes *= 2;
    for (size_t i = from; i < to; i++) {
        float want = tree(tag, 0, lanes, used, (int)i);

        if (!(isnan(want) && isnan(sum[i])) &&
            memcmp(&want, &sum[i], sizeof(want)))
            return false;
    }
    return true;
}

/* ---- vectors of a device ------------------------------------------------ */

/* Of each rank, who is a thread: what a stream has not done yet. */
static _Thread_local struct work {
    float *to;
    const float *from;
    size_t n;
    bool add;
} queue[64];
static _Thread_local int queued, at_device = -1;
static bool on_device;

static int device_enter(int device)
{
    at_device = device;
    return 0;
}

static int device_queue(float *to, const float *from, size_t n, bool add)
{
    if (queued == 64 || at_device != 5)
        return ddp__fail(DDP_EDEVICE, "no place for what device 5 has to do");
    queue[queued++] = (struct work){to, from, n, add};
    return 0;
}

static int device_copy(void *to, const void *from, size_t size)
{
    return device_queue(to, from, size / sizeof(float), false);
}

static int device_add(float *to, const float *from, size_t n)
{
    return device_queue(to, from, n, true);
}

static int device_wait(void)
{
    for (int i = 0; i < queued; i++)
        if (queue[i].add)
            ddp__add_f32(queue[i].to, queue[i].from, queue[i].n);
        else
            memcpy(queue[i].to, queue[i].from, queue[i].n * sizeof(float));
    queued = 0;
    at_device = -1;
    return 0;
}

static const struct ddp__space device = {.enter = device_enter,
                                         .copy = device_copy,
                                         .add = device_add,
                                         .wait = device_wait};

/* ---- sums --------------------------------------------------------------- */

/* The lanes of a rank, and what it has of the sum. */
struct vectors {
    float lane[LANES][LEN], sum[LEN], room[2][LANES * LEN];
    void *piece[LANES];
    void *near[LANES];
};
static struct vectors *vectors[RANKS]; /* of each rank: SUMS */

static void add_local(const struct rank *r, struct vectors *v)
{
    struct ddp__merge m = {0};

    while (ddp__tree_next(r->split.used, &m))
        if (ddp__merge_is_local(&r->split, &m) && v->piece[m.to]) {
            (half ? ddp__add_bf16 : ddp__add_f32)(v->piece[m.to],
                                                  v->piece[m.from], LEN);
            v->piece[m.from] = NULL;
        }
}

static void fill(const struct rank *r, int tag, struct vectors *v)
{
    for (int l = ddp__lanes_begin(r->split.lanes, r->split.ranks, r->wire.rank);
         l < ddp__lanes_begin(r->split.lanes, r->split.ranks, r->wire.rank + 1);
         l++) {
        for (int i = 0; i < LEN; i++)
            v->lane[l][i] = value_at(tag, l, i);
        v->piece[l] = l < r->split.used ? v->lane[l] : NULL;
    }
    add_local(r, v);
}

static bool near;       /* ranks read and write each other's vectors */
static int absent = -1; /* a rank whose data must not be touched */

static int first_lane(const struct rank *r)
{
    return ddp__lanes_begin(r->split.lanes, r->split.ranks, r->wire.rank);
}

/* Where all ranks have their pieces, and this one the sum. */
static void look_near(const struct rank *r, struct vectors *v, int tag,
                      struct ddp__exchange *x)
{
    const struct ddp__split *s = &r->split;
    bool first[LANES];

    ddp__pieces(&(struct ddp__split){s->lanes, s->lanes, s->ranks}, first);
    for (int l = 0; l < s->lanes; l++)
        v->near[l] =
            first[l]
                ? vectors[ddp__lanes_rank(s->lanes, s->ranks, l)][tag].lane[l]
                : NULL;
    x->near = v->near;
    x->absent = r->wire.rank == absent;
    x->sum = v->near[first_lane(r)];
}

static bool divided; /* each exchange is made of its two halves */
static bool rooted;  /* one rank alone gets the sum */

/* One of the two parts of a vector. */
static void begin_part(struct rank *r, struct vectors *v, int tag, int part,
                       struct ddp__exchange *x)
{
    *x = (struct ddp__exchange){.kind = rooted    ? DDP__REDUCE
                                        : divided ? DDP__REDUCE_SCATTER
                                                  : DDP__ALL_REDUCE,
                                .root = (2 * tag + part) % r->split.ranks,
                                .piece = v->piece,
                                .sum = v->piece[0] ? v->piece[0] : v->sum,
                                .begin = part ? CUT : 0,
                                .end = part ? LEN : CUT,
                                .size = sizeof(float),
                                .half = half,
                                .add = half ? ddp__add_bf16 : ddp__add_f32};
    if (on_device) {
        x->space = &device;
        x->device = 5;
        x->room = (char *)v->room[part];
    }
    if (near)
        look_near(r, v, tag, x);
    ddp__exchange_begin(x, &r->wire, &r->split, 2 * tag + part);
}

/* What is not this rank's slice of the sum is for the second half to bring. */
static void begin_gather(struct rank *r, int tag, struct ddp__exchange *x)
{
    struct ddp__exchange first = *x;
    size_t n = x->end - x->begin;
    size_t from = ddp__slice_begin(n, r->split.ranks, r->wire.rank);
    size_t to = ddp__slice_begin(n, r->split.ranks, r->wire.rank + 1);
    float *sum = x->sum;

    for (size_t i = 0; i < n; i++)
        if (!near && (i < from || i >= to))
            sum[x->begin + i] = -7;
    ddp__exchange_end(&first);
    *x = (struct ddp__exchange){.kind = DDP__ALL_GATHER,
                                .piece = first.piece,
                                .sum = sum,
                                .begin = first.begin,
                                .end = first.end,
                                .size = first.size,
                                .half = first.half,
                                .near = first.near};
    ddp__exchange_begin(x, &r->wire, &r->split, tag);
}

static int poll_part(struct rank *r, int tag, struct ddp__exchange *x)
{
    int rc = ddp__exchange_poll(x);

    if (rc != 1 || x->kind != DDP__REDUCE_SCATTER)
        return rc;
    begin_gather(r, tag, x);
    return 0;
}

/* A rank's first piece, before anything is added to it by others. */
static bool is_untouched(const struct rank *r, const struct vectors *v, int tag)
{
    struct vectors *own = calloc(1, sizeof(*own));
    int l = first_lane(r);
    bool same;

    fill(r, tag, own);
    same = !memcmp(own->lane[l], v->lane[l], sizeof(own->lane[l]));
    free(own);
    return same;
}

/* The ranks begin their exchanges in different orders. */
static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct vectors *v = vectors[r->wire.rank];
    struct ddp__exchange x[2 * SUMS] = {0};
    int done = 0;

    for (int k = 0; k < SUMS; k++) {
        int tag = (k + r->wire.rank) % SUMS;

        fill(r, tag, &v[tag]);
        begin_part(r, &v[tag], tag, 1, &x[2 * tag + 1]);
        begin_part(r, &v[tag], tag, 0, &x[2 * tag]);
    }
    while (done < 2 * SUMS) {
        done = 0;
        for (int i = 0; i < 2 * SUMS; i++)
            done += poll_part(r, i, &x[i]) == 1;
    }
    r->good = true;
    for (int i = 0; i < 2 * SUMS; i++) {
        if (absent >= 0)
            r->good &= is_untouched(r, &v[i / 2], i / 2);
        else if (!rooted || x[i].root == r->wire.rank)
            r->good &=
                is_sum_in(i / 2, r->split.used, x[i].sum, x[i].begin, x[i].end);
        ddp__exchange_end(&x[i]);
    }
    return NULL;
}

static bool equal_sums(int lanes, int used, int ranks)
{
    struct rank r[RANKS] = {0};
    bool good = true;

    renumber();
    for (int i = 0; i < ranks; i++) {
        r[i].wire = wire_of(i, ranks);
        r[i].split = (struct ddp__split){lanes, used, ranks};
        vectors[i] = calloc(SUMS, sizeof(*vectors[i]));
    }
    for (int i = 0; i < ranks; i++)
        pthread_create(&r[i].thread, NULL, run_rank, &r[i]);
    for (int i = 0; i < ranks; i++) {
        pthread_join(r[i].thread, NULL);
        good &= r[i].good;
    }
    for (int i = 0; i < ranks; i++)
        free(vectors[i]);
    return good && !messages;
}

static void test_sums(void)
{
    static const int of[][2] = {{8, 8}, {8, 3}, {12, 12}, {24, 17}, {13, 1}};

    for (int n = 2; n <= 8; n++) {
        bool good = true;

        for (int i = 0; i < 5; i++)
            good &= equal_sums(of[i][0], of[i][1], n);
        ok(good,
           "%d ranks: the sums of 8, 3, 12, 17 and 1 lanes are those of "
           "one rank",
           n);
    }
}

/* Half the bytes, and the same tree: still no rank's number shows. */
static void test_halves(void)
{
    size_t whole;
    bool good = true;

    bytes = 0;
    for (int n = 2; n <= 5; n++)
        good &= equal_sums(12, 11, n);
    whole = bytes;
    bytes = 0;
    half = true;
    for (int n = 2; n <= 5; n++)
        good &= equal_sums(12, 11, n);
    half = false;
    ok(good, "sums that are sent as bf16 are those of one rank, rounded");
    ok(bytes > 0 && 2 * bytes == whole, "and have half as many bytes");
}

/* As many bytes, and the same sums. */
static void test_divided(void)
{
    size_t whole;
    bool good = true;

    for (int i = 0; i < 3; i++) {
        half = i == 1;
        on_device = i == 2;
        bytes = 0;
        good &= equal_sums(12, 11, 5) && equal_sums(8, 3, 4);
        whole = bytes;
        bytes = 0;
        divided = true;
        good &= equal_sums(12, 11, 5) && equal_sums(8, 3, 4);
        divided = false;
        good &= bytes == whole;
    }
    half = on_device = false;
    ok(good, "a reduce-scatter and then an all-gather make the same sums, of "
             "as many bytes, also as bf16 and on a device");
}

/* The root of each part is another rank: n - 1 of n pieces travel once. */
static void test_rooted(void)
{
    size_t whole;
    bool good = true;

    for (int i = 0; i < 3; i++) {
        half = i == 1;
        on_device = i == 2;
        bytes = 0;
        good &= equal_sums(8, 8, 4);
        whole = bytes;
        bytes = 0;
        rooted = true;
        good &= equal_sums(8, 8, 4) && 2 * bytes == whole;
        good &= equal_sums(12, 11, 5) && equal_sums(8, 3, 4);
        rooted = false;
    }
    half = on_device = false;
    ok(good, "one rank alone gets the same sum, of half as many bytes, also "
             "as bf16 and on a device");
}

/* Each rank sends each other two notices of a byte. */
static void test_near(void)
{
    static const int of[][3] = {
        {8, 8, 2}, {8, 3, 4}, {12, 11, 5}, {24, 17, 8}, {13, 1, 3}};
    bool good = true;

    near = true;
    for (int i = 0; i < 15; i++) {
        const int *s = of[i % 5];

        divided = i / 5 == 1;
        rooted = i / 5 == 2;
        bytes = 0;
        good &= equal_sums(s[0], s[1], s[2]) &&
                bytes == (size_t)(2 * SUMS * 2 * s[2] * (s[2] - 1));
    }
    divided = rooted = false;
    ok(good, "so are those in memory that ranks share, of notices alone");
    absent = 1;
    ok(equal_sums(8, 8, 4) && equal_sums(12, 11, 3),
       "and no rank's pieces are touched when one has no data");
    absent = -1;
    near = false;
}

static void test_device(void)
{
    bool good = true;

    on_device = true;
    for (int n = 2; n <= 5; n++)
        good &= equal_sums(12, 11, n);
    on_device = false;
    ok(good, "so are those that a device adds in its own memory");
}

static void test_failure(void)
{
    struct ddp__wire w = wire_of(0, 2);
    struct ddp__split s = {4, 4, 2};
    struct vectors *v = calloc(1, sizeof(*v));
    struct ddp__exchange x = {.piece = v->piece,
                              .sum = v->lane[0],
                              .begin = 0,
                              .end = LEN,
                              .size = sizeof(float),
                              .add = ddp__add_f32};

    broken = true;
    v->piece[0] = v->lane[0];
    is_int(ddp__exchange_begin(&x, &w, &s, 0), DDP_EIO,
           "a message that cannot be sent is an error");
    is_str(ddp_errmsg(), "messages between ranks: the cable is cut",
           "with the reason");
    broken = false;
    x.m.count = 0;
    ddp__exchange_end(&x);
    free(v);
}

int main(void)
{
    test_sums();
    test_halves();
    test_device();
    test_divided();
    test_rooted();
    test_near();
    test_failure();
    return done_testing();
}
