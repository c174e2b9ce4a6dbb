/* bn_bwd_v16.c - first pass of a norm's backward pass by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Where relu has a mask: dr is written and summed while it is in registers, so
 * that neither it nor the f32 sums of a block go by way of memory.  The order
 * of the sums is that of ddp__bn_bwd_sum().  Both passes of 8 f32 images, one
 * Zen 5 core under load, milliseconds by its loops and in this way: 56x56x256
 * 5.66, 5.06; 14x14x1024 1.44, 1.06.
 */
#include "config.h"

#include "bn_bwd_v16.h"
#include "unit_v16.h"

#ifdef DDP__UNIT_V16

/* A column of 16 channels. */
struct column {
    const float *x, *dy;
    const uint8_t *mask;
    float *dr;
    size_t width, ahead; /* values to the next row, and to the next block */
    v16 mean;
    bool stream;
};

struct term {
    v16 d, dz;
};

DDP__UNIT_INLINE struct term term_at(const struct column *c, size_t r)
{
    size_t at = r * c->width;
    struct term t;
    __mmask16 m;

    memcpy(&m, c->mask + at / 8, sizeof(m));
    t.dz = _mm512_maskz_loadu_ps(m, c->dy + at);
    t.d = _mm512_sub_ps(_mm512_loadu_ps(c->x + at), c->mean);
    _mm_prefetch((const char *)(c->x + at + c->ahead), _MM_HINT_T0);
    _mm_prefetch((const char *)(c->dy + at + c->ahead), _MM_HINT_T0);
    if (c->stream)
        _mm512_stream_ps(c->dr + at, t.dz);
    else
        _mm512_storeu_ps(c->dr + at, t.dz);
    return t;
}

DDP__UNIT_INLINE void add(double *sum, v16 v)
{
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));

    _mm512_storeu_pd(sum, _mm512_add_pd(_mm512_loadu_pd(sum), low));
    _mm512_storeu_pd(sum + 8, _mm512_add_pd(_mm512_loadu_pd(sum + 8), high));
}

DDP__UNIT_INLINE v16 products(struct term a, struct term b)
{
    return _mm512_fmadd_ps(a.dz, a.d, _mm512_mul_ps(b.dz, b.d));
}

DDP__UNIT_INLINE void sum_column(const struct column *c, size_t rows,
                                 double *sum1, double *sum2)
{
    v16 s1 = _mm512_setzero_ps(), s2 = s1;
    size_t r = 0;

    for (; r + 4 <= rows; r += 4) {
        struct term t0 = term_at(c, r), t1 = term_at(c, r + 1);
        struct term t2 = term_at(c, r + 2), t3 = term_at(c, r + 3);

        s1 = _mm512_add_ps(s1, _mm512_add_ps(_mm512_add_ps(t0.dz, t1.dz),
                                             _mm512_add_ps(t2.dz, t3.dz)));
        s2 = _mm512_add_ps(s2,
                           _mm512_add_ps(products(t0, t1), products(t2, t3)));
    }
    for (; r < rows; r++) {
        struct term t = term_at(c, r);

        s1 = _mm512_add_ps(s1, t.dz);
        s2 = _mm512_fmadd_ps(t.dz, t.d, s2);
    }
    add(sum1, s1);
    add(sum2, s2);
}

DDP__UNIT_TARGET static void sum_columns(const float *mean,
                                         const struct ddp__bn_part *k,
                                         double *sum, bool stream)
{
    size_t w = k->width;

    for (size_t i = 0; i < k->len; i += 16) {
        struct column c = {.x = (const float *)k->x + i,
                           .dy = (const float *)k->dy + i,
                           .mask = k->mask + i / 8,
                           .dr = (float *)k->dr + i,
                           .width = w,
                           .ahead = k->rows * w,
                           .mean = _mm512_loadu_ps(mean + i),
                           .stream = stream};

        sum_column(&c, k->rows, sum + i, sum + w + i);
    }
}

bool ddp__bn_bwd_sum_v16(const float *mean, const struct ddp__bn_part *k,
                         double *sum, bool stream)
{
    if (!ddp__unit_v16(false) || k->len % 16)
        return false;
    sum_columns(mean, k, sum, stream && (uintptr_t)k->dr % 64 == 0);
    return true;
}
#else
bool ddp__bn_bwd_sum_v16(const float *mean, const struct ddp__bn_part *k,
                         double *sum, bool stream)
{
    (void)mean, (void)k, (void)sum, (void)stream;
    return false;
}
#endif
