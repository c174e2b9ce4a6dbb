/* pool_bwd.c - maximum and mean over windows, of CPU workers, backward
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A pixel adds up what the windows over it have for it, so that it is written
 * once.  pool.c has oneDNN's figures.
 */
#include "config.h"

#include "backend.h"
#include "pool.h"
#include "store.h"
#include "thread.h"

DDP__POOL_REGISTERS

/* All of them, and for each pixel the first output over it. */
struct table {
    struct ddp__window *of; /* [out] */
    int *first;             /* [in] */
};

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

static struct table table_of(const struct ddp__axis *a, void *room)
{
    struct table t = {.of = room};

    t.first = (int *)(t.of + a->out);
    for (int i = 0; i < a->out; i++)
        t.of[i] = ddp__pool_window(a, i);
    for (int i = 0; i < a->in; i++)
        t.first[i] = first_over(a, i);
    return t;
}

/* A row of dx is made in a buffer of its own, then stored. */
struct gather {
    const struct ddp__pooling *g;
    const struct ddp__pool *p;
    const void *dy, *index; /* index NULL: mean */
    bool wide;              /* index is i32 */
    struct table v, h;
};

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
DDP__INLINE void gather_pixel(const struct gather *s, int n, int y, int x,
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
                add_shares(s->dy, sum, at, len, ddp__pool_factor(s->p, r, q),
                           b);
            else
                add_winners(s->dy, s->index, sum, at, len,
                            (y - r.start) * g->h.size + x - q.start, s->wide,
                            b);
        }
    for (size_t i = 0; i < len; i++)
        row[(size_t)x * g->c + c + i] = sum[i];
}

DDP__INLINE void gather_row(const struct gather *s, int n, int y, float *row,
                            bool b)
{
    for (int x = 0; x < s->g->h.in; x++)
        if (s->index)
            DDP__POOL_BLOCKS(DDP__POOL_FEW, s->g->c, gather_pixel, s, n, y, x,
                             row, b);
        else
            DDP__POOL_BLOCKS(DDP__POOL_BLOCK, s->g->c, gather_pixel, s, n, y, x,
                             row, b);
}

DDP__CLONES static void gather_row_f32(const struct gather *s, int n, int y,
                                       float *row)
{
    gather_row(s, n, y, row, false);
}

DDP__CLONES static void gather_row_bf16(const struct gather *s, int n, int y,
                                        float *row)
{
    gather_row(s, n, y, row, true);
}

/* dx row by row.  Which windows cover a pixel is looked up in two tables, made
 * once for all rows: finding it takes divisions. */
static int gather_rows(const struct ddp__task *t, struct gather *s, void *dx)
{
    const struct ddp__pooling *g = s->g;
    size_t len = (size_t)g->h.in * g->c;
    bool stream = ddp__streams(len * (size_t)g->v.in * (size_t)t->n, g->b);
    bool direct = !stream && !g->b;
    size_t size = ddp__align(len * sizeof(float));
    size_t size_v = ddp__align(table_size(&g->v));
    char *scratch = ddp__scratch(size + size_v + table_size(&g->h));
    float *row = (float *)(void *)scratch;

    if (!scratch)
        return DDP_ENOMEM;
    s->v = table_of(&g->v, scratch + size);
    s->h = table_of(&g->h, scratch + size + size_v);
    for (int n = 0; n < t->n; n++)
        for (int y = 0; y < g->v.in; y++) {
            void *to = ddp__to(
                dx, ddp__pool_pixel(&g->v, &g->h, n, y, 0, false) * g->c, g->b);

            (g->b ? gather_row_bf16 : gather_row_f32)(s, n, y,
                                                      direct ? to : row);
            if (!direct)
                ddp__store_block(to, row, len, g->b, stream);
        }
    ddp__store_end();
    return 0;
}

int ddp__cpu_max_pool_bwd(const struct ddp__task *t)
{
    struct ddp__pooling g =
        ddp__pool_geometry(t, DDP__MAX_POOL_BWD_DX, DDP__MAX_POOL_BWD_DY);
    struct gather s = {.g = &g,
                       .p = &t->call->pool,
                       .dy = t->data[DDP__MAX_POOL_BWD_DY],
                       .index = t->data[DDP__MAX_POOL_BWD_INDEX],
                       .wide = t->call->buf[DDP__MAX_POOL_BWD_INDEX].type !=
                               DDP_U8};

    return gather_rows(t, &s, t->data[DDP__MAX_POOL_BWD_DX]);
}

int ddp__cpu_mean_pool_bwd(const struct ddp__task *t)
{
    struct ddp__pooling g =
        ddp__pool_geometry(t, DDP__MEAN_POOL_BWD_DX, DDP__MEAN_POOL_BWD_DY);
    struct gather s = {
        .g = &g, .p = &t->call->pool, .dy = t->data[DDP__MEAN_POOL_BWD_DY]};

    return gather_rows(t, &s, t->data[DDP__MEAN_POOL_BWD_DX]);
}
