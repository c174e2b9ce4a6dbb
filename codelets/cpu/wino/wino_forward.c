/* wino_forward.c - forward passes by products of transformed tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tiles go through in groups: all of a group are transformed, multiplied by the
 * weights of one position after the other, and transformed back.  Where all
 * matrices of weights fit into the second-level cache, so should a group's
 * data; where not, a group is large, so that the weights are read seldom.
 *
 * With AVX-512 only weights of f32 of more than 16 MB have large groups: what a
 * group keeps in the cache saves more than the weights cost, since these are
 * fetched ahead; and large results go past the caches.  Two cores of an Intel
 * Xeon with AMX under load, each with 16 images, least milliseconds of one
 * before that and after:
 *
 *     56x56x64  8.7  8.3    8x8x256 (32 images)    5.4  4.3
 *     28x28x128 8.3  7.1    16x16x256 (32 images) 21.0 16.0
 *     14x14x256 8.7  8.2    32x32x128 (32 images) 23.0 18.4
 *     4x4x512   3.9  2.2    7x7x512 (8 images)     4.7  4.7
 *
 * Products alone reach 175 to 185 GFLOP/s there, which is 5.1 ms for the first
 * two and 6.7 for 14x14x256; of 56x56x64 the transforms take a quarter.  Blocks
 * of output channels for all positions, with the tiles in the cache, were
 * slower: weights come from 36 places then.
 *
 * Both cores of a Zen 4, milliseconds of processor time of a layer in steps of
 * ResNet-18 (16 images) and VGG-16 (8 images), with groups as they are without
 * AVX-512 and with these: 56x56x64 13.2 11.8, 28x28x128 11.2 10.3, 14x14x256
 * 14.6 12.4; 56x56x256 94 78.
 */
#include "config.h"

#include <stdint.h>

#include "base/team.h"
#include "cpu/product/gemm.h"
#include "cpu/product/gemm_t.h"
#include "cpu/product/i16_round.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "wino_forward.h"
#include "wino_kind.h"
#include "wino_tile.h"

enum {
    VECTOR = DDP__WINO_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    SKEW = DDP__GEMM_SKEW,
    SMALL_WEIGHTS = 1 << 20,
    LARGE_WEIGHTS = 16 << 20,
    SMALL_GROUP = 28,
    LARGE_GROUP = 128,
    MOST_BLOCKS = LARGE_GROUP / DDP__GEMM_ROWS + 2 /* of rows of a product */
};

/* A pass, of whose tiles a group has `most` at most. */
struct run {
    const struct ddp__wino_forward *f;
    size_t all, most, ldv, ldp;
    bool ahead; /* products fetch what they need next */
    bool past;  /* y goes past the caches */
};

/* Its tiles in Winograd's domain before and after the weights; with integers
 * units of v, `most` for each position. */
struct group {
    const struct run *r;
    struct ddp__wino_tiles v_tiles, p_tiles;
    float *v, *p, *unit;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- products ----------------------------------------------------------- */

/* p = v u for one panel after the other.  Meanwhile the first two blocks of
 * rows fetch a half of the next panel each, which is the next position's at the
 * end.  To fetch the next group's pixels, too, gained nothing. */
static void multiply_ahead(const struct group *g, struct ddp__gemm_product *t,
                           float *p)
{
    const float *next[MOST_BLOCKS];
    size_t o = t->n, ldp = g->p_tiles.ld;

    for (size_t j = 0; j < o; j += PANEL) {
        const float *after = (const float *)t->b + PANEL * t->k;

        t->n = least(o - j, PANEL);
        for (size_t i = 0; i < ddp__gemm_blocks(t->m); i++)
            next[i] = i < 2 ? after + i * VECTOR * t->k : t->b;
        ddp__gemm_ahead(t, next, p + j, ldp);
        t->b = after;
    }
}

/* p = v u of one position; integers take the place of bf16's v. */
static int multiply_position(void *arg, int i)
{
    const struct group *g = arg;
    const struct run *r = g->r;
    const struct ddp__wino_forward *f = r->f;
    size_t pos = (size_t)i, o = f->m->o, c = f->m->c;
    float *v = g->v + pos * g->v_tiles.step, *p = g->p + pos * g->p_tiles.step;
    float *unit = g->unit + pos * r->most;
    struct ddp__gemm_product t = {.m = g->v_tiles.count,
                                  .n = o,
                                  .k = c,
                                  .a = v,
                                  .lda = r->ldv,
                                  .b = f->packed + pos * f->step};

    if (f->m->b) {
        ddp__i16_round_rows(t.m, c, v, r->ldv, v, r->ldv, unit);
        t.k = c / 2;
        t.row = unit;
        t.col = f->unit + pos * o;
    }
    if (r->ahead)
        multiply_ahead(g, &t, p);
    else
        f->m->kind->products->multiply(&t, p, r->ldp);
    return 0;
}

/* ---- groups ------------------------------------------------------------- */

static int run_group(void *arg, int i)
{
    const struct run *r = arg;
    const struct ddp__wino_forward *f = r->f;
    size_t at = (size_t)i * r->most, count = least(r->all - at, r->most);
    size_t pos = (size_t)f->m->kind->pos;
    struct group g = {.r = r,
                      .v_tiles = {at, count, r->ldv, count * r->ldv},
                      .p_tiles = {at, count, r->ldp, count * r->ldp}};
    const struct ddp__wino_result result = {.columns = f->m->o,
                                            .bias = f->bias,
                                            .sum = f->s->sum,
                                            .past = r->past,
                                            .act = f->s->conv.act,
                                            .y = f->y};

    g.v = ddp__scratch(pos * r->most * (r->ldv + r->ldp + 1) * sizeof(*g.v));
    if (!g.v)
        return DDP_ENOMEM;
    g.p = g.v + pos * r->most * r->ldv;
    g.unit = g.p + pos * r->most * r->ldp;
    ddp__wino_input(f->m, f->x, &g.v_tiles, g.v);
    ddp__team_each((int)pos, multiply_position, &g);
    ddp__wino_output(f->m, g.p, &g.p_tiles, &result);
    if (r->past)
        ddp__store_end();
    return 0;
}

size_t ddp__wino_group(const struct ddp__wino_kind *kind, size_t all,
                       size_t want)
{
    size_t groups = (all + want - 1) / want, size = (all + groups - 1) / groups;
    size_t rows = kind->products->rows;

    return (size + rows - 1) / rows * rows;
}

static size_t group_size(const struct run *r)
{
    size_t bytes = ddp__wino_packed_size(r->f->s);
    size_t small = r->ahead ? LARGE_WEIGHTS : SMALL_WEIGHTS;
    bool large = !ddp__wino_is_line(r->f->s) && bytes > small;

    return ddp__wino_group(r->f->m->kind, r->all,
                           large ? LARGE_GROUP : SMALL_GROUP);
}

/* A team shares groups, or if there is one its positions. */
int ddp__wino_forward(const struct ddp__wino_forward *f)
{
    const struct ddp__conv_shape *s = f->s;
    const struct ddp__wino_map *m = f->m;
    bool is_wide = m->kind->products == &ddp__wino_products_v16;
    struct run r = {.f = f,
                    .all = (size_t)s->n * (size_t)m->across * (size_t)m->down,
                    .ldv = m->c + SKEW,
                    .ldp = m->o + SKEW,
                    .ahead = s->type == DDP_F32 && is_wide};
    size_t len = (size_t)s->n * (size_t)s->oh * (size_t)s->ow * m->o;

    r.most = group_size(&r);
    r.past = r.ahead && !s->sum && (uintptr_t)f->y % 64 == 0 &&
             ddp__streams(len, false);
    return ddp__team_each((int)((r.all + r.most - 1) / r.most), run_group, &r);
}
