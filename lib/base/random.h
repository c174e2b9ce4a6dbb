/* random.h - keyed draws from distributions that are not uniform
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each is a function of its key alone, rounded to f32: libraries differ in the
 * last bits of log() and exp().
 */
#ifndef DDP_RANDOM_H
#define DDP_RANDOM_H

#include <stdint.h>

/* Normal, of mean 0 and deviation 1. */
float ddp__draw_normal(uint64_t key);

/* Beta(a, a), a > 0: in 0..1, near the middle where a is large. */
float ddp__draw_beta(uint64_t key, double a);

/* Dirichlet of n equal parameters a > 0: shares whose sum is 1. */
void ddp__draw_shares(uint64_t key, double a, int n, float *share);

#endif
