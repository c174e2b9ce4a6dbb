/* test_exchange.c - sums over ranks, which are threads here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The oracle is the tree by its definition: the sum of 2^k lanes is that of the
 * first half plus that of the second.  Messages are late and overtake those of
 * other tags.
 */
#include "config.h"

#include <math.h>
#include <pthread.h>

#include "base/error.h"
#include "ddp.h"
#include "engine/exchange.h"
#include "engine/parts.h"
#include "runtime/hello.h"
#include "tap.h"

enum { LANES = 64, RANKS = 16, LEN = 1003, CUT = 700, SUMS = 3 };
enum { TAGS = 2 * SUMS };

/* ---- who has what ------------------------------------------------------- */

/* The lanes that a sum covers: [begin, end). */
struct cover {
    int begin, end;
};

/* Make an addition; false: the blocks do not follow each other. */
static bool join(struct cover *c, const struct ddp__merge *m)
{
    bool follows = c[m->to].end == c[m->from].begin;

    c[m->to].end = c[m->from].end;
    c[m->from] = (struct cover){0};
    return follows;
}

static bool covers(const struct ddp__split *s)
{
    struct cover c[LANES];
    struct ddp__merge m = {0};
    bool first[LANES], good = true;

    for (int l = 0; l < LANES; l++)
        c[l] = (struct cover){l, l + 1};
    while (ddp__tree_next(s->used, &m))
        if (ddp__merge_is_local(s, &m))
            good &= join(c, &m);
    ddp__pieces(s, first);
    for (int l = 0; l < s->used; l++)
        good &= first[l] == (c[l].end > c[l].begin) &&
                (!first[l] ||
                 ddp__lanes_rank(s->lanes, s->ranks, l) ==
                     ddp__lanes_rank(s->lanes, s->ranks, c[l].end - 1));
    m = (struct ddp__merge){0};
    while (ddp__tree_next(s->used, &m))
        if (!ddp__merge_is_local(s, &m))
            good &= first[m.to] && first[m.from] && join(c, &m);
    return good && c[0].begin == 0 && c[0].end == s->used;
}

static void test_pieces(void)
{
    int wrong = 0, tried = 0;
    struct ddp__split s;

    for (s.lanes = 1; s.lanes <= LANES; s.lanes++)
        for (s.ranks = 1; s.ranks <= RANKS; s.ranks++)
            for (s.used = 1; s.used <= s.lanes; s.used++, tried++)
                wrong += !covers(&s);
    is_int(wrong, 0, "the pieces of %d splits are those of the tree", tried);
}

static void test_shares(void)
{
    int wrong = 0;

    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int n = 1; n <= RANKS; n++)
            for (int r = 0; r < n; r++) {
                int begin = ddp__lanes_begin(lanes, n, r);
                int end = ddp__lanes_begin(lanes, n, r + 1);

                wrong +=
                    end - begin != lanes / n && end - begin != lanes / n + 1;
                for (int l = begin; l < end; l++)
                    wrong += ddp__lanes_rank(lanes, n, l) != r;
            }
    is_int(wrong, 0, "every lane has one rank, and shares differ by 1 at most");
}

/* ---- a wire between threads --------------------------------------------- */

/* The k-th message from a rank to another with a tag. */
struct message {
    struct message *next;
    int from, to, tag, number;
    int late; /* tests that do not see it yet */
    size_t len;
    char data[];
};

struct request {
    int from, tag, number;
    void *data; /* NULL: it is sent */
    size_t len;
    int late;
};

/* Where a rank has its vectors, and how many bytes are or will be received in
 * other places. */
static struct {
    const char *begin, *end;
    size_t staged, most;
} place[RANKS];

static size_t staged_bytes(int rank, const struct request *r)
{
    const char *at = r->data;

    return at < place[rank].begin || at >= place[rank].end ? r->len : 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct message *messages;
static int sent[RANKS][RANKS][TAGS], asked[RANKS][RANKS][TAGS];
static size_t bytes; /* of all messages */
static bool broken;  /* messages are refused */

static int delay(void)
{
    static _Thread_local uint32_t state;

    state = state * 1664525u + 1013904223u + (uint32_t)(uintptr_t)&state;
    return (int)(state >> 29);
}

static int wire_send(struct ddp__wire *w, int to, int tag, const void *data,
                     size_t len, uintptr_t *request)
{
    struct message *m = malloc(sizeof(*m) + len);
    struct request *r = calloc(1, sizeof(*r));

    if (broken) {
        free(m);
        free(r);
        snprintf(w->why, sizeof(w->why), "the cable is cut");
        return DDP_EIO;
    }
    *m = (struct message){NULL, w->rank, to, tag, 0, delay(), len};
    memcpy(m->data, data, len);
    r->late = delay();
    *request = (uintptr_t)r;
    pthread_mutex_lock(&lock);
    m->number = sent[w->rank][to][tag]++;
    bytes += len;
    m->next = messages;
    messages = m;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int wire_recv(struct ddp__wire *w, int from, int tag, void *data,
                     size_t len, uintptr_t *request)
{
    struct request *r = calloc(1, sizeof(*r));

    *r = (struct request){from, tag, 0, data, len, 0};
    pthread_mutex_lock(&lock);
    r->number = asked[from][w->rank][tag]++;
    pthread_mutex_unlock(&lock);
    place[w->rank].staged += staged_bytes(w->rank, r);
    if (place[w->rank].most < place[w->rank].staged)
        place[w->rank].most = place[w->rank].staged;
    *request = (uintptr_t)r;
    return 0;
}

static bool take(const struct ddp__wire *w, const struct request *r)
{
    for (struct message **m = &messages; *m; m = &(*m)->next) {
        struct message *is = *m;

        if (is->to != w->rank || is->from != r->from || is->tag != r->tag ||
            is->number != r->number)
            continue;
        if (is->late-- > 0)
            return false;
        if (is->len != r->len)
            bail_out("%zu bytes came, %zu were expected", is->len, r->len);
        memcpy(r->data, is->data, is->len);
        *m = is->next;
        free(is);
        return true;
    }
    return false;
}

static int wire_test(struct ddp__wire *w, uintptr_t *request)
{
    struct request *r = (struct request *)*request;
    bool done;

    if (r->data) {
        pthread_mutex_lock(&lock);
        done = take(w, r);
        pthread_mutex_unlock(&lock);
        place[w->rank].staged -= done ? staged_bytes(w->rank, r) : 0;
    } else {
        done = r->late-- <= 0;
    }
    if (!done)
        return 0;
    free(r);
    *request = 0;
    return 1;
}

static const char hosts[RANKS][DDP__HOST_NAME] = {"a", "b", "c", "d"};

static struct ddp__wire wire_of(int rank, int count)
{
    return (struct ddp__wire){.rank = rank,
                              .count = count,
                              .tags = TAGS + 1,
                              .hosts = hosts,
                              .send = wire_send,
                              .recv = wire_recv,
                              .test = wire_test};
}

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

struct rank {
    pthread_t thread;
    struct ddp__wire wire;
    struct ddp__split split;
    bool good;
};

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

    memset(sent, 0, sizeof(sent));
    memset(asked, 0, sizeof(asked));
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

/* ---- a long vector ------------------------------------------------------ */

enum { LONG = 9 << 20, LONG_RANKS = 3 };

/* Rank 2 has two lanes of the four. */
static struct ddp__parts parts_of(int rank, void **piece, float *sum)
{
    int first = rank, last = rank == 2 ? 3 : rank;

    for (int l = first; l <= last; l++)
        for (size_t i = 0; i < LONG; i++)
            ((float *)(piece[rank] = sum))[i] += (float)(l + (int)(i % 7));
    return (struct ddp__parts){.all = {.piece = piece,
                                       .sum = sum,
                                       .size = sizeof(float),
                                       .add = ddp__add_f32},
                               .len = LONG,
                               .others = LONG_RANKS - 1};
}

static bool is_long_sum(const float *sum)
{
    for (size_t i = 0; i < LONG; i++)
        if (sum[i] != (float)(6 + 4 * (int)(i % 7)))
            return false;
    return true;
}

/* All ranks in turn; rank 0 is often late. */
static bool poll_long(struct ddp__parts *p, struct ddp__wire *w)
{
    static const struct ddp__split s = {4, 4, LONG_RANKS};
    int over = 0;

    for (int round = 0; over < LONG_RANKS; round++) {
        over = 0;
        for (int r = 0; r < LONG_RANKS; r++) {
            int rc =
                r == 0 && round % 5 ? 0 : ddp__parts_poll(&p[r], &w[r], &s, 0);

            if (rc < 0)
                return false;
            over += rc == 1;
        }
    }
    return true;
}

/* docs/nodes.md: at most four parts of 2 MiB are under way, and of each a rank
 * stages its slice, a third, of two pieces of others. */
static void test_staging(void)
{
    const size_t bound = (size_t)4 * 2 * ((2 << 20) / LONG_RANKS + 4);
    static void *piece[LONG_RANKS][4];
    struct ddp__parts p[LONG_RANKS];
    struct ddp__wire w[LONG_RANKS];
    float *sum = calloc((size_t)LONG_RANKS * LONG, sizeof(*sum));
    bool good = true, bounded = true;

    memset(sent, 0, sizeof(sent));
    memset(asked, 0, sizeof(asked));
    for (int r = 0; r < LONG_RANKS; r++) {
        float *own = sum + (size_t)r * LONG;

        w[r] = wire_of(r, LONG_RANKS);
        p[r] = parts_of(r, piece[r], own);
        place[r].begin = (char *)own;
        place[r].end = (char *)(own + LONG);
        place[r].staged = place[r].most = 0;
    }
    good = poll_long(p, w);
    for (int r = 0; r < LONG_RANKS; r++) {
        good &= is_long_sum(sum + (size_t)r * LONG);
        bounded &= place[r].most > bound / 2 && place[r].most <= bound;
        diag("rank %d stages %zu bytes of %zu", r, place[r].most, bound);
        ddp__parts_free(&p[r]);
    }
    ok(good && !messages, "a long vector is summed in parts");
    ok(bounded, "and what a rank stages of others is bounded");
    free(sum);
}

/* ---- something of every rank -------------------------------------------- */

static size_t len_of(const void *arg, int rank)
{
    (void)arg;
    return (size_t)rank * 3;
}

static void *gather_rank(void *arg)
{
    struct rank *r = arg;
    struct ddp__gather g;

    ddp__gather_new(&g, &r->wire, 1, len_of, NULL);
    memset(ddp__gather_of(&g, r->wire.rank), 'a' + r->wire.rank,
           len_of(NULL, r->wire.rank));
    ddp__gather_begin(&g);
    while (ddp__gather_poll(&g) == 0)
        ;
    r->good = memcmp(g.data, "bbbccccccddddddddd", 18) == 0;
    ddp__gather_end(&g);
    return NULL;
}

/* Rank 2 has it; of more than two parts. */
static void *pass_rank(void *arg)
{
    enum { SIZE = (9 << 20) + 5 };
    struct rank *r = arg;
    char *data = calloc(1, SIZE);
    struct ddp__pass p;

    for (size_t i = 0; r->wire.rank == 2 && i < SIZE; i++)
        data[i] = (char)(i % 251);
    ddp__pass_begin(&p, &r->wire, 1, 2, data, SIZE);
    while (ddp__pass_poll(&p) == 0)
        ;
    ddp__pass_end(&p);
    r->good = true;
    for (size_t i = 0; i < SIZE; i++)
        r->good &= data[i] == (char)(i % 251);
    free(data);
    return NULL;
}

static void test_four(void *(*run)(void *rank), const char *what)
{
    struct rank r[4] = {0};
    bool good = true;

    for (int i = 0; i < 4; i++) {
        r[i].wire = wire_of(i, 4);
        pthread_create(&r[i].thread, NULL, run, &r[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(r[i].thread, NULL);
        good &= r[i].good;
    }
    ok(good && !messages, "every rank gets what %s", what);
}

/* ---- the first message -------------------------------------------------- */

static void *say_hello(void *arg)
{
    struct rank *r = arg;
    const char *version = r->wire.rank == 2 ? "libddp 2" : "libddp 1";
    const char *want = "rank 2 (c) has libddp 2, but rank 0 (a) has libddp 1: "
                       "install the same version everywhere";

    r->good = ddp__hello_exchange(&r->wire, version, 0) == DDP_EINVAL &&
              !strcmp(ddp_errmsg(), want);
    return NULL;
}

static void test_hello(void)
{
    struct ddp__hello all[3] = {{DDP__HELLO_ORDER, "1", "a"},
                                {DDP__HELLO_ORDER, "1", "b"},
                                {DDP__HELLO_ORDER, "1", "c"}};
    struct rank r[3] = {0};
    bool good = true;

    memset(sent, 0, sizeof(sent));
    memset(asked, 0, sizeof(asked));
    for (int i = 0; i < 3; i++) {
        r[i].wire = wire_of(i, 3);
        pthread_create(&r[i].thread, NULL, say_hello, &r[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(r[i].thread, NULL);
        good &= r[i].good;
    }
    ok(good && !messages, "another version is refused by all ranks, by name");
    r[0].wire = wire_of(0, 2);
    ok(ddp__hello_exchange(&r[0].wire, "libddp 1", 0.05) == DDP_EPEER &&
           strstr(ddp_errmsg(), "rank 1 (b) has sent nothing"),
       "a rank that says nothing is not waited for without end");
    is_int(ddp__hello_compare(all, 3), 0, "equal ranks work together");
    all[1].order = UINT32_C(0x04030201);
    ok(ddp__hello_compare(all, 3) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "rank 1 (b) has another byte order"),
       "another byte order is refused");
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
    test_pieces();
    test_shares();
    test_sums();
    test_halves();
    test_device();
    test_divided();
    test_rooted();
    test_near();
    test_staging();
    test_four(gather_rank, "each has");
    test_four(pass_rank, "one has");
    test_hello();
    test_failure();
    return done_testing();
}
