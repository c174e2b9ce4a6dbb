/* wino_weight.h - filters and their gradients in Winograd's domain
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_WEIGHT_H
#define DDP_CPU_WINO_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>

/* Weights w (o, 3, 3, c) as u[pos][o / 32][c][32]; of the data gradient:
 * turned round, as u[pos][c / 32][o][32]; the last panel has 16 columns where
 * 16 are left.  This does DDP__WINO_PANEL filters from the first on, or what is
 * left. */
void ddp__wino_weights(const float *w, size_t o, size_t c, size_t first,
                       bool turn, float *u);

/* rows x cols of dw (o, 3, 3, c), of which dw is the first, from
 * u[pos][rows][cols]: written or added. */
void ddp__wino_gradient(const float *u, size_t rows, size_t cols, size_t c,
                        bool accumulate, float *dw);

#endif
