/* bn_sum_v16.c - sums of batch normalisation, both directions, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A strip is some rows of a block, which together are some KiB: its columns are
 * summed in registers, 16 at a time, while the next strip is fetched.  Where
 * relu has a mask, dr is also stored from registers.
 */
#include "config.h"

#include "bn_sum_v16.h"
#include "bn_v16.h"
#include "cpu/store.h"

#ifdef DDP__X86

enum { STRIP = 2048 }; /* values; 512 and 8192: up to 15 % slower */

struct strip {
    const struct ddp__bn_params *p;
    struct ddp__bn_part k; /* of these rows */
    double *sum;           /* of both, k.width apart */
    size_t ahead;          /* values to the next strip */
    bool first, last;      /* of the block */
    bool stream;
};

/* 16 columns from i on. */
struct column {
    const struct ddp__bn_part *k;
    size_t i, ahead;
    __mmask16 m; /* of those there are */
    v16 mean, a, shift;
    bool stream;
};

/* What a row adds to the sums. */
struct term {
    v16 d, dz; /* x - mean, dz */
};

DDP__UNIT_INLINE v16 load(const struct column *c, const void *p, size_t at,
                          __mmask16 m, bool b)
{
    _mm_prefetch((const char *)ddp__at(p, at + c->ahead, b), _MM_HINT_T0);
    return ddp__bn_load_v16(p, at, m, b);
}

DDP__UNIT_INLINE void keep(const struct column *c, size_t at, v16 dz)
{
    float *dr = (float *)c->k->dr + at;

    if (c->stream)
        _mm512_stream_ps(dr, dz);
    else
        _mm512_mask_storeu_ps(dr, c->m, dz);
}

DDP__UNIT_INLINE struct term term_at(const struct column *c, size_t r,
                                     enum ddp__bn_source from, bool b)
{
    const struct ddp__bn_part *k = c->k;
    size_t at = r * k->width + c->i;
    struct term t = {.d = _mm512_sub_ps(load(c, k->x, at, c->m, b), c->mean)};
    v16 y = _mm512_setzero_ps();
    __mmask16 pass = c->m;

    if (from == DDP__FROM_X) {
        t.dz = t.d;
        return t;
    }
    if (from == DDP__FROM_MASK)
        memcpy(&pass, k->mask + at / 8, sizeof(pass));
    if (from >= DDP__FROM_RELU)
        y = load(c, k->y, at, c->m, b);
    t.dz = load(c, k->dy, at, pass, b);
    t.dz = ddp__bn_dz_v16(_mm512_fmadd_ps(t.d, c->a, c->shift), y, t.dz, from);
    if (from == DDP__FROM_MASK)
        keep(c, at, t.dz);
    return t;
}

DDP__UNIT_INLINE v16 products(struct term a, struct term b)
{
    return _mm512_fmadd_ps(a.dz, a.d, _mm512_mul_ps(b.dz, b.d));
}

DDP__UNIT_INLINE void sum_rows(const struct column *c, v16 s[2],
                               enum ddp__bn_source from, bool b)
{
    size_t rows = c->k->rows, r = 0;

    for (; r + 4 <= rows; r += 4) {
        struct term t0 = term_at(c, r, from, b);
        struct term t1 = term_at(c, r + 1, from, b);
        struct term t2 = term_at(c, r + 2, from, b);
        struct term t3 = term_at(c, r + 3, from, b);

        s[0] = _mm512_add_ps(s[0], _mm512_add_ps(_mm512_add_ps(t0.dz, t1.dz),
                                                 _mm512_add_ps(t2.dz, t3.dz)));
        s[1] = _mm512_add_ps(s[1],
                             _mm512_add_ps(products(t0, t1), products(t2, t3)));
    }
    for (; r < rows; r++) {
        struct term t = term_at(c, r, from, b);

        s[0] = _mm512_add_ps(s[0], t.dz);
        s[1] = _mm512_fmadd_ps(t.dz, t.d, s[1]);
    }
}

DDP__UNIT_INLINE void add_doubles(double *sum, v16 v, __mmask16 m)
{
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    __mmask8 l = (__mmask8)m, h = (__mmask8)(m >> 8);

    low = _mm512_add_pd(_mm512_maskz_loadu_pd(l, sum), low);
    high = _mm512_add_pd(_mm512_maskz_loadu_pd(h, sum + 8), high);
    _mm512_mask_storeu_pd(sum, l, low);
    _mm512_mask_storeu_pd(sum + 8, h, high);
}

/* Sums of a strip are kept in f32 until the block ends. */
DDP__UNIT_INLINE void put_sum(const struct strip *s, float *kept, double *sum,
                              v16 v, __mmask16 m)
{
    if (s->last)
        add_doubles(sum, v, m);
    else
        _mm512_mask_storeu_ps(kept, m, v);
}

DDP__UNIT_INLINE void sum_columns(const struct strip *s, size_t i, __mmask16 m,
                                  enum ddp__bn_source from, bool b)
{
    struct column c = {
        .k = &s->k, .i = i, .ahead = s->ahead, .m = m, .stream = s->stream};
    v16 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};

    c.mean = _mm512_maskz_loadu_ps(m, s->p->mean + i);
    if (from >= DDP__FROM_X_RELU && from <= DDP__FROM_X_HARDSWISH) {
        c.a = _mm512_maskz_loadu_ps(m, s->p->a + i);
        c.shift = _mm512_maskz_loadu_ps(m, s->p->shift + i);
    } else {
        c.a = c.shift = _mm512_setzero_ps();
    }
    if (!s->first) {
        sum[0] = _mm512_maskz_loadu_ps(m, s->k.s1 + i);
        sum[1] = _mm512_maskz_loadu_ps(m, s->k.s2 + i);
    }
    sum_rows(&c, sum, from, b);
    put_sum(s, s->k.s1 + i, s->sum + i, sum[0], m);
    put_sum(s, s->k.s2 + i, s->sum + s->k.width + i, sum[1], m);
}

DDP__UNIT_INLINE void sum_strip(const struct strip *s, enum ddp__bn_source from,
                                bool b)
{
    size_t i = 0, len = s->k.len;

    for (; i + 16 <= len; i += 16)
        sum_columns(s, i, 0xffff, from, b);
    if (i < len)
        sum_columns(s, i, (__mmask16)((1U << (len - i)) - 1), from, b);
}

/* ---- one instance for each source and type ------------------------------ */

#define X(from)                                                                \
    DDP__UNIT_TARGET static void strip_##from(const struct strip *s, bool b)   \
    {                                                                          \
        if (b)                                                                 \
            sum_strip(s, from, true);                                          \
        else                                                                   \
            sum_strip(s, from, false);                                         \
    }
DDP__BN_SOURCES(X)
X(DDP__FROM_X)
X(DDP__FROM_MASK)
#undef X

#define X(from) [from] = strip_##from,
static void (*const strip_of[])(const struct strip *s, bool b) = {
    DDP__BN_SOURCES(X) X(DDP__FROM_X) X(DDP__FROM_MASK)};
#undef X

/* Rows of a strip: those of a block have as many bits as before. */
static size_t strip_rows(size_t width)
{
    size_t rows = STRIP / width & ~(size_t)3;

    return rows ? rows : 4;
}

static struct ddp__bn_part rows_of(const struct ddp__bn_part *k, size_t r,
                                   size_t rows, bool b)
{
    struct ddp__bn_part part = *k;
    size_t i = r * k->width;

    part.x = ddp__at(k->x, i, b);
    part.y = k->y ? ddp__at(k->y, i, b) : NULL;
    part.dy = k->dy ? ddp__at(k->dy, i, b) : NULL;
    part.mask = k->mask ? k->mask + i / 8 : NULL;
    part.dr = k->dr ? ddp__to(k->dr, i, b) : NULL;
    part.rows = k->rows - r < rows ? k->rows - r : rows;
    return part;
}

void ddp__bn_sum_v16(const struct ddp__bn_params *p,
                     const struct ddp__bn_part *k, double *sum,
                     enum ddp__bn_source from, bool b, bool stream)
{
    size_t rows = strip_rows(k->width);
    struct strip s = {.p = p,
                      .sum = sum,
                      .ahead = rows * k->width,
                      .stream = stream && (uintptr_t)k->dr % 64 == 0 &&
                                k->width % 16 == 0};

    for (size_t r = 0; r < k->rows; r += rows) {
        s.k = rows_of(k, r, rows, b);
        s.first = r == 0;
        s.last = r + rows >= k->rows;
        strip_of[from](&s, b);
    }
}

#endif
