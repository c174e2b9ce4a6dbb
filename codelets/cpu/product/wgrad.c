/* wgrad.c - weight gradients as products over pixels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pixels go through in blocks, so many that three panels fit into the
 * first-level cache.
 *
 * One Zen 5 core (AVX-512, bf16, no AMX), eight images, milliseconds of
 * processor time under load, the least of eight, by oneDNN 2.6 and in this way:
 *
 *     1x1, 56x56, 64 to 256               7.6  4.4, bf16 2.7 2.2
 *     1x1, 28x28, 512 to 128              4.5  3.9, bf16 2.4 1.9
 *     1x1, 14x14, 256 to 1024             4.4  3.5, bf16 2.1 1.7
 *     1x1, 7x7, 2048 to 512               4.2  3.5, bf16 2.5 1.7
 *     3x3 of stride 2, 128, to 28x28     19.2  9.1, bf16 5.8 4.6
 *     3x3 of stride 2, 512, to 7x7       14.0  8.0, bf16 9.7 3.9
 *     all weight gradients of ResNet-50   307  242, bf16 159 128
 *
 * The same as 16-bit integers on an Intel Xeon whose AMX is hidden, where
 * vdpbf16ps has half the speed of f32, milliseconds of 8 images by oneDNN, and
 * in this way (in f32): 1x1, 56x56, 64 to 256 11.4 4.2 (6.6); 14x14, 256 to
 * 1024 10.5 3.1 (5.7); 3x3 of stride 2, 56x56, 128 23.2 7.6 (13.7); 14x14, 512
 * 29.7 7.3 (13.5); 7x7 of stride 2, 224x224, 3 to 64 25.5 16.0 (17.7); 3x3,
 * 2x2, 256, 128 images 10.1 2.2.
 *
 * Against sums in f64, errors are 9e-8 to 2.4e-7 of the norm, with
 * bf16 2.6e-8 to 1.0e-7, with integers up to 2.5e-4 (tests/test_wgrad.c).  With
 * fewer than 64 channels oneDNN is faster, but not for 1x1 layers in bf16: one
 * of two busy cores of a Zen 4 takes for 16 images
 *
 *     112x112, 16 to 96   7.9 6.6          56x56, 24 to 144   3.5 2.9
 *     56x56, 144 to 24    3.9 2.7          28x28, 32 to 192   1.4 0.9
 *     28x28, 240 to 40    2.0 1.5          112x112, 32 to 16  2.3 2.8
 */
#include "config.h"

#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/isa.h"
#include "cpu/thread.h"
#include "wgrad_panel.h"
#include "wgrad_rows.h"

#ifdef DDP__X86

/* Steps of a block at most; channels that pay for panels, and of 1x1 layers in
 * bf16 numbers of them whose product does. */
enum {
    PANEL = DDP__PANEL,
    STEPS = 200,
    LEAST = 64,
    LEAST_BF16 = 16,
    LEAST_PRODUCT = 1024
};

static bool has_channels(const struct ddp__conv_shape *s)
{
    int few = s->c < s->o ? s->c : s->o;

    return few >= LEAST ||
           (s->type == DDP_BF16 && s->conv.kh * s->conv.kw == 1 &&
            few >= LEAST_BF16 && s->c * s->o >= LEAST_PRODUCT);
}

/* Whether rows of taps are panels, since single ones are too few channels. */
static bool joins_taps(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return k->groups == 1 && k->dw == 1 && s->c < LEAST_BF16 &&
           s->c * k->kw >= LEAST_BF16 && s->o >= LEAST_BF16;
}

/* Of any stride and size: way.c asks for Winograd's way first. */
static bool fits_integers(const struct ddp__conv_shape *s)
{
    return s->type == DDP_BF16 && s->conv.groups == 1 &&
           (has_channels(s) || joins_taps(s)) && ddp__i16_here();
}

/* Dense layers, too. */
static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return k->groups == 1 && has_channels(s) &&
           (k->kh * k->kw == 1 || k->sh > 1 || k->sw > 1) &&
           (s->type == DDP_F32 ? ddp__avx512_here()
                               : ddp__avx512_bf16_here() && !ddp__amx_here());
}

/* ---- pixels ------------------------------------------------------------- */

/* A layer, its operands and a block of its pixels in panels. */
struct run {
    struct ddp__wgrad_view view; /* of x */
    const void *dy;
    bool b;
    enum ddp__wgrad_kind kind;
    size_t c, o, pixels; /* of all images */
    int taps;
    size_t steps, pitch; /* of a block */
    uint32_t *px, *pdy;
    float *ux, *udy; /* units of integers */
    uint16_t *cut;   /* rows of taps that padding cuts; NULL: of single ones */
    const void *row[2 * STEPS];
    const char *next; /* what is fetched next, and bytes of it in a step */
    size_t ahead;
};

/* Pixels of a step. */
static size_t in_step(const struct run *r)
{
    return r->b ? 2 : 1;
}

static const void *row_of_dy(const struct run *r, size_t p)
{
    return p < r->pixels ? ddp__at(r->dy, p * r->o, r->b) : r->view.zeros;
}

static void fill_dy(struct run *r, size_t first, size_t steps)
{
    for (size_t i = 0; i < steps * in_step(r); i++)
        r->row[i] = row_of_dy(r, first + i);
    ddp__wgrad_fill(r->row, steps, r->o, r->b, r->pitch, r->pdy);
    if (r->kind == DDP__WGRAD_I16)
        ddp__wgrad_round(steps, r->o, r->pitch, r->pdy, r->udy);
}

static void fill_x(struct run *r, size_t first, size_t steps, int tap)
{
    size_t count = steps * in_step(r);

    if (r->cut)
        ddp__wgrad_rows_of_taps(&r->view, first, count, tap, r->cut, r->row);
    else
        ddp__wgrad_rows(&r->view, first, count, tap, r->row);
    ddp__wgrad_fill(r->row, steps, r->c, r->b, r->pitch, r->px);
    if (r->kind == DDP__WGRAD_I16)
        ddp__wgrad_round(steps, r->c, r->pitch, r->px, r->ux);
}

/* ---- products ----------------------------------------------------------- */

/* Panels i of dy and j, j + 1 of x. */
static void multiply(struct run *r, size_t steps, size_t i, size_t j, bool add,
                     float *dw)
{
    size_t ld = (size_t)r->taps * r->c;
    size_t panel = r->pitch * PANEL, rows = r->o - i, cols = r->c - j;
    const uint32_t *x = r->px + j / PANEL * panel;

    ddp__wgrad_tile(
        &(struct ddp__wgrad_tile){.steps = steps,
                                  .rows = rows < PANEL ? rows : PANEL,
                                  .cols = cols < 2 * PANEL ? cols : 2 * PANEL,
                                  .dy = r->pdy + i / PANEL * panel,
                                  .x = x,
                                  .x2 = cols > PANEL ? x + panel : NULL,
                                  .kind = r->kind,
                                  .row = r->udy + i,
                                  .col = r->ux + j,
                                  .add = add,
                                  .dw = dw + i * ld + j,
                                  .ld = ld,
                                  .next = r->next,
                                  .ahead = r->ahead});
    r->next += 2 * steps * r->ahead;
}

/* The larger matrix is read once. */
static void multiply_all(struct run *r, size_t steps, bool add, float *dw)
{
    if (r->o > r->c)
        for (size_t i = 0; i < r->o; i += PANEL)
            for (size_t j = 0; j < r->c; j += 2 * PANEL)
                multiply(r, steps, i, j, add, dw);
    else
        for (size_t j = 0; j < r->c; j += 2 * PANEL)
            for (size_t i = 0; i < r->o; i += PANEL)
                multiply(r, steps, i, j, add, dw);
}

/* Have products fetch the next block of the larger operand; that of x only if
 * it lies in one piece. */
static void look_ahead(struct run *r, size_t first, size_t steps)
{
    const struct ddp__conv *k = &r->view.s->conv;
    bool of_x = r->c > r->o && r->taps == 1 && k->sh == 1 && k->sw == 1;
    size_t len = of_x ? r->c : r->o, pixels = steps * in_step(r);
    size_t halves = 2 * ddp__divide_up(r->o, PANEL) *
                    ddp__divide_up(r->c, 2 * PANEL) * steps;

    r->next = ddp__at(of_x ? r->view.x : r->dy, (first + pixels) * len, r->b);
    r->ahead = ddp__divide_up(pixels * len * (r->b ? 2 : 4), halves);
}

static void run_block(struct run *r, size_t first, size_t steps, bool add,
                      float *dw)
{
    fill_dy(r, first, steps);
    look_ahead(r, first, steps);
    for (int i = 0; i < r->taps; i++) {
        fill_x(r, first, steps, i);
        multiply_all(r, steps, add, dw + (size_t)i * r->c);
    }
}

/* ---- layers ------------------------------------------------------------- */

/* Words of a vector of c channels, and of their panels. */
static size_t vectors(size_t c)
{
    return ddp__divide_up(c, PANEL) * PANEL;
}

static size_t panels(const struct run *r, size_t c)
{
    return vectors(c) * r->pitch;
}

/* joins: rows of taps. */
static int run_new(struct run *r, bool joins)
{
    size_t steps = ddp__divide_up(r->pixels, in_step(r));
    size_t most = vectors(r->c > r->o ? r->c : r->o);
    uint32_t *zeros;

    r->steps = ddp__divide_up(steps, ddp__divide_up(steps, STEPS));
    r->pitch = r->steps | 1; /* against equal cache sets */
    zeros =
        ddp__scratch((most + panels(r, r->c) + panels(r, r->o) + vectors(r->c) +
                      vectors(r->o) + (joins ? r->steps * r->c : 0)) *
                     sizeof(*zeros));
    if (!zeros)
        return DDP_ENOMEM;
    memset(zeros, 0, most * sizeof(*zeros));
    r->view.zeros = zeros;
    r->px = zeros + most;
    r->pdy = r->px + panels(r, r->c);
    r->ux = (float *)(void *)(r->pdy + panels(r, r->o));
    r->udy = r->ux + vectors(r->c);
    if (joins)
        r->cut = (uint16_t *)(void *)(r->udy + vectors(r->o));
    return 0;
}

static int run_kind(enum ddp__wgrad_kind kind, const struct ddp__conv_shape *s,
                    const void *x, const void *dy, bool accumulate, float *dw)
{
    const struct ddp__conv *k = &s->conv;
    bool joins = kind == DDP__WGRAD_I16 && joins_taps(s);
    struct run r = {.view = {.s = s, .x = x, .b = s->type == DDP_BF16},
                    .dy = dy,
                    .b = s->type == DDP_BF16,
                    .kind = kind,
                    .c = (size_t)(joins ? k->kw * s->c : s->c),
                    .o = (size_t)s->o,
                    .taps = joins ? k->kh : k->kh * k->kw,
                    .pixels = (size_t)s->n * (size_t)s->oh * (size_t)s->ow};

    if (run_new(&r, joins) < 0)
        return DDP_ENOMEM;
    for (size_t at = 0, steps; at * in_step(&r) < r.pixels; at += steps) {
        size_t left = ddp__divide_up(r.pixels, in_step(&r)) - at;

        steps = left < r.steps ? left : r.steps;
        run_block(&r, at * in_step(&r), steps, accumulate || at > 0, dw);
    }
    return 0;
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    return run_kind(s->type == DDP_BF16 ? DDP__WGRAD_BF16 : DDP__WGRAD_F32, s,
                    x, dy, accumulate, dw);
}

static int run_integers(const struct ddp__conv_shape *s, const void *x,
                        const void *dy, bool accumulate, float *dw)
{
    return run_kind(DDP__WGRAD_I16, s, x, dy, accumulate, dw);
}

const struct ddp__gradient ddp__wgrad_i16 = {
    .name = "products over pixels, of integers",
    .yields = true,
    .fits = fits_integers,
    .run = run_integers};

const struct ddp__gradient ddp__wgrad = {
    .name = "products over pixels", .yields = true, .fits = fits, .run = run};

#endif
