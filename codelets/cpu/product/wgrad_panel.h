/* wgrad_panel.h - pixels in panels of 16 channels, and products of panels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step is a pixel, or with bf16 two, whose values of a channel lie side by
 * side; a panel has a vector of 16 channels for each step.
 */
#ifndef DDP_CPU_WGRAD_PANEL_H
#define DDP_CPU_WGRAD_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DDP__PANEL = 16 };

/* Panels of c channels, `pitch` vectors apart, of the pixels that row[] points
 * to: one a step, or two (b). */
void ddp__wgrad_fill(const void *const *row, size_t steps, size_t c, bool b,
                     size_t pitch, uint32_t *panel);

/* A tile of dw: `rows` rows, a panel at most, by `cols` columns, two panels at
 * most. */
struct ddp__wgrad_tile {
    size_t steps, rows, cols;
    const uint32_t *dy;     /* its panel */
    const uint32_t *x, *x2; /* both, or NULL */
    bool b, add;
    float *dw;
    size_t ld;        /* from row to row */
    const char *next; /* memory to fetch meanwhile: `ahead` bytes in each step
                         of 8 rows */
    size_t ahead;
};

/* dw (+)= dy' x */
void ddp__wgrad_tile(const struct ddp__wgrad_tile *t);

#endif
