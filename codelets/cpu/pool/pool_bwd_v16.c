/* pool_bwd_v16.c - gradients of pooling by AVX-512, to the bits of pool_bwd.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * pool_max_v16.c and pool_mean_v16.c have oneDNN's figures.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "pool_bwd_v16.h"
#include "pool_unit.h"

#ifdef DDP__X86

enum { NEAR = 256 << 10 /* bytes */ };

/* ---- backward ----------------------------------------------------------- */

/* Add dy where the pixel was the maximum.  A sum that began as 0 is never -0:
 * to add 0 elsewhere would change nothing. */
DDP__UNIT_INLINE void add_winners(v16 sum[2], const struct ddp__pool_line *l,
                                  size_t at, int32_t position,
                                  struct ddp__unit k)
{
    const uint8_t *index = l->index + at;
    __m256i here = _mm256_set1_epi8((char)position);
    __mmask32 wins =
        k.whole ? _mm256_cmpeq_epi8_mask(
                      _mm256_loadu_si256((const void *)index), here)
                : _mm256_mask_cmpeq_epi8_mask(
                      k.mask, _mm256_maskz_loadu_epi8(k.mask, index), here);
    v16 v[2];

    ddp__unit_load(v, l->from, at, (struct ddp__unit){.b = k.b, .mask = wins});
    sum[0] = _mm512_add_ps(sum[0], v[0]);
    sum[1] = _mm512_add_ps(sum[1], v[1]);
}

DDP__UNIT_INLINE void add_shares(v16 sum[2], const struct ddp__pool_line *l,
                                 size_t at, float factor, struct ddp__unit k)
{
    v16 f = _mm512_set1_ps(factor), v[2];

    ddp__unit_load(v, l->from, at, k);
    sum[0] = _mm512_fmadd_ps(v[0], f, sum[0]);
    sum[1] = _mm512_fmadd_ps(v[1], f, sum[1]);
}

/* Channels c and the next ones of pixel i. */
DDP__UNIT_INLINE void gather_units(const struct ddp__pool_line *l, int i,
                                   const struct ddp__pool_tap *tap,
                                   const struct ddp__pool_tap *end, bool max,
                                   size_t c, int units, struct ddp__unit k)
{
    v16 sum[DDP__POOL_MOST][2];

#pragma GCC unroll 4
    for (int u = 0; u < 2 * units; u++)
        sum[u / 2][u % 2] = _mm512_setzero_ps();
    for (; tap < end; tap++)
#pragma GCC unroll 2
        for (int u = 0; u < units; u++) {
            size_t at = tap->at + c + (size_t)u * DDP__UNIT;

            if (max)
                add_winners(sum[u], l, at, tap->position, k);
            else
                add_shares(sum[u], l, at, tap->factor, k);
        }
#pragma GCC unroll 2
    for (int u = 0; u < units; u++)
        ddp__unit_put(l->to, (size_t)i * l->c + c + (size_t)u * DDP__UNIT,
                      sum[u], k, false);
}

DDP__UNIT_INLINE void gather_row(const struct ddp__pool_line *l, bool max,
                                 bool b, bool stream)
{
    const struct ddp__pool_tap *tap = l->row->tap, *end;

    for (int i = 0; i < l->width; i++, tap = end) {
        end = l->row->tap + l->row->end[i];
        DDP__POOL_UNITS(DDP__POOL_MOST, l->c, b, stream, gather_units, l, i,
                        tap, end, max);
    }
}

DDP__UNIT_INLINE void gather_winners(const struct ddp__pool_line *l, bool b,
                                     bool stream)
{
    gather_row(l, true, b, stream);
}

DDP__UNIT_INLINE void gather_shares(const struct ddp__pool_line *l, bool b,
                                    bool stream)
{
    gather_row(l, false, b, stream);
}

DDP__POOL_KINDS(gather_winners, struct ddp__pool_line)
DDP__POOL_KINDS(gather_shares, struct ddp__pool_line)

/* The windows over the pixels of row y. */
static void list_sources(const struct ddp__gather *s, int y,
                         struct ddp__pool_list *row)
{
    const struct ddp__pooling *g = s->g;
    int taps = 0;

    for (int x = 0; x < g->h.in; x++) {
        for (int i = s->v.first[y]; i < g->v.out && s->v.of[i].begin <= y; i++)
            for (int j = s->h.first[x]; j < g->h.out && s->h.of[j].begin <= x;
                 j++) {
                size_t at = (size_t)i * (size_t)g->h.out + (size_t)j;
                struct ddp__pool_tap *t = &row->tap[taps++];

                t->at = at * g->c;
                if (s->index)
                    t->position = (y - s->v.of[i].start) * g->h.size + x -
                                  s->h.of[j].start;
                else
                    t->factor = s->factor[at];
            }
        row->end[x] = taps;
    }
}

/* Images that use the same lists at a time: as many as the second-level cache
 * holds with `values` values of each. */
static int images_near(const struct ddp__pooling *g, size_t values)
{
    size_t images = NEAR / (values * (g->b ? 2 : 4));

    return images ? (int)(images < 64 ? images : 64) : 1;
}

/* How many windows are over a pixel, at most. */
static int most_over(const struct ddp__axis *a, const struct ddp__windows *w)
{
    int most = 0;

    for (int i = 0; i < a->in; i++) {
        int j = w->first[i];

        while (j < a->out && w->of[j].begin <= i)
            j++;
        most = j - w->first[i] > most ? j - w->first[i] : most;
    }
    return most;
}

static void gather_images(const struct ddp__gather *s, size_t first, size_t n,
                          void *dx, struct ddp__pool_list *row, bool stream)
{
    const struct ddp__pooling *g = s->g;
    size_t step = (size_t)g->h.in * g->c, rows = (size_t)g->v.in;
    size_t outs = (size_t)g->v.out * (size_t)g->h.out * g->c;

    for (size_t y = 0; y < rows; y++) {
        list_sources(s, (int)y, row);
        for (size_t i = first; i < first + n; i++) {
            struct ddp__pool_line l = {row,
                                       g->h.in,
                                       g->c,
                                       ddp__at(s->dy, i * outs, g->b),
                                       ddp__to(dx, (i * rows + y) * step, g->b),
                                       s->index ? (uint8_t *)s->index + i * outs
                                                : NULL};

            if (s->index)
                DDP__POOL_RUN(gather_winners, g->b, stream, &l);
            else
                DDP__POOL_RUN(gather_shares, g->b, stream, &l);
        }
    }
}

int ddp__pool_gather_v16(const struct ddp__gather *s, int n, void *dx)
{
    const struct ddp__pooling *g = s->g;
    size_t image = (size_t)g->v.in * (size_t)g->h.in * g->c;
    bool stream = ddp__pool_streams(g, dx, (size_t)n * image);
    int over = most_over(&g->v, &s->v);
    int most = images_near(g, (size_t)(over * g->h.out) * g->c);
    void *room =
        malloc(ddp__pool_list_size(g->h.in, over * most_over(&g->h, &s->h)));
    struct ddp__pool_list row;

    if (!room)
        return ddp__fail(DDP_ENOMEM, "out of memory for a pooling layer");
    row = ddp__pool_list_in(room, g->h.in);
    for (int i = 0; i < n; i += most)
        gather_images(s, (size_t)i, (size_t)(n - i < most ? n - i : most), dx,
                      &row, stream);
    ddp__store_end();
    free(room);
    return 0;
}

#endif
