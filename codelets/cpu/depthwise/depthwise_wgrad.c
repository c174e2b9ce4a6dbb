/* depthwise_wgrad.c - weight gradients of depthwise 5x5 layers, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sixteen channels at a time, a strip of rows is copied to a plane of f32 with
 * the padding around it, and the products under all 25 taps are added up in
 * registers.  Each strip has sums of its own, which are added to the result
 * after it.
 *
 * One Zen 5 core, sub-batches of 16, milliseconds of processor time by oneDNN
 * 2.6 and in this way:
 *
 *     7x7x1152          5.9 0.37, bf16 23.1 0.35
 *     14x14x672         8.5 0.85, bf16 26.3 0.70
 *     28x28x240        12.9 2.4, bf16 29.5 0.95
 *     56x56x144 to 28  11.3 3.9, bf16 44.9 1.35
 *
 * What the next strip reads is fetched while a strip is copied.  One of two
 * busy cores, 16 images, milliseconds without that and with it, an Intel Xeon
 * with AMX: 28x28x240 4.8 4.0, bf16 4.1 2.8; 14x14x672 4.1 2.8, bf16 2.4 2.1;
 * a Zen 4: 28x28x240 5.1 3.3, bf16 3.9 2.9; 14x14x672 3.8 2.2, bf16 2.4 1.9.
 *
 * Against sums in f64, errors are 2.4e-7 to 3.3e-7 of the norm, by oneDNN
 * 2.6e-7 to 1.9e-6; bf16 1.1e-7 and 2.6e-7.  oneDNN's 3x3 kernels are as fast
 * as these loops would be.
 */
#include "config.h"

#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/isa.h"
#include "cpu/thread.h"
#include "cpu/vector/v16.h"

#ifdef DDP__X86
enum {
    SIDE = 5,
    TAPS = SIDE * SIDE,
    LANES = 16,
    LINE = 64,
    PLANE_BYTES = 1 << 15
};

/* ---- images ------------------------------------------------------------- */

/* Memory that is fetched meanwhile: `ahead` bytes for each pixel. */
struct next {
    const char *at;
    size_t ahead;
};

/* Channels of one image: those of `mask`, from data on. */
struct image {
    const char *data;
    int h, w;
    size_t c; /* of all */
    bool b;   /* bf16 */
    __mmask16 mask;
};

static struct image channels_of(const void *data, int n, int h, int w,
                                const struct ddp__conv_shape *s, size_t first)
{
    size_t c = (size_t)s->c, left = c - first;
    size_t at = (size_t)n * (size_t)h * (size_t)w * c + first;
    bool b = s->type == DDP_BF16;

    return (struct image){ddp__at(data, at, b), h, w, c, b, ddp__mask16(left)};
}

DDP__V16_INLINE __m512 load_pixel(const struct image *m, size_t pixel)
{
    const void *p = ddp__at(m->data, pixel * m->c, m->b);

    if (!m->b)
        return _mm512_maskz_loadu_ps(m->mask, p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m->mask, p)), 16));
}

DDP__V16_INLINE void fetch(struct next *n)
{
    for (size_t i = 0; i < n->ahead; i += LINE)
        _mm_prefetch(n->at + i, _MM_HINT_T1);
    n->at += n->ahead;
}

/* Row y of an image, after `left` zeros, as `width` pixels. */
DDP__V16 static void fill_row(const struct image *m, int y, int left, int width,
                              float *row, struct next *next)
{
    int count = m->w < width - left ? m->w : width - left;
    int end = left + count;
    size_t at = (size_t)y * (size_t)m->w;
    struct next soon = *next;

    memset(row, 0, (size_t)left * LANES * sizeof(*row));
    for (int x = 0; x < count; x++) {
        fetch(&soon);
        _mm512_store_ps(row + (size_t)(left + x) * LANES,
                        load_pixel(m, at + (size_t)x));
    }
    *next = soon;
    memset(row + (size_t)end * LANES, 0,
           (size_t)(width - end) * LANES * sizeof(*row));
}

/* Rows of an image from `first` on, which may be outside. */
static void fill_plane(const struct image *m, int first, int rows, int left,
                       int width, float *plane, struct next *next)
{
    size_t len = (size_t)width * LANES;

    for (int y = first; y < first + rows; y++, plane += len)
        if (y < 0 || y >= m->h)
            memset(plane, 0, len * sizeof(*plane));
        else
            fill_row(m, y, left, width, plane, next);
}

/* ---- products ----------------------------------------------------------- */

/* rows x cols pixels of dy, in rows of x that are `width` pixels long. */
struct window {
    size_t rows, cols, width, stride;
};

/* dw += sum over pixels of dy times the pixels of x under the taps, each of
 * which has a register: every index of sum is known when this is compiled. */
DDP__V16 static void add_products(const struct window *n, const float *x,
                                  const float *dy, float *dw)
{
    __m512 sum[TAPS];

#pragma GCC unroll 25
    for (size_t i = 0; i < TAPS; i++)
        sum[i] = _mm512_setzero_ps();
    for (size_t r = 0; r < n->rows; r++)
        for (size_t i = 0; i < n->cols; i++, dy += LANES) {
            const float *p = x + (r * n->width + i) * n->stride * LANES;
            __m512 d = _mm512_load_ps(dy);

#pragma GCC unroll 25
            for (size_t j = 0; j < TAPS; j++)
                sum[j] = _mm512_fmadd_ps(
                    d,
                    _mm512_load_ps(p +
                                   (j / SIDE * n->width + j % SIDE) * LANES),
                    sum[j]);
        }
#pragma GCC unroll 25
    for (size_t i = 0; i < TAPS; i++, dw += LANES)
        _mm512_store_ps(dw, _mm512_add_ps(_mm512_load_ps(dw), sum[i]));
}

/* From (block of channels, taps, 16). */
static void put_gradient(const float *from, size_t c, bool accumulate, float *g)
{
    for (size_t j = 0; j < c; j++)
        for (size_t i = 0; i < TAPS; i++, g++)
            *g = (accumulate ? *g : 0) +
                 from[(j / LANES * TAPS + i) * LANES + j % LANES];
}

/* ---- layers ------------------------------------------------------------- */

/* Memory of a task, and the size of its strips. */
struct strips {
    const struct ddp__conv_shape *s;
    int rows, width; /* of dy in a strip; pixels of x in a row */
    float *dw, *x, *dy;
    size_t dw_len;
};

static int strips_new(const struct ddp__conv_shape *s, struct strips *p)
{
    int width = (s->ow - 1) * s->conv.sw + SIDE;
    int most = PLANE_BYTES / (width * LANES * (int)sizeof(float));
    int fit = (most - SIDE) / s->conv.sh + 1;
    int rows = fit < 1 ? 1 : fit < s->oh ? fit : s->oh;
    size_t dw = ddp__align((size_t)s->c) * TAPS;
    size_t x = (size_t)((rows - 1) * s->conv.sh + SIDE) * (size_t)width * LANES;
    size_t dy = (size_t)(rows * s->ow) * LANES;
    float *room = ddp__scratch((dw + x + dy) * sizeof(*room));

    if (!room)
        return DDP_ENOMEM;
    memset(room, 0, dw * sizeof(*room));
    *p = (struct strips){s, rows, width, room, room + dw, room + dw + x, dw};
    return 0;
}

/* What is fetched from a pixel on, while all blocks of channels of as many
 * pixels are copied. */
static struct next next_of(const struct ddp__conv_shape *s, const void *data,
                           int pixel)
{
    size_t c = (size_t)s->c, blocks = (c + LANES - 1) / LANES;
    bool b = s->type == DDP_BF16;

    return (struct next){ddp__at(data, (size_t)pixel * c, b),
                         c * (b ? 2 : 4) / blocks};
}

/* What image i adds from row `at` of dy on. */
static void add_strip(const struct strips *p, const void *x_data,
                      const void *dy_data, int i, int at)
{
    const struct ddp__conv_shape *s = p->s;
    const struct ddp__conv *k = &s->conv;
    int rows = s->oh - at < p->rows ? s->oh - at : p->rows;
    struct window n = {(size_t)rows, (size_t)s->ow, (size_t)p->width,
                       (size_t)k->sh};
    int last = ddp__min_int((at + rows - 1) * k->sh - k->top + SIDE, s->h);
    struct next next_x = next_of(s, x_data, (i * s->h + last) * s->w);
    struct next next_dy = next_of(s, dy_data, (i * s->oh + at + rows) * s->ow);

    for (size_t c = 0; c < (size_t)s->c; c += LANES) {
        struct image x = channels_of(x_data, i, s->h, s->w, s, c);
        struct image dy = channels_of(dy_data, i, s->oh, s->ow, s, c);

        fill_plane(&x, at * k->sh - k->top, (rows - 1) * k->sh + SIDE, k->left,
                   p->width, p->x, &next_x);
        fill_plane(&dy, at, rows, 0, s->ow, p->dy, &next_dy);
        add_products(&n, p->x, p->dy, p->dw + c * TAPS);
    }
}

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && k->groups == s->c && s->o == s->c && k->kh == SIDE &&
           k->kw == SIDE && k->sh == k->sw && k->dh == 1 && k->dw == 1 &&
           k->top < SIDE && k->left < SIDE && !k->bias && ddp__avx512_here();
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    struct strips p;

    if (strips_new(s, &p) < 0)
        return DDP_ENOMEM;
    for (int i = 0; i < s->n; i++)
        for (int at = 0; at < s->oh; at += p.rows)
            add_strip(&p, x, dy, i, at);
    put_gradient(p.dw, (size_t)s->c, accumulate, dw);
    return 0;
}

const struct ddp__gradient ddp__depthwise_wgrad = {
    .name = "depthwise weight gradient", .fits = fits, .run = run};

#endif
