/* wino_f37.h - Toom and Cook's F(3, 7): one direction of a tile and a filter
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Polynomials are evaluated at p and -p for four points p, and at infinity.
 * R(x) is the product of x - q^2 over the other three points q: the rows of B'
 * for p and -p are those of the polynomials R(x^2) (p + x) and R(x^2) (p - x).
 *
 * After vec16.h or vec8.h.
 */
#ifndef DDP_CPU_WINO_F37_H
#define DDP_CPU_WINO_F37_H

/* p, and the squares of the other three points. */
struct f37 {
    double p, a, b, c;
};

#define F37(p, a, b, c)                                                        \
    {                                                                          \
        p, (a) * (a), (b) * (b), (c) * (c)                                     \
    }

/* The least errors, by their variance for independent values, of all multiples
 * of 1/8 up to 3.  Relative to f64, 64 channels, results and gradients of
 * weights, of what seven taps can be computed with:
 *
 *                                   products for 17 pixels
 *     sums in f32                     119                    3.8e-7
 *     F(2, 7)  0 1/2 1 2               72                    7.9e-7  6.3e-7
 *     F(3, 7)  these                   54                    1.1e-6  9.2e-7
 *     F(4, 7)  0 3/8 7/8 5/4 19/8      50                    1.7e-6  1.4e-6
 *     F(6, 7)  0 3/8 5/8 1 3/2 23/8    36                    3.9e-6  3.2e-6
 *
 * each with infinity. */
static const struct f37 f37[4] = {
    F37(0.25, 0.625, 1.125, 2.125), F37(0.625, 0.25, 1.125, 2.125),
    F37(1.125, 0.25, 0.625, 2.125), F37(2.125, 0.25, 0.625, 1.125)};

/* All that follows has constants only. */
VEC_INLINE vec times(double f, vec v)
{
    return MUL(SET((float)f), v);
}

VEC_INLINE vec add_times(double f, vec v, vec to)
{
    return FMA(SET((float)f), v, to);
}

/* d[0], d[2], d[4] and d[6] times the coefficients of R. */
VEC_INLINE vec times_rest(const struct f37 *k, const vec *d)
{
    vec r = add_times(-(k->a + k->b + k->c), d[4], d[6]);

    r = add_times(k->a * k->b + k->a * k->c + k->b * k->c, d[2], r);
    return add_times(-k->a * k->b * k->c, d[0], r);
}

/* 2 p R(p^2), by which G is divided. */
VEC_INLINE double divisor(const struct f37 *k)
{
    double q = k->p * k->p;

    return 2 * k->p * (q - k->a) * (q - k->b) * (q - k->c);
}

/* t = B' d */
VEC_INLINE void input9(const vec d[9], vec t[9])
{
    const struct f37 *k = &f37[0];
    double q = k->p * k->p;

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        vec even = times_rest(&f37[i], d), odd = times_rest(&f37[i], d + 1);

        t[2 * i] = FMA(SET((float)f37[i].p), even, odd);
        t[2 * i + 1] = FMS(SET((float)f37[i].p), even, odd);
    }
    /* of all four points: R(x^2) (x^2 - q) */
    t[8] = add_times(-q, times_rest(k, d), times_rest(k, d + 2));
}

/* y = A' m */
VEC_INLINE void output9(const vec m[9], vec y[3])
{
    y[0] = y[1] = ZERO;
    y[2] = m[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        double p = f37[i].p;
        vec sum = ADD(m[2 * i], m[2 * i + 1]);
        vec difference = SUB(m[2 * i], m[2 * i + 1]);

        y[0] = ADD(y[0], sum);
        y[1] = add_times(p, difference, y[1]);
        y[2] = add_times(p * p, sum, y[2]);
    }
}

/* z = A e */
VEC_INLINE void spread3(const vec e[3], vec z[9])
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        double p = f37[i].p;
        vec even = add_times(p * p, e[2], e[0]);

        z[2 * i] = add_times(p, e[1], even);
        z[2 * i + 1] = add_times(-p, e[1], even);
    }
    z[8] = e[2];
}

/* u = G w */
VEC_INLINE void weight7(const vec w[7], vec u[9])
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        double p = f37[i].p, q = p * p, f = 1 / divisor(&f37[i]);
        vec even = add_times(q * f, w[2], times(f, w[0]));
        vec odd = add_times(p * q * f, w[3], times(p * f, w[1]));

        even = add_times(q * q * f, w[4], even);
        even = add_times(q * q * q * f, w[6], even);
        odd = add_times(p * q * q * f, w[5], odd);
        u[2 * i] = ADD(even, odd);
        u[2 * i + 1] = SUB(even, odd);
    }
    u[8] = w[6];
}

/* w = G' u */
VEC_INLINE void gradient9(const vec u[9], vec w[7])
{
#pragma GCC unroll 6
    for (int k = 0; k < 6; k++)
        w[k] = ZERO;
    w[6] = u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        double p = f37[i].p, f = 1 / divisor(&f37[i]);
        vec sum = ADD(u[2 * i], u[2 * i + 1]);
        vec difference = SUB(u[2 * i], u[2 * i + 1]);

#pragma GCC unroll 7
        for (int k = 0; k < 7; k++, f *= p)
            w[k] = add_times(f, k % 2 ? difference : sum, w[k]);
    }
}

#endif
