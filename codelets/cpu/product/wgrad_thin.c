/* wgrad_thin.c - weight gradients of layers with few channels on one side
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of 1x1 layers, and of the three pixels in a row that a 3x3 layer of three
 * channels sees.
 *
 * Both operands are read once, in place, while the next block of pixels is
 * prefetched; the whole gradient is in the caches.  Sums of blocks are added up
 * in groups, and those of groups in a total, so that the error does not grow
 * with the number of pixels.  The order depends on the shape alone.
 *
 * One of two busy cores of an Intel Xeon (AVX-512, AMX), 16 images,
 * milliseconds of processor time under load, by oneDNN 2.6 and in this way:
 *
 *     1x1, 112x112, 16 to 96              11.4 6.0
 *     1x1, 112x112, 32 to 16               4.4 2.0
 *     1x1, 56x56, 96 to 24                 4.0 1.6
 *     1x1, 56x56, 24 to 144                5.1 2.7
 *     1x1, 56x56, 144 to 24                5.6 2.7
 *     1x1, 28x28, 32 to 192                1.8 1.1
 *     1x1, 28x28, 192 to 32                1.9 1.1
 *     1x1, 28x28, 240 to 40                3.2 1.7
 *     3x3 of stride 2, 224x224, 3 to 32    6.4 3.3, bf16 6.4 3.0
 *     3x3, four of 224x224, 3 to 64       18.8 6.5, bf16 13.9 5.8
 *
 * Values of bf16 are converted in the first-level cache.  AMX (amx.c) takes 4.8
 * and 6.7 for the two 3x3 layers; 1x1 layers in bf16 are those of amx_wgrad.c.
 *
 * The same on a Zen 4, in steps of EfficientNet-B0 and MobileNetV2: 112x112, 16
 * to 96 11.6 7.1, 32 to 16 3.6 2.9; 56x56, 96 to 24 3.4 2.3, 24 to 144 5.5 3.3,
 * 144 to 24 5.2 3.5; 28x28, 32 to 192 3.0 1.5, 192 to 32 2.3 1.5, 240 to 40 3.2
 * 2.3; 3x3 of stride 2, 3 to 32 8.0 4.3, but in bf16 3.4 4.4, since oneDNN's
 * products of bf16 are twice as fast there as those of f32.  Where they have
 * half the speed of f32 (an Intel Xeon whose AMX is hidden), one core, by
 * integers (wgrad.c) or oneDNN, and in this way, bf16: 8 images of 112x112, 16
 * to 96 4.3 2.8, 32 to 16 1.9 0.9; 56x56, 96 to 24 1.1 1.0, 24 to 144 1.7 1.4;
 * 3x3 of stride 2, 16 images, 3 to 32 6.7 3.1, 3x3 of 224x224, 3 to 64 54 23.
 *
 * Against sums in f64, errors are up to 2.5e-7 of the norm, with bf16
 * 1.2e-7 (tests/test_wgrad.c).
 */
#include "config.h"

#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act.h"
#include "cpu/isa.h"
#include "cpu/norm/bn_clamp_v16.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "thin_tile.h"

#ifdef DDP__X86
enum {
    MOST_FEW = 56,          /* channels, of the side with fewer */
    TILE = 8,               /* of them, of a tile */
    PIECE = 9,              /* values of three pixels of three channels */
    PIECE_COLS = 32,        /* outputs of a tile of these */
    BLOCK_BYTES = 32 << 10, /* of pixels, which suit the first-level cache */
    GROUP = 32,             /* blocks */
    MOST_BF16 = 24          /* products for each value of bf16 */
};

/* ---- sums --------------------------------------------------------------- */

/* A layer and its sums [few][many]. */
struct run {
    const struct ddp__conv_shape *s;
    const void *x, *dy;
    bool b;     /* they are bf16 */
    bool few_x; /* x has fewer channels */
    size_t few, many, ld, len;
    float *part, *total;              /* of a group of blocks, of all */
    float *line[3];                   /* rows of x with padding */
    const struct ddp__bn_clamp *norm; /* or NULL: x is read as it is */
    float *x_block, *dy_block;        /* a block, widened or normalised */
    size_t blocks;                    /* of the group */
};

static void end_group(struct run *r)
{
    ddp__cpu_add_f32(r->total, r->part, r->len);
    memset(r->part, 0, r->len * sizeof(float));
    r->blocks = 0;
}

static void end_block(struct run *r)
{
    if (++r->blocks == GROUP)
        end_group(r);
}

static void put_gradient(struct run *r, bool add, float *dw)
{
    size_t c = r->few_x ? r->few : r->many, o = r->few_x ? r->many : r->few;

    end_group(r);
    for (size_t i = 0; i < o; i++)
        for (size_t j = 0; j < c; j++, dw++)
            *dw = (add ? *dw : 0) +
                  r->total[r->few_x ? j * r->ld + i : i * r->ld + j];
}

/* Values as f32: where they are, or in a block. */
static const float *values(const struct run *r, const void *from, size_t len,
                           float *block)
{
    if (!r->b)
        return from;
    ddp__widen(from, len, block);
    return block;
}

/* What follows `pixels` pixels of c channels, in `steps` steps for each. */
static struct ddp__thin_next next_of(const struct run *r, const void *from,
                                     size_t pixels, size_t c, size_t steps)
{
    return (struct ddp__thin_next){ddp__at(from, pixels * c, r->b),
                                   ddp__divide_up(c * (r->b ? 2 : 4), steps)};
}

static bool is_first(const struct ddp__conv_shape *s)
{
    return s->conv.kh == 3 && s->conv.kw == 3 && s->c == 3 && s->conv.top < 3 &&
           s->conv.left < 3;
}

/* ---- 1x1 ---------------------------------------------------------------- */

/* Pixels of x as they are multiplied. */
static const float *pixels_of_x(const struct run *r, const void *x,
                                size_t pixels)
{
    size_t c = (size_t)r->s->c;

    if (!r->norm)
        return values(r, x, pixels * c, r->x_block);
    ddp__bn_clamp_pixels(r->norm, x, pixels, c, r->x_block);
    return r->x_block;
}

/* `pixels` pixels from the first on, while the next are fetched. */
static void add_pixels(struct run *r, size_t first, size_t pixels)
{
    size_t c = (size_t)r->s->c, o = (size_t)r->s->o;
    const void *x = ddp__at(r->x, first * c, r->b);
    const void *dy = ddp__at(r->dy, first * o, r->b);
    const float *of_x = pixels_of_x(r, x, pixels);
    const float *of_dy = values(r, dy, pixels * o, r->dy_block);
    size_t steps = r->few / TILE * ddp__divide_up(r->many, DDP__THIN_COLS);
    struct ddp__thin_tile t = {.pixels = pixels,
                               .thin_pitch = r->few,
                               .wide_pitch = r->many,
                               .rows = TILE,
                               .ld = r->ld,
                               .next = {next_of(r, x, pixels, c, steps),
                                        next_of(r, dy, pixels, o, steps)}};

    for (size_t j = 0; j < r->many; j += DDP__THIN_COLS)
        for (size_t i = 0; i < r->few; i += TILE) {
            size_t left = r->many - j;

            t.thin = (r->few_x ? of_x : of_dy) + i;
            t.wide = (r->few_x ? of_dy : of_x) + j;
            t.cols = left < DDP__THIN_COLS ? left : DDP__THIN_COLS;
            t.sum = r->part + i * r->ld + j;
            ddp__thin_tile(&t);
        }
    end_block(r);
}

/* Pixels of a block. */
static size_t block_of(const struct run *r)
{
    size_t fit = BLOCK_BYTES / sizeof(float) / (r->few + r->many);

    return fit > TILE ? fit : TILE;
}

static void add_all_pixels(struct run *r)
{
    size_t all = (size_t)r->s->n * (size_t)r->s->oh * (size_t)r->s->ow;
    size_t block = block_of(r);

    for (size_t at = 0; at < all; at += block)
        add_pixels(r, at, all - at < block ? all - at : block);
}

/* ---- 3x3 of three channels ---------------------------------------------- */

static size_t line_len(const struct ddp__conv_shape *s)
{
    return (size_t)((s->ow - 1) * s->conv.sw + 3) * 3;
}

/* Row y of an image between its padding. */
static void fill_line(const struct run *r, const void *image, int y, float *to)
{
    const struct ddp__conv_shape *s = r->s;
    size_t len = line_len(s), left = (size_t)s->conv.left * 3;
    size_t row = (size_t)s->w * 3;
    size_t n = row < len - left ? row : len - left;

    memset(to, 0, len * sizeof(float));
    if (y < 0 || y >= s->h)
        return;
    image = ddp__at(image, (size_t)y * row, r->b);
    if (r->b)
        ddp__widen(image, n, to + left);
    else
        memcpy(to + left, image, n * sizeof(float));
}

static void add_row(struct run *r, const void *image, int y, const void *dy)
{
    const struct ddp__conv_shape *s = r->s;
    size_t pixels = (size_t)s->ow,
           pieces = ddp__divide_up(r->many, PIECE_COLS) * 3;
    const float *many = values(r, dy, pixels * r->many, r->dy_block);
    struct ddp__thin_tile t = {
        .pixels = pixels,
        .thin_pitch = 3 * (size_t)s->conv.sw,
        .wide_pitch = r->many,
        .rows = PIECE,
        .ld = r->ld,
        .next = {next_of(r, dy, pixels, r->many, pieces), {dy, 0}}};

    for (size_t k = 0; k < 3; k++)
        fill_line(r, image, y * s->conv.sh - s->conv.top + (int)k, r->line[k]);
    for (size_t j = 0; j < r->many; j += PIECE_COLS)
        for (size_t k = 0; k < 3; k++) {
            t.thin = r->line[k];
            t.wide = many + j;
            t.cols = r->many - j < PIECE_COLS ? r->many - j : PIECE_COLS;
            t.sum = r->part + k * PIECE * r->ld + j;
            ddp__thin_tile(&t);
        }
    end_block(r);
}

static void add_all_rows(struct run *r)
{
    const struct ddp__conv_shape *s = r->s;
    size_t image = (size_t)(s->h * s->w) * 3, row = (size_t)s->ow * r->many;

    for (int i = 0; i < s->n; i++)
        for (int y = 0; y < s->oh; y++)
            add_row(r, ddp__at(r->x, (size_t)i * image, r->b), y,
                    ddp__at(r->dy, (size_t)(i * s->oh + y) * row, r->b));
}

/* ---- layers ------------------------------------------------------------- */

static bool is_thin(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;
    int few = s->c < s->o ? s->c : s->o;

    return k->kh == 1 && k->kw == 1 && k->sh == 1 && k->sw == 1 &&
           s->h == s->oh && s->w == s->ow && few % TILE == 0 &&
           few <= MOST_FEW &&
           (s->type == DDP_F32 || s->c * s->o <= MOST_BF16 * (s->c + s->o));
}

/* In bf16 where it is slow; first layers, with AMX as well. */
static bool has_type(const struct ddp__conv_shape *s)
{
    return s->type == DDP_F32 || ddp__i16_here() ||
           (is_first(s) && ddp__amx_here());
}

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && k->groups == 1 && k->dh == 1 && k->dw == 1 &&
           (is_thin(s) || is_first(s)) && ddp__avx512_here() && has_type(s);
}

/* Memory for sums, lines and blocks, and for `more` bytes. */
static void *run_new(struct run *r, size_t more)
{
    bool first = is_first(r->s);
    size_t line = first ? ddp__align(line_len(r->s)) : 0;
    size_t pixels = first ? (size_t)r->s->ow : block_of(r);
    size_t x = first ? 0 : ddp__align(pixels * (size_t)r->s->c);
    size_t dy = r->b ? ddp__align(pixels * (size_t)r->s->o) : 0, own;
    float *room;

    r->ld = ddp__divide_up(r->many, 16) * 16;
    r->len = r->few * r->ld;
    own = ddp__align(2 * r->len) + 3 * line + x + dy;
    if (!(room = ddp__scratch(own * sizeof(*room) + more)))
        return NULL;
    memset(room, 0, 2 * r->len * sizeof(*room));
    r->part = room;
    r->total = room + r->len;
    for (size_t i = 0; i < 3; i++)
        r->line[i] = room + ddp__align(2 * r->len) + i * line;
    r->x_block = r->line[2] + line;
    r->dy_block = r->x_block + x;
    return room + own;
}

static struct run run_of(const struct ddp__conv_shape *s, const void *x,
                         const void *dy)
{
    size_t c = (size_t)(s->conv.kh * s->conv.kw * s->c), o = (size_t)s->o;
    bool few_x = is_first(s) || c < o;

    return (struct run){.s = s,
                        .x = x,
                        .dy = dy,
                        .b = s->type == DDP_BF16,
                        .few_x = few_x,
                        .few = few_x ? c : o,
                        .many = few_x ? o : c};
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    struct run r = run_of(s, x, dy);

    if (!run_new(&r, 0))
        return DDP_ENOMEM;
    if (is_first(s))
        add_all_rows(&r);
    else
        add_all_pixels(&r);
    put_gradient(&r, accumulate, dw);
    return 0;
}

/* Of a 1x1 layer: no norm comes before the first. */
static int run_of_norm(const struct ddp__task *t,
                       const struct ddp__conv_shape *s)
{
    struct run r = run_of(s, t->data[DDP__NORM_CONV_BWD_W_X],
                          t->data[DDP__NORM_CONV_BWD_W_DY]);
    size_t of_norm = ddp__bn_clamp_size(t);
    char *room = run_new(&r, of_norm);
    struct ddp__bn_clamp norm;

    if (!room)
        return DDP_ENOMEM;
    norm = ddp__bn_clamp_of(t, room);
    r.norm = &norm;
    add_all_pixels(&r);
    put_gradient(&r, t->accumulate, t->data[DDP__NORM_CONV_BWD_W_G]);
    return 0;
}

const struct ddp__gradient ddp__wgrad_thin = {.name =
                                                  "products of few channels",
                                              .yields = true,
                                              .fits = fits,
                                              .run = run,
                                              .run_of_norm = run_of_norm};

#endif
