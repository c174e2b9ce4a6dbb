/* wino.c - 3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3)
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tiles go through in groups.  Where all 36 matrices of weights fit into the
 * second-level cache, so should a group's data; where not, a group is large,
 * so that the weights are read seldom.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "amx.h"
#include "base/error.h"
#include "cpu.h"
#include "thread.h"
#include "wino.h"
#include "wino_gemm.h"
#include "wino_tile.h"
#include "wino_weight.h"

#ifdef DDP__WINO

enum {
    SMALL_WEIGHTS = 1 << 20,
    SMALL_GROUP = 28,
    LARGE_GROUP = 128,
    PIECE = 64
};

static int tiles_along(int size)
{
    return (size + DDP__WINO_TILE - 1) / DDP__WINO_TILE;
}

struct ddp__wino_map ddp__wino_map(const struct ddp__dnn_shape *s)
{
    return (struct ddp__wino_map){.h = s->h,
                                  .w = s->w,
                                  .top = s->conv.top,
                                  .left = s->conv.left,
                                  .oh = s->oh,
                                  .ow = s->ow,
                                  .across = tiles_along(s->ow),
                                  .down = tiles_along(s->oh),
                                  .c = (size_t)s->c,
                                  .o = (size_t)s->o,
                                  .b = s->type == DDP_BF16};
}

bool ddp__wino_off(void)
{
    const char *text = getenv("DDP_WINOGRAD");

    return text && strcmp(text, "0") == 0;
}

/* At most half of the tiles' pixels may lie outside the image. */
bool ddp__wino_fits(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    int64_t area = (int64_t)tiles_along(s->oh) * tiles_along(s->ow) *
                   DDP__WINO_TILE * DDP__WINO_TILE;

    return !s->dense && (s->type == DDP_F32 || !ddp__amx_here()) &&
           k->kh == 3 && k->kw == 3 && k->sh == 1 && k->sw == 1 && k->dh == 1 &&
           k->dw == 1 && k->groups == 1 && s->c % DDP__WINO_VECTOR == 0 &&
           s->o % DDP__WINO_VECTOR == 0 && k->act <= DDP_RELU6 && k->top <= 2 &&
           k->left <= 2 && k->bottom <= 2 && k->right <= 2 &&
           area <= 2 * (int64_t)s->oh * s->ow && !ddp__wino_off() &&
           __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq");
}

size_t ddp__wino_packed_size(const struct ddp__dnn_shape *s)
{
    return (size_t)DDP__WINO_POS * (size_t)s->c * (size_t)s->o * sizeof(float);
}

static size_t count_tiles(const struct ddp__dnn_shape *s,
                          const struct ddp__wino_map *m)
{
    return (size_t)s->n * (size_t)m->across * (size_t)m->down;
}

/* Tiles of a group: groups of equal size, about as large as they should be. */
static size_t group_size(const struct ddp__dnn_shape *s, size_t all,
                         size_t small)
{
    size_t want =
        ddp__wino_packed_size(s) <= SMALL_WEIGHTS ? small : LARGE_GROUP;
    size_t groups = (all + want - 1) / want, size = (all + groups - 1) / groups;

    return (size + 13) / 14 * 14;
}

int ddp__wino_run(const struct ddp__dnn_shape *s, const void *x,
                  const float *packed, const float *bias, void *y)
{
    struct ddp__wino_map m = ddp__wino_map(s);
    size_t all = count_tiles(s, &m), most = group_size(s, all, SMALL_GROUP),
           count;
    size_t ldv = m.c + DDP__WINO_SKEW, ldp = m.o + DDP__WINO_SKEW;
    float *v = ddp__scratch(DDP__WINO_POS * most * (ldv + ldp) * sizeof(*v));
    float *p = v + DDP__WINO_POS * most * ldv;

    if (!v)
        return DDP_ENOMEM;
    for (size_t at = 0; at < all; at += count) {
        count = all - at < most ? all - at : most;
        ddp__wino_input(&m, x, at, count, ldv, v);
        for (size_t i = 0; i < DDP__WINO_POS; i++)
            ddp__wino_gemm(count, m.o, m.c, v + i * count * ldv, ldv,
                           packed + i * m.c * m.o, p + i * count * ldp, ldp);
        ddp__wino_output(&m, p, at, count, ldp, bias, s->sum, s->conv.act, y);
    }
    return 0;
}

/* The transformed images of a group, and what becomes of them. */
struct gradient {
    const struct ddp__wino_map *m;
    size_t count, ldv, ldz;
    const float *v, *z;
    float *u;
};

/* u (+)= z' v for all positions, of rows and columns from (i, j) on. */
static void multiply_positions(const struct gradient *g, size_t i, size_t j,
                               size_t rows, size_t cols, bool add)
{
    for (size_t k = 0; k < DDP__WINO_POS; k++)
        ddp__wino_gemm_t(rows, cols, g->count, g->z + k * g->count * g->ldz + i,
                         g->ldz, g->v + k * g->count * g->ldv + j, g->ldv, add,
                         g->u + k * rows * cols, cols);
}

/* All of one group at once: u in pieces that fit into the cache. */
static void gradient_by_pieces(const struct gradient *g, bool accumulate,
                               float *dw)
{
    size_t o = g->m->o, c = g->m->c;

    for (size_t i = 0; i < o; i += PIECE)
        for (size_t j = 0; j < c; j += PIECE) {
            size_t rows = o - i < PIECE ? o - i : PIECE;
            size_t cols = c - j < PIECE ? c - j : PIECE;

            multiply_positions(g, i, j, rows, cols, false);
            ddp__wino_gradient(g->u, rows, cols, c, accumulate,
                               dw + i * 9 * c + j);
        }
}

/* u, the gradient of the transformed weights, is 4 times as large as dw.  Where
 * all tiles make one group, and u is much larger than their images, it is made
 * in pieces that fit into a cache and become dw at once. */
int ddp__wino_bwd_w(const struct ddp__dnn_shape *s, const void *x,
                    const void *dy, bool accumulate, float *dw)
{
    struct ddp__wino_map m = ddp__wino_map(s);
    size_t all = count_tiles(s, &m), most = group_size(s, all, 2 * SMALL_GROUP);
    size_t ldv = m.c + DDP__WINO_SKEW, ldz = m.o + DDP__WINO_SKEW;
    size_t images = DDP__WINO_POS * most * (ldv + ldz) * sizeof(float);
    float *v = ddp__scratch(images + ddp__wino_packed_size(s));
    float *z = v + DDP__WINO_POS * most * ldv;
    struct gradient g = {&m, 0, ldv, ldz, v, z, z + DDP__WINO_POS * most * ldz};

    if (!v)
        return DDP_ENOMEM;
    for (size_t at = 0; at < all; at += g.count) {
        g.count = all - at < most ? all - at : most;
        ddp__wino_input(&m, x, at, g.count, ldv, v);
        ddp__wino_spread(&m, dy, at, g.count, ldz, z);
        if (g.count == all && ddp__wino_packed_size(s) > 2 * images) {
            gradient_by_pieces(&g, accumulate, dw);
            return 0;
        }
        multiply_positions(&g, 0, 0, m.o, m.c, at > 0);
    }
    ddp__wino_gradient(g.u, m.o, m.c, m.c, accumulate, dw);
    return 0;
}

#else

bool ddp__wino_fits(const struct ddp__dnn_shape *s)
{
    (void)s;
    return false;
}

size_t ddp__wino_packed_size(const struct ddp__dnn_shape *s)
{
    (void)s;
    return 0;
}

void ddp__wino_weights(const float *w, size_t o, size_t c, size_t first,
                       bool turn, float *u)
{
    (void)w, (void)o, (void)c, (void)first, (void)turn, (void)u;
}

int ddp__wino_run(const struct ddp__dnn_shape *s, const void *x,
                  const float *packed, const float *bias, void *y)
{
    (void)s, (void)x, (void)packed, (void)bias, (void)y;
    return ddp__fail(DDP_ENODEV, "Winograd's convolution needs AVX-512");
}

int ddp__wino_bwd_w(const struct ddp__dnn_shape *s, const void *x,
                    const void *dy, bool accumulate, float *dw)
{
    (void)s, (void)x, (void)dy, (void)accumulate, (void)dw;
    return ddp__fail(DDP_ENODEV, "Winograd's convolution needs AVX-512");
}

#endif
