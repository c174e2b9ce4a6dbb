/* i16_weight.c - filters as panels of 16-bit integers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "cpu/thread.h"
#include "gemm.h"
#include "i16_round.h"
#include "i16_weight.h"
#include "pixels.h"

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    SHARE = 1 << 16 /* weights of a part: some 20 us */
};

static size_t values_of(const struct ddp__conv_shape *s)
{
    return (size_t)(s->conv.kh * s->conv.kw) * (size_t)s->c;
}

size_t ddp__i16_pairs(const struct ddp__conv_shape *s)
{
    return (values_of(s) + 1) / 2;
}

size_t ddp__i16_columns(const struct ddp__conv_shape *s)
{
    return ddp__pixels_columns(s);
}

size_t ddp__i16_weight_size(const struct ddp__conv_shape *s)
{
    return (ddp__i16_pairs(s) + 1) * ddp__i16_columns(s) * sizeof(uint32_t);
}

static size_t panels_of(const struct ddp__conv_shape *s)
{
    return (ddp__i16_columns(s) + PANEL - 1) / PANEL;
}

int ddp__i16_weight_parts(const struct ddp__conv_shape *s)
{
    size_t parts = ddp__i16_columns(s) * values_of(s) / SHARE + 1;
    size_t panels = panels_of(s);

    return (int)(parts < panels ? parts : panels);
}

#ifdef DDP__X86

/* Filters from `first` on, `wide` of them with those that are not there, as
 * to[values][wide]: of w turned, rows of it. */
static void turn_panel(const struct ddp__conv_shape *s,
                       const struct ddp__i16_filters *f, size_t first,
                       size_t wide, float *to)
{
    size_t o = (size_t)s->o, there = o - first < wide ? o - first : wide;

    for (int i = 0; i < s->conv.kh * s->conv.kw; i++)
        for (int c = 0; c < s->c; c++, to += wide) {
            size_t row = (size_t)c * f->taps + f->tap[i];

            memcpy(to, f->w + row * o + first, there * sizeof(*to));
            memset(to + there, 0, (wide - there) * sizeof(*to));
        }
}

static void fill_panel(const struct ddp__conv_shape *s,
                       const struct ddp__i16_filters *f, size_t first,
                       size_t wide, float *to)
{
    if (f->turn)
        turn_panel(s, f, first, wide, to);
    else
        ddp__pixels_panel(&(struct ddp__pixels_matrix){f->w, f->by,
                                                       values_of(s),
                                                       (size_t)s->o, false},
                          first, wide, to);
}

int ddp__i16_weight_pack(const struct ddp__conv_shape *s,
                         const struct ddp__i16_filters *f, int part,
                         uint32_t *to)
{
    size_t values = values_of(s), pairs = ddp__i16_pairs(s);
    size_t panels = panels_of(s), parts = (size_t)ddp__i16_weight_parts(s);
    size_t all = ddp__i16_columns(s), at = (size_t)part;
    float *unit = (float *)(void *)(to + pairs * all);
    float *panel = ddp__scratch(values * PANEL * sizeof(*panel));

    if (!panel)
        return DDP_ENOMEM;
    for (size_t p = panels * at / parts; p < panels * (at + 1) / parts; p++) {
        size_t first = p * PANEL, wide = all - first < PANEL ? VECTOR : PANEL;

        fill_panel(s, f, first, wide, panel);
        ddp__i16_round_columns(values, wide, panel, wide, to + first * pairs,
                               wide, unit + first);
    }
    return 0;
}

#endif
