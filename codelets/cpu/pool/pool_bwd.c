/* pool_bwd.c - maximum and mean over windows, of CPU workers, backward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A pixel adds up what the windows over it have for it, so that it is written
 * once.  pool_max_v16.c and pool_mean_v16.c have oneDNN's figures.
 */
#include "config.h"

#include "cpu/backend.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"
#include "pool_bwd_v16.h"

DDP__POOL_REGISTERS

/* The first output whose window ends after pixel i; its successors cover i as
 * long as they begin at or before it. */
static int first_over(const struct ddp__axis *a, int i)
{
    int o;

    if (a->adaptive)
        o = (int)((int64_t)i * a->out / a->in) - 1;
    else
        o = (i + a->before - a->size) / a->stride;
    o = o < 0 ? 0 : o > a->out ? a->out : o;
    while (o > 0 && ddp__pool_window(a, o - 1).end > i)
        o--;
    while (o < a->out && ddp__pool_window(a, o).end <= i)
        o++;
    return o;
}

static size_t table_size(const struct ddp__axis *a)
{
    return (size_t)a->out * sizeof(struct ddp__window) +
           (size_t)a->in * sizeof(int);
}

static struct ddp__windows table_of(const struct ddp__axis *a, void *room)
{
    struct ddp__windows t = {.of = room};

    t.first = (int *)(t.of + a->out);
    for (int i = 0; i < a->out; i++)
        t.of[i] = ddp__pool_window(a, i);
    for (int i = 0; i < a->in; i++)
        t.first[i] = first_over(a, i);
    return t;
}

DDP__INLINE void add_winners(const void *restrict dy,
                             const void *restrict index, float *restrict sum,
                             size_t at, size_t c, int32_t position, bool wide,
                             bool b)
{
    if (wide)
        for (size_t i = 0; i < c; i++)
            sum[i] += ((const int32_t *)index)[at + i] == position
                          ? ddp__load(dy, at + i, b)
                          : 0;
    else
        for (size_t i = 0; i < c; i++)
            sum[i] += ((const uint8_t *)index)[at + i] == position
                          ? ddp__load(dy, at + i, b)
                          : 0;
}

DDP__INLINE void add_shares(const void *restrict dy, float *restrict sum,
                            size_t at, size_t c, float factor, bool b)
{
    for (size_t i = 0; i < c; i++)
        sum[i] += ddp__load(dy, at + i, b) * factor;
}

/* Channels c .. c + len - 1 of pixel (y, x) of sample n: what the windows over
 * it have for it. */
DDP__INLINE void gather_pixel(const struct ddp__gather *s, int n, int y, int x,
                              float *restrict row, bool b, size_t c, size_t len)
{
    const struct ddp__pooling *g = s->g;
    float sum[DDP__POOL_BLOCK];

    for (size_t i = 0; i < len; i++)
        sum[i] = 0;
    for (int i = s->v.first[y]; i < g->v.out && s->v.of[i].begin <= y; i++)
        for (int j = s->h.first[x]; j < g->h.out && s->h.of[j].begin <= x;
             j++) {
            struct ddp__window r = s->v.of[i], q = s->h.of[j];
            size_t at = ddp__pool_pixel(&g->v, &g->h, n, i, j, true) * g->c + c;

            if (!s->index)
                add_shares(s->dy, sum, at, len, s->factor[i * g->h.out + j], b);
            else
                add_winners(s->dy, s->index, sum, at, len,
                            (y - r.start) * g->h.size + x - q.start, s->wide,
                            b);
        }
    for (size_t i = 0; i < len; i++)
        row[(size_t)x * g->c + c + i] = sum[i];
}

DDP__INLINE void gather_row(const struct ddp__gather *s, int n, int y,
                            float *row, bool b)
{
    for (int x = 0; x < s->g->h.in; x++)
        if (s->index)
            DDP__POOL_BLOCKS(DDP__POOL_FEW, s->g->c, gather_pixel, s, n, y, x,
                             row, b);
        else
            DDP__POOL_BLOCKS(DDP__POOL_BLOCK, s->g->c, gather_pixel, s, n, y, x,
                             row, b);
}

DDP__CLONES static void gather_row_f32(const struct ddp__gather *s, int n,
                                       int y, float *row)
{
    gather_row(s, n, y, row, false);
}

DDP__CLONES static void gather_row_bf16(const struct ddp__gather *s, int n,
                                        int y, float *row)
{
    gather_row(s, n, y, row, true);
}

/* dx row by row, of bf16 by way of `row`, and what goes past the caches. */
static void gather_rows(const struct ddp__gather *s, int n, void *dx,
                        float *row)
{
    const struct ddp__pooling *g = s->g;
    size_t len = (size_t)g->h.in * g->c;
    bool stream = ddp__streams(len * (size_t)g->v.in * (size_t)n, g->b);
    bool direct = !stream && !g->b;

    for (int i = 0; i < n; i++)
        for (int y = 0; y < g->v.in; y++, dx = ddp__to(dx, len, g->b)) {
            (g->b ? gather_row_bf16 : gather_row_f32)(s, i, y,
                                                      direct ? dx : row);
            if (!direct)
                ddp__store_block(dx, row, len, g->b, stream);
        }
    ddp__store_end();
}

/* Which windows cover a pixel and what a mean multiplies by are looked up in
 * tables, made once for all samples: they take divisions. */
static int gather(const struct ddp__task *t, struct ddp__gather *s, void *dx)
{
    const struct ddp__pooling *g = s->g;
    size_t row = ddp__align((size_t)g->h.in * g->c * sizeof(float));
    size_t size_v = ddp__align(table_size(&g->v));
    size_t size_h = ddp__align(table_size(&g->h));
    size_t outs = s->index ? 0 : (size_t)g->v.out * (size_t)g->h.out;
    char *scratch =
        ddp__scratch(row + size_v + size_h + outs * sizeof(*s->factor));

    if (!scratch)
        return DDP_ENOMEM;
    s->v = table_of(&g->v, scratch + row);
    s->h = table_of(&g->h, scratch + row + size_v);
    s->factor = (float *)(void *)(scratch + row + size_v + size_h);
    for (size_t i = 0; i < outs; i++)
        s->factor[i] =
            ddp__pool_factor(&t->call->pool, s->v.of[i / (size_t)g->h.out],
                             s->h.of[i % (size_t)g->h.out]);
    if (!s->wide && ddp__unit_v16(g->b))
        return ddp__pool_gather_v16(s, t->n, dx);
    gather_rows(s, t->n, dx, (float *)(void *)scratch);
    return 0;
}

int ddp__cpu_max_pool_bwd(const struct ddp__task *t)
{
    struct ddp__pooling g =
        ddp__pool_geometry(t, DDP__MAX_POOL_BWD_DX, DDP__MAX_POOL_BWD_DY);
    struct ddp__gather s = {
        .g = &g,
        .dy = t->data[DDP__MAX_POOL_BWD_DY],
        .index = t->data[DDP__MAX_POOL_BWD_INDEX],
        .wide = t->call->buf[DDP__MAX_POOL_BWD_INDEX].type != DDP_U8};

    return gather(t, &s, t->data[DDP__MAX_POOL_BWD_DX]);
}

int ddp__cpu_mean_pool_bwd(const struct ddp__task *t)
{
    struct ddp__pooling g =
        ddp__pool_geometry(t, DDP__MEAN_POOL_BWD_DX, DDP__MEAN_POOL_BWD_DY);
    struct ddp__gather s = {.g = &g, .dy = t->data[DDP__MEAN_POOL_BWD_DY]};

    return gather(t, &s, t->data[DDP__MEAN_POOL_BWD_DX]);
}
