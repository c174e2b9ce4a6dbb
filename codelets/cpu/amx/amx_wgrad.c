/* amx_wgrad.c - weight gradients of 1x1 bf16 layers of any channels on AMX
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pixels of x and dy are put into panels (amx_wgrad_panel.h) of a block, whose
 * products are added to the sums; the side with fewer channels is the left
 * operand.
 *
 * One of two busy cores of an Intel Xeon with AMX under load, 16 images,
 * milliseconds of processor time (tests/kernelbench amx_wgrad:), by oneDNN 2.6,
 * by amx.c or, of up to 24 channels, by products of f32, and in this way:
 *
 *     112x112, 16 to 96    7.1 4.6 3.8      112x112, 32 to 16    2.4 1.6 1.5
 *     56x56, 24 to 144     2.2 2.3 1.5      56x56, 144 to 24     2.9 2.4 1.5
 *     28x28, 40 to 240     1.04  - 0.66     28x28, 240 to 40     1.39  - 0.60
 *     14x14, 112 to 672    1.9   - 0.72     14x14, 672 to 112    2.3   - 0.71
 *     56x56, 64 to 256    10.6 5.5 3.8      56x56, 64 to 64      2.4 2.0 1.5
 *     28x28, 512 to 128    8.2 3.2 3.0      28x28, 128 to 512    6.0 3.1 3.1
 *
 * The first five take 0.8 to 0.97 of what a copy of as many bytes takes.
 *
 * An output is one sum in f32 over all pixels: against f64, errors are up to
 * 1e-6 of the norm, at most 2^-23 sqrt(pixels / 3) (tests/test_wgrad.c).
 */
#include "config.h"

#include "amx_tile.h"
#include "amx_wgrad_panel.h"
#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/thread.h"

#ifdef DDP__AMX

enum {
    STEP = DDP__AMX_STEP,
    PANEL = DDP__AMX_CHANNELS,
    GROUP = DDP__AMX_GROUP,
    TILE = DDP__AMX_TILE,
    EACH = 8, /* channels are multiples of it */
    LEAST_PIXELS = 7 * 7,
    MOST_SUMS = 1 << 17,     /* with more, amx.c reads them less often */
    BLOCK_BYTES = 256 << 10, /* of both operands: a part of the second level */
    LEAST_STEPS = 4,
    MOST_STEPS = 32
};

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && s->type == DDP_BF16 && k->groups == 1 && k->kh == 1 &&
           k->kw == 1 && k->sh == 1 && k->sw == 1 && s->h == s->oh &&
           s->w == s->ow && s->c % EACH == 0 && s->o % EACH == 0 &&
           (s->c % GROUP || s->o % GROUP || s->c * s->o <= MOST_SUMS) &&
           s->oh * s->ow >= LEAST_PIXELS && ddp__amx_here();
}

/* The left and the right operand of products. */
struct run {
    struct ddp__amx_side few, many;
    float *sum; /* [few.panels PANEL][many.panels PANEL] */
};

/* ---- products ----------------------------------------------------------- */

/* 32 of the few channels times 32 of the many, over a block. */
DDP__AMX_TARGET static void multiply_panels(const struct run *r, size_t i,
                                            size_t j, size_t steps, bool add)
{
    size_t pitch = r->many.panels * PANEL;
    float *sum = r->sum + i * PANEL * pitch + j * PANEL;
    const uint16_t *a = ddp__amx_side_panel(&r->few, i);
    const uint16_t *b = ddp__amx_side_panel(&r->many, j);
    size_t next = r->few.block * TILE; /* panel */

    ddp__amx_begin(sum, pitch, add);
    for (size_t k = 0; k < steps; k++, a += TILE, b += TILE)
        ddp__amx_multiply(a, a + next, b, b + next);
    ddp__amx_end(sum, pitch);
}

static void add_block(const struct run *r, size_t first, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        size_t at = first + i * STEP;

        ddp__amx_side_pack(&r->few, at, i, true);
        ddp__amx_side_pack(&r->many, at, i, false);
    }
    for (size_t j = 0; j < r->many.panels; j += 2)
        for (size_t i = 0; i < r->few.panels; i += 2)
            multiply_panels(r, i, j, steps, first > 0);
}

DDP__AMX_TARGET static void add_all(const struct run *r)
{
    struct ddp__amx_tiles t = ddp__amx_tiles();
    size_t all = ddp__divide_up(r->few.pixels, STEP), block = r->few.block,
           steps;

    ddp__amx_configure(&t);
    for (size_t i = 0; i < all; i += steps) {
        steps = all - i < block ? all - i : block;
        add_block(r, i * STEP, steps);
    }
    _tile_release();
}

/* ---- the gradient ------------------------------------------------------- */

static void put_gradient(const struct run *r, bool few_x, bool add, float *dw)
{
    const struct ddp__amx_side *x = few_x ? &r->few : &r->many;
    const struct ddp__amx_side *dy = few_x ? &r->many : &r->few;
    size_t pitch = r->many.panels * PANEL;
    size_t row = few_x ? 1 : pitch, column = few_x ? pitch : 1;

    for (size_t o = 0; o < dy->c; o++) {
        const float *from = r->sum + ddp__amx_side_place(o, dy->c) * row;

        for (size_t i = 0; i < x->c; i += 4, dw += 4) {
            const float *four = from + ddp__amx_side_place(i, x->c) * column;

            for (size_t k = 0; k < 4; k++)
                dw[k] = (add ? dw[k] : 0) + four[k * column];
        }
    }
}

/* ---- layers ------------------------------------------------------------- */

/* Steps of a block with so many panels. */
static size_t block_of(size_t panels)
{
    size_t steps = BLOCK_BYTES / (panels * TILE * sizeof(uint16_t));

    if (steps < LEAST_STEPS)
        return LEAST_STEPS;
    return steps < MOST_STEPS ? steps : MOST_STEPS;
}

/* Memory for the panels, the last pixels and the sums.  What a panel without
 * channels holds is in sums that nobody reads. */
static int find_room(struct run *r)
{
    struct ddp__amx_side *few = &r->few, *many = &r->many;
    size_t panels = few->panels + many->panels, block = block_of(panels);
    size_t tail = STEP * (few->c + many->c);
    size_t sums = few->panels * many->panels * PANEL * PANEL;
    uint16_t *room =
        ddp__scratch((panels * block * TILE + tail) * sizeof(*room) +
                     sums * sizeof(*r->sum));

    if (!room)
        return DDP_ENOMEM;
    few->block = many->block = block;
    few->to = room;
    many->to = room + few->panels * block * TILE;
    few->tail = room + panels * block * TILE;
    many->tail = few->tail + STEP * few->c;
    r->sum = (float *)(void *)(many->tail + STEP * many->c);
    return 0;
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    size_t pixels = (size_t)s->n * (size_t)s->oh * (size_t)s->ow;
    struct ddp__amx_side of_x = ddp__amx_side(x, pixels, s->c);
    struct ddp__amx_side of_dy = ddp__amx_side(dy, pixels, s->o);
    bool few_x = s->c < s->o;
    struct run r = {.few = few_x ? of_x : of_dy, .many = few_x ? of_dy : of_x};

    if (find_room(&r) < 0)
        return DDP_ENOMEM;
    add_all(&r);
    put_gradient(&r, few_x, accumulate, dw);
    return 0;
}

const struct ddp__gradient ddp__amx_wgrad = {
    .name = "products of pixels on AMX", .fits = fits, .run = run};

#endif
