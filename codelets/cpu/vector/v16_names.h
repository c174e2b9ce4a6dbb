/* v16_names.h - short names for vectors of 16 floats
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_V16_NAMES_H
#define DDP_CPU_V16_NAMES_H

#include "v16.h"

typedef __m512 v16;

#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SET(c) _mm512_set1_ps(c)
#define ADD(a, b) _mm512_add_ps(a, b)
#define SUB(a, b) _mm512_sub_ps(a, b)
#define MUL(a, b) _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)   /* a b + c */
#define FMS(a, b, c) _mm512_fmsub_ps(a, b, c)   /* a b - c */
#define FNMA(a, b, c) _mm512_fnmadd_ps(a, b, c) /* c - a b */

#endif
