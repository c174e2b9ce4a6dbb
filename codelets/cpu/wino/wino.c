/* wino.c - convolutions of stride 1 by products of transformed tiles; wino.h
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core (AVX-512, bf16) under load, 16 images, weights changed before,
 * milliseconds of forward and both gradients by oneDNN 2.6, and in this way:
 *
 *     56x56, 64 to 64             14.5 14.5 18.3    6.4  6.5  7.2
 *     14x14, 256 to 256           13.6 13.7 15.0    6.0  5.9  6.7
 *     28x28, 128 to 128, bf16      7.2  7.1  8.3    3.5  3.4  3.5
 *
 * and of 8 images with filters of one row or column:
 *
 *     1x7, 17x17, 128 to 128       2.0  2.0  2.0    1.2  1.2  1.3
 *     7x1, 17x17, 192 to 192       4.5  4.5  6.1    2.6  2.6  2.7
 *     1x3, 8x8, 384 to 384         2.2  2.1  2.0    1.2  1.2  1.1
 */
#include "config.h"

#include "cpu/cpu.h"
#include "cpu/product/i16_round.h"
#include "cpu/thread.h"
#include "wino.h"
#include "wino_forward.h"
#include "wino_kind.h"
#include "wino_tile.h"
#include "wino_weight.h"

enum {
    SKEW = DDP__GEMM_SKEW,
    SMALL_WEIGHTS = 1 << 20,
    SMALL_GROUP = 56,
    LARGE_GROUP = 128,
    PIECE = 64
};

struct ddp__wino_map ddp__wino_map(const struct ddp__conv_shape *s)
{
    const struct ddp__wino_kind *kind = ddp__wino_kind_of(s);

    return (struct ddp__wino_map){.kind = kind,
                                  .h = s->h,
                                  .w = s->w,
                                  .top = s->conv.top,
                                  .left = s->conv.left,
                                  .oh = s->oh,
                                  .ow = s->ow,
                                  .across = ddp__wino_tiles(s->ow, kind->wide),
                                  .down = ddp__wino_tiles(s->oh, kind->high),
                                  .c = (size_t)s->c,
                                  .o = (size_t)s->o,
                                  .b = s->type == DDP_BF16};
}

/* ---- weights ------------------------------------------------------------ */

static size_t positions(const struct ddp__conv_shape *s)
{
    return (size_t)ddp__wino_kind_of(s)->pos;
}

/* Floats, or pairs of integers, of a position.  All are written at a time:
 * floats a power of two apart would evict each other from the caches. */
static size_t size_of_position(const struct ddp__conv_shape *s)
{
    size_t weights = (size_t)s->c * (size_t)s->o;

    return s->type == DDP_F32 ? weights + SKEW : weights / 2;
}

size_t ddp__wino_packed_size(const struct ddp__conv_shape *s)
{
    size_t units = s->type == DDP_F32 ? 0 : (size_t)s->o;

    return positions(s) * (size_of_position(s) + units) * sizeof(float);
}

int ddp__wino_parts(const struct ddp__conv_shape *s)
{
    int panel = (int)ddp__wino_kind_of(s)->products->panel;

    return (s->o + panel - 1) / panel;
}

/* The units of integers lie behind them. */
static float *units_of_weights(const struct ddp__conv_shape *s,
                               const float *packed)
{
    return (float *)packed + positions(s) * size_of_position(s);
}

int ddp__wino_pack(const struct ddp__conv_shape *s, const float *w,
                   const float *by, bool turn, int part, void *packed)
{
    const struct ddp__wino_kind *kind = ddp__wino_kind_of(s);
    size_t o = (size_t)s->o, c = (size_t)s->c;
    size_t first = (size_t)part * kind->products->panel;
    const struct ddp__wino_filters f = {
        .w = w, .by = by, .rows = c, .c = turn ? o : c, .turn = turn};

    if (s->type == DDP_F32)
        ddp__wino_weights(kind, &f, o, first, size_of_position(s),
                          (float *)packed + first * c);
    else
        ddp__wino_weights_i16(&f, o, first, packed,
                              units_of_weights(s, packed));
    return 0;
}

/* ---- forward ------------------------------------------------------------ */

int ddp__wino_run(const struct ddp__conv_shape *s, const void *x,
                  const float *packed, const float *bias, void *y)
{
    const struct ddp__wino_map m = ddp__wino_map(s);

    return ddp__wino_forward(
        &(struct ddp__wino_forward){.s = s,
                                    .m = &m,
                                    .x = x,
                                    .packed = packed,
                                    .step = size_of_position(s),
                                    .unit = units_of_weights(s, packed),
                                    .bias = bias,
                                    .y = y});
}

/* ---- gradient of weights ------------------------------------------------ */

/* Tiles of a group: many where weights do not fit into a cache. */
static size_t tiles_of_gradient(const struct ddp__conv_shape *s)
{
    bool large =
        ddp__wino_is_line(s) || ddp__wino_packed_size(s) > SMALL_WEIGHTS;

    return large ? LARGE_GROUP : SMALL_GROUP;
}

/* The transformed images of a group, and what becomes of them. */
struct gradient {
    const struct ddp__wino_map *m;
    size_t count, ldv, ldz;
    float *v, *z, *u;
    float *unit_v, *unit_z; /* for each position and channel */
};

/* Integers, in pairs of tiles, take the place of bf16's v and z. */
static void round_images(const struct gradient *g)
{
    size_t o = g->m->o, c = g->m->c;

    for (size_t k = 0; k < DDP__WINO_POS; k++) {
        float *v = g->v + k * g->count * g->ldv;
        float *z = g->z + k * g->count * g->ldz;

        ddp__i16_round_columns(g->count, c, v, g->ldv, v, g->ldv,
                               g->unit_v + k * c);
        ddp__i16_round_columns(g->count, o, z, g->ldz, z, g->ldz,
                               g->unit_z + k * o);
    }
}

/* u (+)= z' v for all positions, of rows and columns from (i, j) on. */
static void multiply_positions(const struct gradient *g, size_t i, size_t j,
                               size_t rows, size_t cols, bool add)
{
    bool integers = g->m->b;

    for (size_t k = 0; k < (size_t)g->m->kind->pos; k++) {
        struct ddp__gemm_product t = {
            .m = rows,
            .n = cols,
            .k = integers ? (g->count + 1) / 2 : g->count,
            .a = g->z + k * g->count * g->ldz + i,
            .lda = g->ldz,
            .b = g->v + k * g->count * g->ldv + j,
            .ldb = g->ldv,
            .row = integers ? g->unit_z + k * g->m->o + i : NULL,
            .col = integers ? g->unit_v + k * g->m->c + j : NULL};

        g->m->kind->products->multiply_t(&t, add, g->u + k * rows * cols, cols);
    }
}

/* All of one group at once: u in pieces that fit into the cache. */
static void gradient_by_pieces(const struct gradient *g, bool accumulate,
                               float *dw)
{
    size_t taps = (size_t)(g->m->kind->kh * g->m->kind->kw);
    size_t o = g->m->o, c = g->m->c;

    for (size_t i = 0; i < o; i += PIECE)
        for (size_t j = 0; j < c; j += PIECE) {
            size_t rows = o - i < PIECE ? o - i : PIECE;
            size_t cols = c - j < PIECE ? c - j : PIECE;

            multiply_positions(g, i, j, rows, cols, false);
            ddp__wino_gradient(g->m->kind, g->u, rows, cols, c, accumulate,
                               dw + i * taps * c + j);
        }
}

/* u, the gradient of the transformed weights, is 4 times as large as dw.  Where
 * all tiles make one group, and u is much larger than their images, it is made
 * in pieces that fit into a cache and become dw at once. */
int ddp__wino_bwd_w(const struct ddp__conv_shape *s, const void *x,
                    const void *dy, bool accumulate, float *dw)
{
    struct ddp__wino_map m = ddp__wino_map(s);
    size_t all = (size_t)s->n * (size_t)m.across * (size_t)m.down;
    size_t most = ddp__wino_group(m.kind, all, tiles_of_gradient(s));
    size_t pos = positions(s), ldv = m.c + SKEW, ldz = m.o + SKEW;
    size_t images = pos * most * (ldv + ldz), sums = pos * m.c * m.o;
    float *v = ddp__scratch((images + sums + pos * (m.c + m.o)) * sizeof(*v));
    float *z = v + pos * most * ldv, *u = v + images;
    struct gradient g = {
        &m, 0, ldv, ldz, v, z, u, u + sums, u + sums + pos * m.c};

    if (!v)
        return DDP_ENOMEM;
    for (size_t at = 0; at < all; at += g.count) {
        g.count = all - at < most ? all - at : most;
        ddp__wino_input(
            &m, x, &(struct ddp__wino_tiles){at, g.count, ldv, g.count * ldv},
            v);
        ddp__wino_spread(
            &m, dy, &(struct ddp__wino_tiles){at, g.count, ldz, g.count * ldz},
            z);
        if (m.b)
            round_images(&g);
        if (g.count == all && sums > 2 * images) {
            gradient_by_pieces(&g, accumulate, dw);
            return 0;
        }
        multiply_positions(&g, 0, 0, m.o, m.c, at > 0);
    }
    ddp__wino_gradient(m.kind, g.u, m.o, m.c, m.c, accumulate, dw);
    return 0;
}
