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

/* How the values of panels are multiplied: floats, pairs of bf16, or pairs of
 * 16-bit integers in units of their channels (i16_round.h). */
enum ddp__wgrad_kind { DDP__WGRAD_F32, DDP__WGRAD_BF16, DDP__WGRAD_I16 };

/* Panels of bf16 become integers, with a unit for each channel and 0 for those
 * that fill the last panel. */
void ddp__wgrad_round(size_t steps, size_t c, size_t pitch, uint32_t *panel,
                      float *unit);

/* A tile of dw: `rows` rows, a panel at most, by `cols` columns, two panels at
 * most. */
struct ddp__wgrad_tile {
    size_t steps, rows, cols;
    const uint32_t *dy;     /* its panel */
    const uint32_t *x, *x2; /* both, or NULL */
    enum ddp__wgrad_kind kind;
    const float *row, *col; /* units of I16: of dy's channels, and of x's */
    bool add;
    float *dw;
    size_t ld;        /* from row to row */
    const char *next; /* memory to fetch meanwhile: `ahead` bytes in each step
                         of 8 rows */
    size_t ahead;
};

/* dw (+)= dy' x */
void ddp__wgrad_tile(const struct ddp__wgrad_tile *t);

#endif
