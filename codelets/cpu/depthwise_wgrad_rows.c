/* depthwise_wgrad_rows.c - weight gradients of depthwise 3x3 layers, by rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A strip of rows is in the second-level cache and is read in place, 16
 * channels at a time, while the next strip is prefetched in the order of its
 * addresses. Sums of a strip are in registers.  They are added up for an image,
 * and those of images in the result; the order depends on the shape alone.
 *
 * One of two busy cores of an Intel Xeon (AVX-512, AMX), 16 images,
 * milliseconds of processor time under load, by oneDNN 2.6 and in this way:
 *
 *     112x112x96 of stride 2  12.1 7.4, bf16 13.8 3.1
 *     112x112x32               4.7 4.0, bf16  7.8 1.9
 *     56x56x144                9.6 4.5, bf16 16.1 2.5
 *     56x56x144 of stride 2    4.1 2.6, bf16  3.4 1.0
 *     28x28x192                2.5 1.6, bf16  3.6 0.9
 *     14x14x576                1.8 1.3, bf16  2.3 0.8
 *     7x7x960                  0.6 0.5, bf16  0.7 0.3
 *
 * Against sums in f64, errors are up to 2.0e-7 of the norm, with bf16
 * 1.3e-7 (tests/test_wgrad.c).  Only that processor has been measured: others
 * use oneDNN.
 */
#include "config.h"

#include "act.h"
#include "base/error.h"
#include "cpu.h"
#include "depthwise_wgrad_rows.h"
#include "isa.h"
#include "thread.h"
#include "v16.h"

#if defined(__x86_64__) && defined(__GNUC__)
enum { SIDE = 3, TAPS = SIDE * SIDE, LANES = 16, LINE = 64, LINES_OF_X = 4 };

/* Of x and dy in a strip: with twice that, times are about the same, with eight
 * times that up to 1.2 times as long. */
enum { STRIP_BYTES = 64 << 10 };

/* ---- products ----------------------------------------------------------- */

/* Memory that is fetched meanwhile: `ahead` bytes for each pixel of a row. */
struct next {
    const char *at;
    size_t ahead;
};

/* One or two rows of dy, and the rows of x under them, for up to 16 channels.
 * Rows of x outside of the image point to zeros. */
struct band {
    const char *x[LINES_OF_X], *dy[2];
    size_t pitch; /* bytes from pixel to pixel */
    int w, ow, left;
    __mmask16 mask;
    struct next next[2];
};

DDP__V16_INLINE void fetch(struct next *n)
{
    for (size_t i = 0; i < n->ahead; i += LINE)
        _mm_prefetch(n->at + i, _MM_HINT_T1);
    n->at += n->ahead;
}

DDP__V16_INLINE __m512 load(bool b, __mmask16 mask, const char *p)
{
    if (!b)
        return _mm512_maskz_loadu_ps(mask, p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16));
}

/* sum += the products of a pixel of each row of dy with the pixels of x[line]
 * under its taps, whose columns are `pitch` apart from at[line] on. */
DDP__V16_INLINE void add_column(bool b, int rows, int stride, __mmask16 mask,
                                const char *const *at, size_t pitch, int first,
                                int end, const char *const *dy, size_t dy_at,
                                __m512 *sum)
{
    __m512 d[2];

#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
        d[r] = load(b, mask, dy[r] + dy_at);
#pragma GCC unroll 4
    for (int l = 0; l < (rows - 1) * stride + SIDE; l++)
#pragma GCC unroll 3
        for (int j = 0; j < SIDE; j++) {
            __m512 v;

            if (j < first || j >= end)
                continue;
            v = load(b, mask, at[l] + (size_t)j * pitch);
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++) {
                int i = l - r * stride;

                if (i >= 0 && i < SIDE)
                    sum[i * SIDE + j] =
                        _mm512_fmadd_ps(d[r], v, sum[i * SIDE + j]);
            }
        }
}

/* A pixel at an edge, some of whose taps see nothing. */
DDP__V16_INLINE void add_edge(bool b, int rows, int stride,
                              const struct band *n, int i, __m512 *sum)
{
    int column = i * stride - n->left;
    int first = column < 0 ? -column : 0;
    int end = n->w - column < SIDE ? n->w - column : SIDE;
    const char *at[LINES_OF_X];

    for (int l = 0; l < (rows - 1) * stride + SIDE; l++)
        at[l] = n->x[l] + (ptrdiff_t)column * (ptrdiff_t)n->pitch;
    add_column(b, rows, stride, n->mask, at, n->pitch, first, end, n->dy,
               (size_t)i * n->pitch, sum);
}

DDP__V16_INLINE void add_edges(bool b, int rows, int stride,
                               const struct band *n, int from, int to,
                               __m512 *sum)
{
    for (int i = from; i < to; i++)
        add_edge(b, rows, stride, n, i, sum);
}

/* Pixels all of whose taps are inside of the image's width. */
DDP__V16_INLINE void add_middle(bool b, int rows, int stride, struct band *n,
                                int from, int to, __m512 *sum)
{
    int column = from * stride - n->left;
    struct next next = n->next[0], next2 = n->next[1];
    const char *at[LINES_OF_X];

#pragma GCC unroll 4
    for (int l = 0; l < (rows - 1) * stride + SIDE; l++)
        at[l] = n->x[l] + (ptrdiff_t)column * (ptrdiff_t)n->pitch;
    for (int i = from; i < to; i++) {
        fetch(&next);
        fetch(&next2);
        add_column(b, rows, stride, n->mask, at, n->pitch, 0, SIDE, n->dy,
                   (size_t)i * n->pitch, sum);
#pragma GCC unroll 4
        for (int l = 0; l < (rows - 1) * stride + SIDE; l++)
            at[l] += (size_t)stride * n->pitch;
    }
    n->next[0] = next;
    n->next[1] = next2;
}

static int clamp(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* rows and stride are constants: every index of sum is known when this is
 * compiled. */
DDP__V16_INLINE void add_band(bool b, int rows, int stride, struct band *n,
                              float *to)
{
    int begin = clamp((n->left + stride - 1) / stride, n->ow);
    int end = clamp((n->w - SIDE + n->left + stride) / stride, n->ow);
    __m512 sum[TAPS];

    end = end < begin ? begin : end;
#pragma GCC unroll 9
    for (int i = 0; i < TAPS; i++)
        sum[i] = _mm512_loadu_ps(to + i * LANES);
    add_edges(b, rows, stride, n, 0, begin, sum);
    add_middle(b, rows, stride, n, begin, end, sum);
    add_edges(b, rows, stride, n, end, n->ow, sum);
#pragma GCC unroll 9
    for (int i = 0; i < TAPS; i++)
        _mm512_storeu_ps(to + i * LANES, sum[i]);
}

/* An instance for each case. */
#define X(name, b, rows, stride)                                               \
    DDP__V16 static void name(struct band *n, float *to)                       \
    {                                                                          \
        add_band(b, rows, stride, n, to);                                      \
    }
X(pair_f32, false, 2, 1)
X(row_f32, false, 1, 1)
X(skip_f32, false, 1, 2)
X(pair_bf16, true, 2, 1)
X(row_bf16, true, 1, 1)
X(skip_bf16, true, 1, 2)
#undef X

static void add_rows(bool b, int rows, int stride, struct band *n, float *to)
{
    if (stride == 2)
        (b ? skip_bf16 : skip_f32)(n, to);
    else if (rows == 2)
        (b ? pair_bf16 : pair_f32)(n, to);
    else
        (b ? row_bf16 : row_f32)(n, to);
}

/* ---- layers ------------------------------------------------------------- */

/* A layer, and sums [block of channels][tap][16] of a strip, an image, all. */
struct run {
    const struct ddp__dnn_shape *s;
    const char *x, *dy, *zeros; /* of an image; a row */
    bool b;
    size_t c, pitch, len;
    int rows; /* of dy in a strip */
    float *part, *image, *total;
};

static const char *row_of_x(const struct run *r, int y)
{
    const struct ddp__dnn_shape *s = r->s;

    return y < 0 || y >= s->h ? r->zeros
                              : r->x + (size_t)y * (size_t)s->w * r->pitch;
}

/* A band from row y of dy on, without what it fetches. */
static struct band band_of(const struct run *r, int y, size_t first)
{
    const struct ddp__dnn_shape *s = r->s;
    size_t left = r->c - first, at = first * (r->b ? 2 : 4);
    struct band n = {.pitch = r->pitch,
                     .w = s->w,
                     .ow = s->ow,
                     .left = s->conv.left,
                     .mask = ddp__mask16(left)};

    for (int i = 0; i < LINES_OF_X; i++)
        n.x[i] = row_of_x(r, y * s->conv.sh - s->conv.top + i) + at;
    for (int i = 0; i < 2; i++)
        n.dy[i] = r->dy + (size_t)((y + i) * s->ow) * r->pitch + at;
    return n;
}

/* What follows the strip of `rows` rows from y on, for `steps` pixels. */
static void look_ahead(const struct run *r, int y, int rows, size_t steps,
                       struct next *next)
{
    const struct ddp__dnn_shape *s = r->s;
    size_t row = (size_t)s->w * r->pitch, dy_row = (size_t)s->ow * r->pitch;
    size_t of_x = (size_t)(rows * s->conv.sh) * row;
    int last = (y + rows - 1) * s->conv.sh - s->conv.top + SIDE;

    next[0] = (struct next){r->x + (size_t)last * row, of_x / steps};
    next[1] = (struct next){r->dy + (size_t)(y + rows) * dy_row,
                            (size_t)rows * dy_row / steps};
}

static void add_strip(const struct run *r, int y, int rows)
{
    const struct ddp__dnn_shape *s = r->s;
    int stride = s->conv.sh, most = stride == 1 ? 2 : 1;
    size_t blocks = (r->c + LANES - 1) / LANES;
    size_t bands = (size_t)((rows + most - 1) / most);
    struct next next[2];

    look_ahead(r, y, rows, blocks * bands * (size_t)s->ow, next);
    memset(r->part, 0, r->len * sizeof(*r->part));
    for (size_t k = 0; k < blocks; k++)
        for (int i = 0; i < rows; i += most) {
            struct band n = band_of(r, y + i, k * LANES);

            memcpy(n.next, next, sizeof(next));
            add_rows(r->b, rows - i < most ? 1 : most, stride, &n,
                     r->part + k * TAPS * LANES);
            memcpy(next, n.next, sizeof(next));
        }
    ddp__cpu_add_f32(r->image, r->part, r->len);
}

static void add_image(const struct run *r)
{
    memset(r->image, 0, r->len * sizeof(*r->image));
    for (int y = 0; y < r->s->oh; y += r->rows)
        add_strip(r, y, r->s->oh - y < r->rows ? r->s->oh - y : r->rows);
    ddp__cpu_add_f32(r->total, r->image, r->len);
}

static void put_gradient(const struct run *r, bool add, float *dw)
{
    for (size_t j = 0; j < r->c; j++)
        for (size_t i = 0; i < TAPS; i++, dw++)
            *dw = (add ? *dw : 0) +
                  r->total[(j / LANES * TAPS + i) * LANES + j % LANES];
}

bool ddp__depthwise_wgrad_rows_fits(const struct ddp__dnn_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && k->groups == s->c && s->o == s->c && k->kh == SIDE &&
           k->kw == SIDE && k->sh == k->sw && k->sh <= 2 && k->dh == 1 &&
           k->dw == 1 && ddp__amx_here();
}

static int run_new(struct run *r)
{
    const struct ddp__dnn_shape *s = r->s;
    size_t of_x = (size_t)(s->conv.sh * s->w) * r->pitch;
    size_t rows = STRIP_BYTES / (of_x + (size_t)s->ow * r->pitch);
    size_t zeros = ddp__align((size_t)s->w * r->pitch);
    float *room;

    r->rows = rows < 2 ? 2 : (int)(rows / 2) * 2;
    r->len = (r->c + LANES - 1) / LANES * LANES * TAPS;
    if (!(room = ddp__scratch(3 * r->len * sizeof(*room) + zeros)))
        return DDP_ENOMEM;
    r->total = room;
    r->image = room + r->len;
    r->part = room + 2 * r->len;
    r->zeros = memset(room + 3 * r->len, 0, zeros);
    memset(r->total, 0, r->len * sizeof(*r->total));
    return 0;
}

int ddp__depthwise_wgrad_rows_run(const struct ddp__dnn_shape *s, const void *x,
                                  const void *dy, bool accumulate, float *dw)
{
    bool b = s->type == DDP_BF16;
    struct run r = {.s = s,
                    .x = x,
                    .dy = dy,
                    .b = b,
                    .c = (size_t)s->c,
                    .pitch = (size_t)s->c * (b ? 2 : 4)};

    if (run_new(&r) < 0)
        return DDP_ENOMEM;
    for (int i = 0; i < s->n; i++) {
        add_image(&r);
        r.x += (size_t)(s->h * s->w) * r.pitch;
        r.dy += (size_t)(s->oh * s->ow) * r.pitch;
    }
    put_gradient(&r, accumulate, dw);
    return 0;
}

#else

bool ddp__depthwise_wgrad_rows_fits(const struct ddp__dnn_shape *s)
{
    (void)s;
    return false;
}

int ddp__depthwise_wgrad_rows_run(const struct ddp__dnn_shape *s, const void *x,
                                  const void *dy, bool accumulate, float *dw)
{
    (void)s, (void)x, (void)dy, (void)accumulate, (void)dw;
    return ddp__fail(DDP_ENODEV, "this weight gradient needs AVX-512");
}

#endif
