/* taps_wgrad.c - weight gradients of images of few pixels, without padding
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The sum of a weight over all images and pairs of pixels is made in registers.
 * taps.c has figures.
 */
#include "config.h"

#include <math.h>

#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "taps_pairs.h"
#include "taps_tile.h"
#include "taps_wgrad.h"

enum { ROWS = DDP__TAPS_ROWS, COLS = DDP__TAPS_COLS };

/* Panels: of `high` channels of dy, ROWS at most, and of COLS channels of x; in
 * each the images of each pixel. */
struct run {
    size_t n, x, y, c, o, taps; /* x, y: pixels */
    size_t high;
    struct ddp__taps_pairs pairs;
    float *px, *pdy;
    bool add, past;
    float *dw;
};

/* `wide` channels each, in lines of `width`. */
static void copy_images(const float *from, size_t n, size_t pixels, size_t c,
                        size_t wide, size_t width, float *to)
{
    for (size_t at = 0; at < c; at += wide)
        for (size_t p = 0; p < pixels; p++, to += n * width)
            ddp__taps_copy(from + p * c + at, pixels * c, n,
                           c - at < wide ? c - at : wide, width, to);
}

static void multiply(const struct run *r, size_t tap, size_t o, size_t c)
{
    const struct ddp__taps_target *q = &r->pairs.target[tap];
    struct ddp__taps_tile t = {.rows = r->o - o < r->high ? r->o - o : r->high,
                               .k = r->n,
                               .count = q->count,
                               .low = -INFINITY,
                               .high = INFINITY,
                               .add = r->add,
                               .past = r->past,
                               .p = r->dw + (o * r->taps + tap) * r->c + c,
                               .ldp = r->taps * r->c};

    for (size_t i = 0; i < q->count; i++)
        t.piece[i] = (struct ddp__taps_piece){
            r->pdy + (o / r->high * r->y + q->from[i]) * r->n * ROWS,
            r->px + (c / COLS * r->x + q->by[i]) * r->n * COLS,
        };
    ddp__taps_tile(&t);
}

static int run_new(struct run *r)
{
    size_t blocks = ddp__divide_up(r->o, ROWS);
    size_t dy = ddp__align(blocks * r->y * r->n * ROWS * sizeof(float));
    char *room = ddp__scratch(dy + r->n * r->x * r->c * sizeof(float));

    if (!room)
        return DDP_ENOMEM;
    r->high = ddp__divide_up(r->o, blocks);
    r->pdy = (float *)(void *)room;
    r->px = (float *)(void *)(room + dy);
    return 0;
}

/* Panels of dy pass by one of x. */
static int run_all(struct run *r, const float *x, const float *dy)
{
    if (run_new(r) < 0)
        return DDP_ENOMEM;
    copy_images(dy, r->n, r->y, r->o, r->high, ROWS, r->pdy);
    copy_images(x, r->n, r->x, r->c, COLS, COLS, r->px);
    for (size_t c = 0; c < r->c; c += COLS)
        for (size_t o = 0; o < r->o; o += r->high)
            for (size_t tap = 0; tap < r->taps; tap++)
                multiply(r, tap, o, c);
    if (r->past)
        ddp__store_end();
    return 0;
}

int ddp__taps_wgrad(const struct ddp__conv_shape *s, const void *x,
                    const void *dy, bool accumulate, float *dw)
{
    struct run r = {.n = (size_t)s->n,
                    .x = (size_t)(s->h * s->w),
                    .y = (size_t)(s->oh * s->ow),
                    .c = (size_t)s->c,
                    .o = (size_t)s->o,
                    .taps = (size_t)(s->conv.kh * s->conv.kw),
                    .add = accumulate,
                    .dw = dw};

    r.past = (uintptr_t)dw % 64 == 0 && ddp__streams(r.o * r.taps * r.c, false);
    ddp__taps_list(s, DDP__BWD_W, &r.pairs);
    return run_all(&r, x, dy);
}
