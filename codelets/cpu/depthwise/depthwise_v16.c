/* depthwise_v16.c - loops over the images of a depthwise layer, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A row of x is read from memory once, while what comes next is prefetched;
 * results go from registers past the caches where they are large.  A data
 * gradient of stride 2 is written pixel by pixel, too: each gets one, two or
 * four of the products of 3x3.
 */
#include "config.h"

#include "cpu/cpu.h"
#include "cpu/store.h"
#include "depthwise_reader.h"
#include "depthwise_v16.h"

#ifdef DDP__X86

enum { PIXELS = DDP__DEPTHWISE_PIXELS, SPREAD = DDP__DEPTHWISE_SPREAD };

/* The rows of x under a row of results: tap row `tap` and every `step`-th one
 * after it are over row y and those after (back: before) it. */
struct rows {
    int tap, step, y, next;
};

DDP__UNIT_INLINE struct rows rows_of(const struct ddp__depthwise_work *u,
                                     const struct ddp__depthwise_kind k, int oy)
{
    if (k.spreads)
        return (struct rows){(oy + u->top) % 2, 2, (oy + u->top) / 2, -1};
    return (struct rows){0, 1, oy * k.stride - u->top, 1};
}

/* A number of results in a row, and all of its vectors of words. */
struct pixels {
    const struct ddp__depthwise_work *u;
    struct ddp__depthwise_source from;
    const float *x, *next; /* of the image, and of what comes after it */
    float *y;              /* the first result */
    const float *read;     /* x of a norm that reads it */
    struct rows rows;
    int left;       /* column of x that is read first */
    int first, end; /* of the results, those that there are */
};

/* ---- loops -------------------------------------------------------------- */

/* Fetch `rows` rows of `count` pixels each. */
DDP__UNIT_INLINE void fetch(const float *x, const struct ddp__depthwise_work *u,
                            int rows, int count)
{
    for (int i = 0; i < rows; i++, x += u->width * u->c)
#pragma GCC unroll 14
        for (int j = 0; j < count; j++)
            _mm_prefetch((const char *)(x + j * u->c), _MM_HINT_T0);
}

/* What the next row reads first, or what comes soon in the rows that are new in
 * this one.  After the last row comes the next image, or group.  Of a data
 * gradient of stride 2, two rows need the same: each fetches a half. */
DDP__UNIT_INLINE void fetch_next(const struct pixels *p, int v,
                                 const struct ddp__depthwise_kind k)
{
    const struct ddp__depthwise_work *u = p->u;
    ptrdiff_t line = u->width * u->c, image = u->h * line;
    int row = p->rows.y + (k.spreads ? 1 : k.size);
    int half = k.pixels / 4;
    const float *x = (row < u->h ? p->x : p->next - image) + row * line +
                     p->left * u->c + v * LANES;

    if (k.spreads)
        fetch(x + (1 + p->rows.tap * half) * u->c, u, 1, half);
    else
        fetch(u->ahead ? x + u->ahead - k.stride * line : x, u, k.stride,
              k.pixels * k.stride);
}

DDP__UNIT_INLINE void put_words(float *y, const v16 *sum, __mmask16 mask,
                                bool b, bool streams)
{
    __m512i v = b ? ddp__unit_round_bf16(sum) : _mm512_castps_si512(sum[0]);

    if (streams)
        _mm512_stream_si512((void *)y, v);
    else
        _mm512_mask_storeu_epi32(y, mask, v);
}

DDP__UNIT_INLINE void read_results(const struct pixels *p, int v,
                                   const struct ddp__depthwise_kind k,
                                   bool careful, v16 *dy)
{
    const struct ddp__depthwise_read r = {.u = p->u,
                                          .v = v,
                                          .x = p->read + v * LANES,
                                          .first = careful ? p->first : 0,
                                          .end = careful ? p->end : k.pixels,
                                          .mask = p->from.mask};

    if (k.norm == DDP__DEPTHWISE_SUMS)
        ddp__depthwise_read_sums(&r, k, careful, dy);
    else
        ddp__depthwise_read_dx(&r, k, careful, dy);
}

/* A vector of words of some pixels. */
DDP__UNIT_INLINE void put_vector(const struct pixels *p, int v,
                                 const struct ddp__depthwise_kind k,
                                 bool careful)
{
    const struct ddp__depthwise_work *u = p->u;
    int halves = k.b ? 2 : 1;
    const float *w = u->w + (ptrdiff_t)v * k.size * k.size * halves * LANES;
    bool streams = u->streams && !u->block;
    float *y = p->y + v * LANES;
    v16 sum[2 * SPREAD];

#pragma GCC unroll 16
    for (int i = 0; i < k.pixels * halves; i++)
        sum[i] = _mm512_setzero_ps();
    for (int i = p->rows.tap, row = p->rows.y; i < k.size;
         i += p->rows.step, row += p->rows.next)
        if (row >= 0 && row < u->h)
            ddp__depthwise_add_row(
                &p->from,
                p->x + ((ptrdiff_t)row * u->width + p->left) * u->c + v * LANES,
                p->left, w + i * k.size * halves * LANES, k, careful, careful,
                sum);
    fetch_next(p, v, k);
    if (k.norm >= DDP__DEPTHWISE_SUMS)
        read_results(p, v, k, careful, sum);
    if (k.norm == DDP__DEPTHWISE_SUMS)
        return;
#pragma GCC unroll 8
    for (int i = 0; i < k.pixels; i++, y += u->c)
        if (!careful || (i >= p->first && i < p->end))
            put_words(y, sum + i * halves, careful ? p->from.mask : 0xffff, k.b,
                      streams);
}

/* Vectors first .. end - 1 of some pixels. */
DDP__UNIT_INLINE void put_vectors(struct pixels *p, int first, int end,
                                  const struct ddp__depthwise_kind k)
{
    const struct ddp__depthwise_work *u = p->u;
    bool inside = p->first == 0 && p->end == k.pixels && p->left >= 0 &&
                  p->left + ddp__depthwise_reach(k) <= u->width;
    int rest = (int)(u->c % LANES);

    for (int v = first; v < end; v++) {
        bool whole = v < u->vectors - 1 || rest == 0;

        p->from.mask = (__mmask16)(whole ? 0xffff : (1U << rest) - 1);
        if (k.norm == DDP__DEPTHWISE_READS)
            p->from.norm = ddp__bn_clamp_at(u->norm, (size_t)v * LANES);
        if (inside && whole)
            put_vector(p, v, k, false);
        else
            put_vector(p, v, k, true);
    }
}

/* Results from column ox on, in row oy of image n. */
DDP__UNIT_INLINE void put_pixels(const struct ddp__depthwise_work *u, int n,
                                 int oy, int ox, int first, int end,
                                 const struct ddp__depthwise_kind k)
{
    ptrdiff_t image = (ptrdiff_t)u->h * u->width * u->c;
    ptrdiff_t at = (((ptrdiff_t)n * u->oh + oy) * u->ow + ox) * u->c;
    float *to = u->y + at;
    struct pixels p = {
        .u = u,
        .from = {.c = u->c, .width = u->width, .mask = 0xffff},
        .x = u->x + n * image,
        .next = u->x + n * image +
                (end < u->vectors
                     ? u->group * LANES
                     : image - (u->vectors - 1) / u->group * u->group * LANES),
        .y = u->block ? u->block : to,
        .read = k.norm >= DDP__DEPTHWISE_SUMS ? u->reader->x + at : NULL,
        .rows = rows_of(u, k, oy),
        .left = k.spreads ? (ox + u->left) / 2 - ddp__depthwise_before(k)
                          : ox * k.stride - u->left,
        .first = ox < 0 ? -ox : 0,
        .end = ddp__min_int(k.pixels, u->ow - ox)};

    put_vectors(&p, first, end, k);
    if (u->block && k.norm != DDP__DEPTHWISE_SUMS)
        ddp__store_block(to + p.first * u->c, u->block + p.first * u->c,
                         (size_t)((p.end - p.first) * u->c), false, true);
}

/* All images.  Of a data gradient of stride 2 the first pixel has the even
 * taps. */
DDP__UNIT_INLINE void put_images(const struct ddp__depthwise_work *u,
                                 const struct ddp__depthwise_kind k)
{
    int begin = k.spreads ? -(u->left % 2) : 0;

    for (int n = 0; n < u->n; n++)
        for (int v = 0, end; v < u->vectors; v = end) {
            end = ddp__min_int(u->vectors, v + u->group);
            for (int oy = 0; oy < u->oh; oy++) {
                for (int ox = begin; ox < u->ow; ox += k.pixels)
                    put_pixels(u, n, oy, ox, v, end, k);
                if (k.norm == DDP__DEPTHWISE_SUMS)
                    ddp__depthwise_end_row(u);
            }
        }
}

/* size, stride, spreads; whether a norm may read the results: of stride 1, a
 * data gradient is a forward pass. */
#define KINDS(X)                                                               \
    X(3, 1, false, true)                                                       \
    X(3, 2, false, false)                                                      \
    X(5, 1, false, false)                                                      \
    X(5, 2, false, false)                                                      \
    X(3, 2, true, true)                                                        \
    X(5, 2, true, true)

#define IMAGES(size, stride, spreads, b, norm, act)                            \
    put_images(u,                                                              \
               (struct ddp__depthwise_kind){size, stride, spreads, b, norm,    \
                                            act, spreads ? SPREAD : PIXELS})

#define READ_IMAGES(size, stride, spreads, act)                                \
    do {                                                                       \
        if (u->reader->dx)                                                     \
            IMAGES(size, stride, spreads, false, DDP__DEPTHWISE_DX, act);      \
        else                                                                   \
            IMAGES(size, stride, spreads, false, DDP__DEPTHWISE_SUMS, act);    \
    } while (0)

#define X(size, stride, spreads, read)                                         \
    DDP__UNIT_TARGET static void images_##size##_##stride##_##spreads(         \
        const struct ddp__depthwise_work *u, bool b)                           \
    {                                                                          \
        if (read && u->reader && u->reader->act == DDP_SILU)                   \
            READ_IMAGES(size, stride, spreads, DDP_SILU);                      \
        else if (read && u->reader)                                            \
            READ_IMAGES(size, stride, spreads, DDP_IDENTITY);                  \
        else if (!spreads && u->norm)                                          \
            IMAGES(size, stride, false, false, DDP__DEPTHWISE_READS, 0);       \
        else if (b)                                                            \
            IMAGES(size, stride, spreads, true, DDP__DEPTHWISE_PLAIN, 0);      \
        else                                                                   \
            IMAGES(size, stride, spreads, false, DDP__DEPTHWISE_PLAIN, 0);     \
    }
KINDS(X)
#undef X

void ddp__depthwise_images(const struct ddp__depthwise_work *u, int side,
                           int step, bool spread, bool b)
{
#define X(size, stride, spreads, read)                                         \
    if (side == size && step == stride && spread == spreads)                   \
        images_##size##_##stride##_##spreads(u, b);
    KINDS(X)
#undef X
}

#endif
