/* depthwise_infer.c - depthwise convolutions of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A vector of channels goes over seven pixels of a row at a time
 * (depthwise_row.h), and then the vectors next to it do: up to six, so that
 * memory is read in pieces of up to 384 bytes.
 *
 * One Zen 5 core under load, milliseconds of the depthwise layers of one image
 * by oneDNN 2.6, and in this way: EfficientNet-B0 1.32, 0.74; two cores 0.91,
 * 0.44.
 *
 * Parts are of rows or of channels, as those of the layers around are: a core
 * reads what it wrote, and 1x1 layers have parts of rows down to 14x14 pixels.
 * Two cores of an Intel Xeon with AMX under load, microseconds of a
 * layer of MobileNetV2 in parts of channels and of rows: 56x56 to 28x28, 144
 * channels 58, 30; 28x28, 192 channels 46, 32; 14x14, 576 channels 34, 25.
 *
 * Two cores of an Intel Xeon (AVX-512), microseconds of a layer, each vector
 * over a band of rows by itself, all side by side, and six: 112x112, 32
 * channels 102, 76, 75; 112x112 by 2, 96 215, 132, 132; 56x56, 144 82, 81, 82,
 * by 2 31, 40, 38; 28x28 by 2, 192 37, 34, 31; 14x14, 384 17, 16, 14; 7x7, 960
 * 17, 17, 12; 5x5 of 56x56 by 2, 144 52, 59, 56; 28x28, 240 75, 75, 72; 14x14,
 * 672 60, 59, 58.
 */
#include "config.h"

#include <string.h>

#include "base/team.h"
#include "cpu/conv/infer.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act_v16.h"
#include "cpu/isa.h"
#include "cpu/store.h"
#include "depthwise_row.h"

#ifdef DDP__X86

enum {
    VECTOR = 16,
    PIXELS = 7,   /* sums at a time: images are mostly multiples of 7 wide */
    TOGETHER = 6, /* vectors that go over pixels side by side */
    BAND = 8,     /* rows of output: their input is in the second-level cache */
    PART = 1 << 19 /* products of a part: some 5 us */
};

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_F32 && !s->sum && k->groups == s->c &&
           s->o == s->c && s->c % VECTOR == 0 && k->kh == k->kw &&
           (k->kw == 3 || k->kw == 5) && k->sh == k->sw &&
           (k->sw == 1 || k->sw == 2) && k->dh == 1 && k->dw == 1 &&
           s->ow >= PIXELS && ddp__infer_has(k->act) && ddp__avx512_here();
}

static size_t packed_size(const struct ddp__conv_shape *s)
{
    return (size_t)s->c * (size_t)(s->conv.kh * s->conv.kw) * sizeof(float);
}

static int count_parts(const struct ddp__conv_shape *s)
{
    (void)s;
    return 1;
}

static void pack(const struct ddp__conv_shape *s, const float *w,
                 const float *by, int part, float *to)
{
    size_t taps = (size_t)(s->conv.kh * s->conv.kw);

    (void)part; /* there is one */
    for (size_t j = 0; j < (size_t)s->c; j += VECTOR)
        for (size_t i = 0; i < taps; i++)
            for (size_t k = j; k < j + VECTOR; k++)
                *to++ = (by ? by[k] : 1) * w[k * taps + i];
}

/* ---- pixels ------------------------------------------------------------- */

/* Some vectors of channels of an image, from the first of x and y on. */
struct plane {
    const struct ddp__conv_shape *s;
    const float *x, *w, *bias;
    float *y;
    int vectors;
    bool streams;
};

/* What the next row of output reads first; channels of a pixel are far from
 * those of the next one, which processors do not foresee. */
DDP__V16_INLINE void fetch_row(const struct plane *p, int y, int left,
                               int stride)
{
    const float *x = p->x + (ptrdiff_t)(y * p->s->w + left) * p->s->c;

    for (int i = 0; i < stride * p->s->w && y < p->s->h; i += p->s->w)
#pragma GCC unroll 14
        for (int j = 0; j < PIXELS * stride; j++)
            _mm_prefetch((const void *)(x + (ptrdiff_t)(i + j) * p->s->c),
                         _MM_HINT_T0);
}

/* Outputs (oy, ox) and the next ones, of one vector. */
DDP__V16_INLINE void put_pixels(const struct plane *p, int oy, int ox, int size,
                                int stride, bool edge, enum ddp_act act)
{
    const struct ddp__conv_shape *s = p->s;
    int top = oy * stride - s->conv.top, left = ox * stride - s->conv.left;
    const struct ddp__depthwise_kind k = {
        .size = size, .stride = stride, .pixels = PIXELS};
    const struct ddp__depthwise_source from = {.c = s->c, .width = s->w};
    float *y = p->y + (ptrdiff_t)(oy * s->ow + ox) * s->c;
    v16 bias = LOAD(p->bias), sum[PIXELS];

#pragma GCC unroll 7
    for (int i = 0; i < PIXELS; i++)
        sum[i] = bias;
    for (int i = top < 0 ? -top : 0; i < size && top + i < s->h; i++)
        ddp__depthwise_add_row(
            &from, p->x + (ptrdiff_t)((top + i) * s->w + left) * s->c, left,
            p->w + i * size * VECTOR, k, edge, false, sum);
    fetch_row(p, top + size, left, stride);
#pragma GCC unroll 7
    for (int i = 0; i < PIXELS; i++, y += s->c)
        ddp__put_v16(y, ddp__act_v16(sum[i], act), p->streams);
}

DDP__V16_INLINE void put_vectors(const struct plane *p, int oy, int ox,
                                 int size, int stride, bool edge,
                                 enum ddp_act act)
{
    struct plane one = *p;

    for (int v = 0; v < p->vectors; v++) {
        put_pixels(&one, oy, ox, size, stride, edge, act);
        one.x += VECTOR;
        one.w += size * size * VECTOR;
        one.bias += VECTOR;
        one.y += VECTOR;
    }
}

/* Rows first .. end - 1 of output.  The last pixels of a row are some of those
 * before, too, where PIXELS does not divide it. */
DDP__V16_INLINE void run_rows(const struct plane *p, int first, int end,
                              int size, int stride, enum ddp_act act)
{
    const struct ddp__conv_shape *s = p->s;
    int reach = (PIXELS - 1) * stride + size;

    for (int oy = first; oy < end; oy++)
        for (int i = 0; i < s->ow; i += PIXELS) {
            int ox = i + PIXELS <= s->ow ? i : s->ow - PIXELS;
            int left = ox * stride - s->conv.left;

            if (left >= 0 && left + reach <= s->w)
                put_vectors(p, oy, ox, size, stride, false, act);
            else
                put_vectors(p, oy, ox, size, stride, true, act);
        }
}

#define KINDS(X) X(3, 1) X(3, 2) X(5, 1) X(5, 2)

#define X(size, stride)                                                        \
    DDP__V16 static void rows_##size##_##stride(const struct plane *p,         \
                                                int first, int end)            \
    {                                                                          \
        switch (p->s->conv.act) {                                              \
        case DDP_SILU:                                                         \
            run_rows(p, first, end, size, stride, DDP_SILU);                   \
            break;                                                             \
        case DDP_RELU6:                                                        \
            run_rows(p, first, end, size, stride, DDP_RELU6);                  \
            break;                                                             \
        case DDP_RELU:                                                         \
            run_rows(p, first, end, size, stride, DDP_RELU);                   \
            break;                                                             \
        default:                                                               \
            run_rows(p, first, end, size, stride, DDP_IDENTITY);               \
        }                                                                      \
    }
KINDS(X)
#undef X

static void (*rows_of(const struct ddp__conv_shape *s))(const struct plane *,
                                                        int, int)
{
#define X(size, stride)                                                        \
    if (s->conv.kw == size && s->conv.sw == stride)                            \
        return rows_##size##_##stride;
    KINDS(X)
#undef X
    return NULL;
}

/* ---- parts -------------------------------------------------------------- */

struct run {
    const struct ddp__conv_shape *s;
    const float *x, *w, *bias;
    float *y;
    int bands, groups; /* parts: of rows, of vectors of channels */
    bool streams;
};

/* Vectors v .. v + count - 1 of image n. */
static struct plane plane_of(const struct run *u, int n, int v, int count)
{
    const struct ddp__conv_shape *s = u->s;
    ptrdiff_t at = (ptrdiff_t)v * VECTOR;

    return (struct plane){.s = s,
                          .x = u->x + (ptrdiff_t)n * s->h * s->w * s->c + at,
                          .w = u->w + at * s->conv.kh * s->conv.kw,
                          .bias = u->bias + at,
                          .y = u->y + (ptrdiff_t)n * s->oh * s->ow * s->c + at,
                          .vectors = count,
                          .streams = u->streams};
}

/* Rows and channels of each image. */
static int run_part(void *arg, int i)
{
    const struct run *u = arg;
    const struct ddp__conv_shape *s = u->s;
    void (*rows)(const struct plane *, int, int) = rows_of(s);
    int band = i / u->groups, group = i % u->groups;
    int first = group * (s->c / VECTOR) / u->groups;
    int count = (group + 1) * (s->c / VECTOR) / u->groups - first;
    int last = (band + 1) * s->oh / u->bands;

    for (int n = 0; n < s->n; n++)
        for (int y = band * s->oh / u->bands, end; y < last; y = end) {
            end = last - y < 2 * BAND ? last : y + BAND;
            for (int v = 0, next; v < count; v = next) {
                struct plane p;

                next = count - v < TOGETHER ? count : v + TOGETHER;
                p = plane_of(u, n, first + v, next - v);
                rows(&p, y, end);
            }
        }
    if (u->streams)
        ddp__store_end();
    return 0;
}

static int run(const struct ddp__conv_shape *s, const float *x,
               const float *packed, const float *bias, float *y)
{
    struct run u = {s, x, packed, bias, y, 1, 1, false};
    size_t outs = (size_t)s->n * (size_t)s->oh * (size_t)s->ow * (size_t)s->c;
    size_t taps = (size_t)(s->conv.kh * s->conv.kw);
    int parts = ddp__team_parts(outs * (taps + 8), PART);

    u.streams = ddp__streams_v16(y, outs);
    if (s->oh >= BAND)
        u.bands = parts;
    else
        u.groups = parts < s->c / VECTOR ? parts : s->c / VECTOR;
    return ddp__team_each(u.bands * u.groups, run_part, &u);
}

const struct ddp__infer ddp__depthwise_infer = {.name = "depthwise vectors",
                                                .fits = fits,
                                                .packed_size = packed_size,
                                                .parts = count_parts,
                                                .pack = pack,
                                                .run = run};

#endif
