/* wino_line_loops.h - filters of one row or column by Winograd, by vectors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * wino_line.c and wino_line_v8.c compile these loops for their vectors, with
 * the PRODUCTS of KINDs.
 */
#include "wino_f37.h"
#include "wino_f43.h"
#include "wino_taps.h"
#include "wino_value.h"

/* Of 7 taps F(3, 7), of 3 taps F(4, 3); taps is a constant in what follows. */
enum { MOST_IN = 9, MOST_OUT = 4, MOST_TAPS = 7 };

VEC_INLINE int pixels_out(int taps)
{
    return taps == 7 ? 3 : 4;
}

VEC_INLINE int pixels_in(int taps)
{
    return taps + pixels_out(taps) - 1;
}

/* ---- tiles -------------------------------------------------------------- */

VEC_INLINE void input_line(int taps, const void *const *p, size_t len,
                           bool padded, size_t step, float *v)
{
    int in = pixels_in(taps);

    for (size_t c = 0; c < len; c += LANES) {
        vec d[MOST_IN], r[MOST_IN];

#pragma GCC unroll 9
        for (int i = 0; i < in; i++)
            d[i] = load_pixel(p[i], c, padded, false);
        taps == 7 ? input9(d, r) : input6(d, r);
#pragma GCC unroll 9
        for (int i = 0; i < in; i++)
            STORE(v + (size_t)i * step + c, r[i]);
    }
}

VEC_INLINE void spread_line(int taps, const void *const *p, size_t len,
                            size_t step, float *z)
{
    int in = pixels_in(taps), out = pixels_out(taps);

    for (size_t c = 0; c < len; c += LANES) {
        vec e[MOST_OUT], r[MOST_IN];

#pragma GCC unroll 4
        for (int i = 0; i < out; i++)
            e[i] = load_pixel(p[i], c, true, false);
        taps == 7 ? spread3(e, r) : spread4(e, r);
#pragma GCC unroll 9
        for (int i = 0; i < in; i++)
            STORE(z + (size_t)i * step + c, r[i]);
    }
}

/* Its pixels are below each other (down) or side by side. */
VEC_INLINE void output_line(int taps, bool down, const float *p, size_t step,
                            size_t len, const struct ddp__wino_target *to)
{
    int in = pixels_in(taps), out = pixels_out(taps);

    for (size_t c = 0; c < len; c += LANES) {
        vec m[MOST_IN], r[MOST_OUT];
        vec shift = to->bias ? LOAD(to->bias + c) : ZERO;

#pragma GCC unroll 9
        for (int i = 0; i < in; i++)
            m[i] = LOAD(p + (size_t)i * step + c);
        taps == 7 ? output9(m, r) : output6(m, r);
#pragma GCC unroll 4
        for (int i = 0; i < out; i++)
            put_pixel(to, down ? i : 0, down ? 0 : i, c, ADD(r[i], shift),
                      false);
    }
}

/* ---- filters ------------------------------------------------------------ */

/* past: a constant */
VEC_INLINE void weigh_row(int taps, const vec *w, bool past, size_t step,
                          float *u)
{
    vec r[MOST_IN];

    taps == 7 ? weight7(w, r) : weight3(w, r);
#pragma GCC unroll 9
    for (int i = 0; i < pixels_in(taps); i++)
        put_weights(u + (size_t)i * step, r[i], past);
}

/* LANES columns.  Lines go past the caches if they are whole. */
VEC_INLINE void weigh_vector(int taps, const struct ddp__wino_filters *f,
                             size_t column, size_t width, size_t step, float *u)
{
    size_t size = step * (size_t)pixels_in(taps) * sizeof(*u);
    bool past = LANES == 16 && size > MOST_CACHED;
    vec tap[LANES * MOST_TAPS];

    for (size_t row = 0; row < f->rows; row += LANES) {
        load_taps(f, row, column, (size_t)taps, tap);
        for (int i = 0; i < LANES; i++, u += width)
            if (past)
                weigh_row(taps, tap + i * taps, true, step, u);
            else
                weigh_row(taps, tap + i * taps, false, step, u);
    }
}

VEC_INLINE void weigh_columns(int taps, const struct ddp__wino_filters *f,
                              size_t column, size_t width, size_t step,
                              float *u)
{
    for (size_t i = 0; i < 16; i += LANES)
        weigh_vector(taps, f, column + i, width, step, u + i);
}

VEC_INLINE void gradient_line(int taps, const float *u, size_t step, size_t len,
                              size_t c, bool accumulate, float *dw)
{
    for (size_t l = 0; l < len; l += LANES) {
        vec d[MOST_IN], r[MOST_TAPS];

#pragma GCC unroll 9
        for (int i = 0; i < pixels_in(taps); i++)
            d[i] = LOAD(u + (size_t)i * step + l);
        taps == 7 ? gradient9(d, r) : gradient6(d, r);
#pragma GCC unroll 7
        for (int i = 0; i < taps; i++) {
            float *to = dw + (size_t)i * c + l;

            STORE(to, accumulate ? ADD(LOAD(to), r[i]) : r[i]);
        }
    }
}

/* ---- kinds -------------------------------------------------------------- */

/* Instances for `taps`. */
#define LINE(taps)                                                             \
    VEC static void input_##taps(const void *const *p, size_t len,             \
                                 bool padded, size_t step, float *v)           \
    {                                                                          \
        input_line(taps, p, len, padded, step, v);                             \
    }                                                                          \
    VEC static void spread_##taps(const void *const *p, size_t len,            \
                                  size_t step, float *z)                       \
    {                                                                          \
        spread_line(taps, p, len, step, z);                                    \
    }                                                                          \
    VEC static void output_1x##taps(const float *p, size_t step, size_t len,   \
                                    const struct ddp__wino_target *to)         \
    {                                                                          \
        output_line(taps, false, p, step, len, to);                            \
    }                                                                          \
    VEC static void output_##taps##x1(const float *p, size_t step, size_t len, \
                                      const struct ddp__wino_target *to)       \
    {                                                                          \
        output_line(taps, true, p, step, len, to);                             \
    }                                                                          \
    VEC static void weigh_##taps(const struct ddp__wino_filters *f,            \
                                 size_t column, size_t width, size_t step,     \
                                 float *u)                                     \
    {                                                                          \
        weigh_columns(taps, f, column, width, step, u);                        \
    }                                                                          \
    VEC static void gradient_##taps(const float *u, size_t step, size_t len,   \
                                    size_t c, bool accumulate, float *dw)      \
    {                                                                          \
        gradient_line(taps, u, step, len, c, accumulate, dw);                  \
    }

LINE(7)
LINE(3)

/* kh x kw, with tiles of high x wide. */
#define KIND(taps, kh_, kw_, high_, wide_)                                     \
    {                                                                          \
        .kh = kh_, .kw = kw_, .high = high_, .wide = wide_,                    \
        .pos = (taps) + (high_) * (wide_)-1, .input = input_##taps,            \
        .spread = spread_##taps, .output = output_##kh_##x##kw_,               \
        .weigh = weigh_##taps, .gradient = gradient_##taps,                    \
        .products = &PRODUCTS                                                  \
    }

/* 7 and 3 taps, across and down. */
#define KINDS                                                                  \
    {                                                                          \
        KIND(7, 1, 7, 1, 3), KIND(7, 7, 1, 3, 1), KIND(3, 1, 3, 1, 4),         \
            KIND(3, 3, 1, 4, 1)                                                \
    }
