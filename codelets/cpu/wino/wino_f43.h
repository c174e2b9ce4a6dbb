/* wino_f43.h - Winograd's F(4, 3): one direction of a tile and of a filter
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * After vec16.h or vec8.h.
 */
#ifndef DDP_CPU_WINO_F43_H
#define DDP_CPU_WINO_F43_H

/* Pixels of a tile, and those that see it. */
enum { TILE = 4, IN = 6 };

/* Polynomials are evaluated at 0, P, -P, Q, -Q and infinity.  Errors relative
 * to f64 of f32 layers of 64 and 256 channels, results and gradients of
 * weights, 3x3, with 1 and 2: 1.4e-6, 3.0e-6, 9.5e-7, 9.6e-7; with
 * these: 6.8e-7, 1.5e-6, 4.6e-7, 4.5e-7. */
#define P 0.75f
#define Q 1.5f
#define P2 (P * P)
#define Q2 (Q * Q)

/* What divides the rows of G for 0, P and Q. */
#define OF_0 (P2 * Q2)
#define OF_P (2 * P2 * (P2 - Q2))
#define OF_Q (2 * Q2 * (Q2 - P2))

/* t = B' d */
VEC_INLINE void input6(const vec d[6], vec t[6])
{
    vec p = FNMA(SET(Q2), d[2], d[4]), q = FNMA(SET(Q2), d[1], d[3]);
    vec r = FNMA(SET(P2), d[2], d[4]), s = FNMA(SET(P2), d[1], d[3]);

    t[0] = FMA(SET(P2 * Q2), d[0], FNMA(SET(P2 + Q2), d[2], d[4]));
    t[1] = FMA(SET(P), q, p);
    t[2] = FNMA(SET(P), q, p);
    t[3] = FMA(SET(Q), s, r);
    t[4] = FNMA(SET(Q), s, r);
    t[5] = FMA(SET(P2 * Q2), d[1], FNMA(SET(P2 + Q2), d[3], d[5]));
}

/* y = A' m */
VEC_INLINE void output6(const vec m[6], vec y[4])
{
    vec p = ADD(m[1], m[2]), q = SUB(m[1], m[2]);
    vec r = ADD(m[3], m[4]), s = SUB(m[3], m[4]);

    y[0] = ADD(ADD(m[0], p), r);
    y[1] = FMA(SET(Q), s, MUL(SET(P), q));
    y[2] = FMA(SET(Q2), r, MUL(SET(P2), p));
    y[3] = FMA(SET(Q * Q2), s, FMA(SET(P * P2), q, m[5]));
}

/* z = A e */
VEC_INLINE void spread4(const vec e[4], vec z[6])
{
    vec p = FMA(SET(P2), e[2], e[0]), q = FMA(SET(P2), e[3], e[1]);
    vec r = FMA(SET(Q2), e[2], e[0]), s = FMA(SET(Q2), e[3], e[1]);

    z[0] = e[0];
    z[1] = FMA(SET(P), q, p);
    z[2] = FNMA(SET(P), q, p);
    z[3] = FMA(SET(Q), s, r);
    z[4] = FNMA(SET(Q), s, r);
    z[5] = e[3];
}

/* u = G w */
VEC_INLINE void weight3(const vec w[3], vec u[6])
{
    vec p = FMA(SET(1 / OF_P), w[0], MUL(SET(P2 / OF_P), w[2]));
    vec r = FMA(SET(1 / OF_Q), w[0], MUL(SET(Q2 / OF_Q), w[2]));

    u[0] = MUL(SET(1 / OF_0), w[0]);
    u[1] = FMA(SET(P / OF_P), w[1], p);
    u[2] = FNMA(SET(P / OF_P), w[1], p);
    u[3] = FMA(SET(Q / OF_Q), w[1], r);
    u[4] = FNMA(SET(Q / OF_Q), w[1], r);
    u[5] = w[2];
}

/* w = G' u */
VEC_INLINE void gradient6(const vec u[6], vec w[3])
{
    vec p = ADD(u[1], u[2]), q = SUB(u[1], u[2]);
    vec r = ADD(u[3], u[4]), s = SUB(u[3], u[4]);

    w[0] =
        FMA(SET(1 / OF_0), u[0], FMA(SET(1 / OF_P), p, MUL(SET(1 / OF_Q), r)));
    w[1] = FMA(SET(P / OF_P), q, MUL(SET(Q / OF_Q), s));
    w[2] = FMA(SET(P2 / OF_P), p, FMA(SET(Q2 / OF_Q), r, u[5]));
}

#endif
