/* test_exchange_parts.c - who has what of a sum, and long vectors in parts
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "engine/parts.h"
#include "late_wire.h"
#include "tap.h"

enum { LANES = 64 };

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

    renumber();
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

int main(void)
{
    test_pieces();
    test_shares();
    test_staging();
    return done_testing();
}
