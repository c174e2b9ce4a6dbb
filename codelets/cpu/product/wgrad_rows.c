/* wgrad_rows.c - what the taps of a layer see of its input
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/cpu.h"
#include "wgrad_rows.h"

/* An output's tap: in column x of a row of the input, or outside of it (NULL).
 */
struct place {
    size_t output;
    int column, x;
    const char *line;
};

/* Of the row of outputs that an output is in, and column 0. */
static void begin_row(const struct ddp__wgrad_view *v, int i, int j,
                      struct place *at)
{
    const struct ddp__conv_shape *s = v->s;
    const struct ddp__conv *k = &s->conv;
    size_t row = at->output / (size_t)s->ow, image = row / (size_t)s->oh;
    int y = (int)(row % (size_t)s->oh) * k->sh - k->top + i * k->dh;
    size_t line = image * (size_t)s->h + (size_t)y;

    at->x = j * k->dw - k->left;
    at->line = image < (size_t)s->n && y >= 0 && y < s->h
                   ? ddp__at(v->x, line * (size_t)s->w * (size_t)s->c, v->b)
                   : NULL;
}

static struct place first_place(const struct ddp__wgrad_view *v, size_t output,
                                int i, int j)
{
    struct place at = {.output = output,
                       .column = (int)(output % (size_t)v->s->ow)};

    begin_row(v, i, j, &at);
    at.x += at.column * v->s->conv.sw;
    return at;
}

static void next_place(const struct ddp__wgrad_view *v, int i, int j,
                       struct place *at)
{
    at->output++;
    at->x += v->s->conv.sw;
    if (++at->column < v->s->ow)
        return;
    at->column = 0;
    begin_row(v, i, j, at);
}

void ddp__wgrad_rows(const struct ddp__wgrad_view *v, size_t first,
                     size_t count, int tap, const void **row)
{
    const struct ddp__conv_shape *s = v->s;
    int i = tap / s->conv.kw, j = tap % s->conv.kw;
    struct place at = first_place(v, first, i, j);

    for (size_t p = 0; p < count; p++, next_place(v, i, j, &at))
        row[p] = at.line && at.x >= 0 && at.x < s->w
                     ? ddp__at(at.line, (size_t)at.x * (size_t)s->c, v->b)
                     : v->zeros;
}

/* Taps of a row that are not all inside. */
static const void *cut_row(const struct ddp__wgrad_view *v,
                           const struct place *at, uint16_t *to)
{
    const struct ddp__conv_shape *s = v->s;
    int kw = s->conv.kw, first = at->x < 0 ? -at->x : 0;
    int end = at->x + kw > s->w ? s->w - at->x : kw;
    size_t c = (size_t)s->c;

    if (first >= end)
        return v->zeros;
    memset(to, 0, (size_t)kw * c * sizeof(*to));
    memcpy(to + (size_t)first * c,
           ddp__at(at->line, (size_t)(at->x + first) * c, true),
           (size_t)(end - first) * c * sizeof(*to));
    return to;
}

void ddp__wgrad_rows_of_taps(const struct ddp__wgrad_view *v, size_t first,
                             size_t count, int tap, uint16_t *to,
                             const void **row)
{
    const struct ddp__conv_shape *s = v->s;
    size_t c = (size_t)s->c;
    struct place at = first_place(v, first, tap, 0);

    for (size_t p = 0; p < count; p++, next_place(v, tap, 0, &at))
        if (!at.line)
            row[p] = v->zeros;
        else if (at.x >= 0 && at.x + s->conv.kw <= s->w)
            row[p] = ddp__at(at.line, (size_t)at.x * c, true);
        else
            row[p] = cut_row(v, &at, to + p * (size_t)s->conv.kw * c);
}
