/* pool.c - maximum and mean over windows, of CPU workers, forward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All loops are over a block of channels innermost.
 */
#include "config.h"

#include <math.h>

#include "backend.h"
#include "pool.h"

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

/* One output pixel, c <= DDP__POOL_BLOCK channels; x is channel 0 of the image.
 */
DDP__INLINE void max_pixel(const struct ddp__pooling *g, const void *x,
                           size_t at_c, size_t c, struct ddp__window r,
                           struct ddp__window q, float *best, int32_t *at,
                           bool b)
{
    bool first = true;

    for (size_t i = 0; i < c; i++) {
        best[i] = -INFINITY;
        at[i] = 0;
    }
    for (int y = r.begin; y < r.end; y++)
        for (int k = q.begin; k < q.end; k++) {
            size_t p = (size_t)y * (size_t)g->h.in + (size_t)k;
            const void *from = ddp__at(x, p * g->c + at_c, b);
            int32_t position = (y - r.start) * g->h.size + k - q.start;

            if (first)
                max_first(from, best, at, c, position, b);
            else
                max_step(from, best, at, c, position, b);
            first = false;
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

/* One row of outputs. */
DDP__INLINE void max_row(const struct ddp__pooling *g, const void *x, void *y,
                         void *index, size_t out, struct ddp__window r,
                         bool wide, bool b)
{
    float best[DDP__POOL_BLOCK];
    int32_t at[DDP__POOL_BLOCK];

    for (int ox = 0; ox < g->h.out; ox++, out += g->c)
        for (size_t c = 0, k; c < g->c; c += k) {
            k = g->c - c < DDP__POOL_BLOCK ? g->c - c : DDP__POOL_BLOCK;
            max_pixel(g, x, c, k, r, ddp__pool_window(&g->h, ox), best, at, b);
            max_put(y, index, best, at, out + c, k, wide, b);
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

/* Rows of a window are summed in f32, the window in f64. */
DDP__INLINE void mean_pixel(const struct ddp__pooling *g,
                            const void *restrict x, size_t at_c, size_t c,
                            struct ddp__window r, struct ddp__window q,
                            double *restrict total, bool b)
{
    float sum[DDP__POOL_BLOCK];

    for (size_t i = 0; i < c; i++)
        total[i] = 0;
    for (int y = r.begin; y < r.end; y++) {
        for (size_t i = 0; i < c; i++)
            sum[i] = 0;
        for (int k = q.begin; k < q.end; k++) {
            size_t p = (size_t)y * (size_t)g->h.in + (size_t)k;

            for (size_t i = 0; i < c; i++)
                sum[i] += ddp__load(x, p * g->c + at_c + i, b);
        }
        for (size_t i = 0; i < c; i++)
            total[i] += sum[i];
    }
}

DDP__INLINE void mean_row(const struct ddp__pooling *g,
                          const struct ddp__pool *p, const void *x,
                          void *restrict y, size_t out, struct ddp__window r,
                          bool b)
{
    double total[DDP__POOL_BLOCK];

    for (int ox = 0; ox < g->h.out; ox++, out += g->c) {
        struct ddp__window q = ddp__pool_window(&g->h, ox);
        float factor = ddp__pool_factor(p, r, q);

        for (size_t c = 0, k; c < g->c; c += k) {
            k = g->c - c < DDP__POOL_BLOCK ? g->c - c : DDP__POOL_BLOCK;
            mean_pixel(g, x, c, k, r, q, total, b);
            for (size_t i = 0; i < k; i++)
                ddp__store(y, out + c + i, (float)(total[i] * factor), b);
        }
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
