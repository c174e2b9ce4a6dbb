/* pool.c - maximum and mean over windows, of CPU workers, forward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All loops are over a block of channels innermost.
 *
 * For processors without AVX-512, positions beyond a byte, and as the
 * definition of the bits of pool_max_v16.c and pool_mean_v16.c, which have
 * oneDNN's figures.
 */
#include "config.h"

#include <math.h>

#include "cpu/backend.h"
#include "cpu/vector/unit_v16.h"
#include "pool_max_v16.h"
#include "pool_mean_v16.h"

DDP__POOL_REGISTERS

/* ---- maximum, forward --------------------------------------------------- */

/* best, at: the maximum so far and its position; a NaN remains the maximum. */
DDP__INLINE void max_step(const void *restrict x, float *restrict best,
                          int32_t *restrict at, size_t c, int32_t position,
                          bool b)
{
    for (size_t i = 0; i < c; i++) {
        float v = ddp__load(x, i, b);
        bool wins = !(v <= best[i]) & (best[i] == best[i]);

        best[i] = wins ? v : best[i];
        at[i] = wins ? position : at[i];
    }
}

DDP__INLINE void max_first(const void *restrict x, float *restrict best,
                           int32_t *restrict at, size_t c, int32_t position,
                           bool b)
{
    for (size_t i = 0; i < c; i++) {
        best[i] = ddp__load(x, i, b);
        at[i] = position;
    }
}

DDP__INLINE void max_put(void *restrict y, void *restrict index,
                         const float *restrict best, const int32_t *restrict at,
                         size_t o, size_t c, bool wide, bool b)
{
    for (size_t i = 0; i < c; i++)
        ddp__store(y, o + i, best[i], b);
    for (size_t i = 0; i < c && !wide; i++)
        ((uint8_t *)index)[o + i] = (uint8_t)at[i];
    for (size_t i = 0; i < c && wide; i++)
        ((int32_t *)index)[o + i] = at[i];
}

/* Channels c .. c + len - 1 of an output; x is the image. */
DDP__INLINE void max_output(const struct ddp__pooling *g, const void *x,
                            void *y, void *index, size_t out,
                            struct ddp__window r, struct ddp__window q,
                            bool wide, bool b, size_t c, size_t len)
{
    float best[DDP__POOL_FEW];
    int32_t at[DDP__POOL_FEW];
    bool first = true;

    for (size_t i = 0; i < len; i++) {
        best[i] = -INFINITY;
        at[i] = 0;
    }
    for (int p = r.begin; p < r.end; p++)
        for (int k = q.begin; k < q.end; k++) {
            size_t pixel = (size_t)p * (size_t)g->h.in + (size_t)k;
            const void *from = ddp__at(x, pixel * g->c + c, b);
            int32_t position = (p - r.start) * g->h.size + k - q.start;

            if (first)
                max_first(from, best, at, len, position, b);
            else
                max_step(from, best, at, len, position, b);
            first = false;
        }
    max_put(y, index, best, at, out + c, len, wide, b);
}

/* One row of outputs. */
DDP__INLINE void max_row(const struct ddp__pooling *g, const void *x, void *y,
                         void *index, size_t out, struct ddp__window r,
                         bool wide, bool b)
{
    for (int ox = 0; ox < g->h.out; ox++, out += g->c) {
        struct ddp__window q = ddp__pool_window(&g->h, ox);

        DDP__POOL_BLOCKS(DDP__POOL_FEW, g->c, max_output, g, x, y, index, out,
                         r, q, wide, b);
    }
}

DDP__CLONES static void max_row_f32(const struct ddp__pooling *g, const void *x,
                                    void *y, void *index, size_t out,
                                    struct ddp__window r, bool wide)
{
    max_row(g, x, y, index, out, r, wide, false);
}

DDP__CLONES static void max_row_bf16(const struct ddp__pooling *g,
                                     const void *x, void *y, void *index,
                                     size_t out, struct ddp__window r,
                                     bool wide)
{
    max_row(g, x, y, index, out, r, wide, true);
}

int ddp__cpu_max_pool_fwd(const struct ddp__task *t)
{
    struct ddp__pooling g =
        ddp__pool_geometry(t, DDP__MAX_POOL_FWD_X, DDP__MAX_POOL_FWD_Y);
    size_t image = (size_t)g.v.in * (size_t)g.h.in * g.c;
    bool wide = t->call->buf[DDP__MAX_POOL_FWD_INDEX].type != DDP_U8;

    if (!wide && ddp__unit_v16(g.b))
        return ddp__max_pool_v16(&g, t->n, t->data[DDP__MAX_POOL_FWD_X],
                                 t->data[DDP__MAX_POOL_FWD_Y],
                                 t->data[DDP__MAX_POOL_FWD_INDEX]);
    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < g.v.out; oy++)
            (g.b ? max_row_bf16 : max_row_f32)(
                &g,
                ddp__at(t->data[DDP__MAX_POOL_FWD_X], (size_t)n * image, g.b),
                t->data[DDP__MAX_POOL_FWD_Y], t->data[DDP__MAX_POOL_FWD_INDEX],
                ddp__pool_pixel(&g.v, &g.h, n, oy, 0, true) * g.c,
                ddp__pool_window(&g.v, oy), wide);
    return 0;
}

/* ---- mean, forward ------------------------------------------------------ */

/* Channels c .. c + len - 1 of an output: the sum of the sums of a window's
 * rows. */
DDP__INLINE void mean_output(const struct ddp__pooling *g,
                             const void *restrict x, void *restrict y,
                             size_t out, struct ddp__window r,
                             struct ddp__window q, float factor, bool b,
                             size_t c, size_t len)
{
    float total[DDP__POOL_FEW], sum[DDP__POOL_FEW];

    for (size_t i = 0; i < len; i++)
        total[i] = 0;
    for (int p = r.begin; p < r.end; p++) {
        const void *row = ddp__at(x, (size_t)p * (size_t)g->h.in * g->c + c, b);

        for (size_t i = 0; i < len; i++)
            sum[i] = 0;
        for (int k = q.begin; k < q.end; k++)
            for (size_t i = 0; i < len; i++)
                sum[i] += ddp__load(row, (size_t)k * g->c + i, b);
        for (size_t i = 0; i < len; i++)
            total[i] += sum[i];
    }
    for (size_t i = 0; i < len; i++)
        ddp__store(y, out + c + i, total[i] * factor, b);
}

DDP__INLINE void mean_row(const struct ddp__pooling *g,
                          const struct ddp__pool *p, const void *x, void *y,
                          size_t out, struct ddp__window r, bool b)
{
    for (int ox = 0; ox < g->h.out; ox++, out += g->c) {
        struct ddp__window q = ddp__pool_window(&g->h, ox);
        float factor = ddp__pool_factor(p, r, q);

        DDP__POOL_BLOCKS(DDP__POOL_FEW, g->c, mean_output, g, x, y, out, r, q,
                         factor, b);
    }
}

DDP__CLONES static void mean_row_f32(const struct ddp__pooling *g,
                                     const struct ddp__pool *p, const void *x,
                                     void *y, size_t out, struct ddp__window r)
{
    mean_row(g, p, x, y, out, r, false);
}

DDP__CLONES static void mean_row_bf16(const struct ddp__pooling *g,
                                      const struct ddp__pool *p, const void *x,
                                      void *y, size_t out, struct ddp__window r)
{
    mean_row(g, p, x, y, out, r, true);
}

int ddp__cpu_mean_pool_fwd(const struct ddp__task *t)
{
    struct ddp__pooling g =
        ddp__pool_geometry(t, DDP__MEAN_POOL_FWD_X, DDP__MEAN_POOL_FWD_Y);
    size_t image = (size_t)g.v.in * (size_t)g.h.in * g.c;

    if (ddp__unit_v16(g.b))
        return ddp__mean_pool_v16(&g, &t->call->pool, t->n,
                                  t->data[DDP__MEAN_POOL_FWD_X],
                                  t->data[DDP__MEAN_POOL_FWD_Y]);
    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < g.v.out; oy++)
            (g.b ? mean_row_bf16 : mean_row_f32)(
                &g, &t->call->pool,
                ddp__at(t->data[DDP__MEAN_POOL_FWD_X], (size_t)n * image, g.b),
                t->data[DDP__MEAN_POOL_FWD_Y],
                ddp__pool_pixel(&g.v, &g.h, n, oy, 0, true) * g.c,
                ddp__pool_window(&g.v, oy));
    return 0;
}
