/* dense.c - dense layers of more samples than skinny.c has, and 1x1
 * convolutions of few pixels; weight gradients are in dense_wgrad.c
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * oneDNN packs weights after each update, 411 MB for the first dense layer of
 * VGG-11, and takes each image of a convolution by itself, even those of one
 * pixel.  Here weights are read where they are: those of some columns are in
 * panels while all rows are multiplied by them, and the weights after those are
 * fetched meanwhile.  Sums of as many columns as the second-level cache holds
 * remain there until they are complete.
 *
 * One core of an Intel Xeon with AMX under load (kernelbench dense),
 * milliseconds of oneDNN 2.6 with weights that changed before, and in this way:
 *
 *                                       forward         data gradient
 *     dense, 20 samples, 4096 to 4096    27.7   17.5     34.6   14.0
 *     64 samples                         35.0   29.1     41.1   24.0
 *     256 samples                        87.2   61.2     90.2   63.2
 *     256 samples, 1280 to 1000           5.5    4.6      5.8    4.5
 *     1x1, 256 images of one pixel,
 *         512 to 2048                    38.0    3.5     38.7    3.8
 *         2048 to 512                    38.0    3.9     38.0    3.7
 *     1x1, 4 images of 3x3, 1024 to 128   0.20   0.13     0.24   0.17
 *
 * On a Zen 4, 128 samples, 512 to 1000: 2.2 1.3, 2.2 1.3.  On an Intel Xeon
 * whose AMX is hidden, 1x1, 8 images of 7x7, 512 to 2048: 6.7 5.6, 6.7 6.0;
 * 2048 to 512: 6.6 5.8, 7.0 5.9.
 *
 * Each output is a sum of blocks of DEPTH products.  Errors relative to f64 are
 * 4e-7 of the norm with 1600 and 4130 of them (tests/test_dense.c).
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/thread.h"
#include "dense.h"
#include "dense_panel.h"
#include "dense_wgrad.h"
#include "gemm.h"
#include "skinny_lanes.h"

enum {
    PANEL = DDP__GEMM_PANEL,
    SKEW = DDP__GEMM_SKEW,
    FEW_ROWS = 16,    /* which skinny.c has */
    FEW_PIXELS = 9,   /* of an image */
    SOME_PIXELS = 64, /* likewise, where weights do not fit into a cache */
    MANY_WEIGHTS = 1 << 20,
    ROWS = 256,        /* that are multiplied with weights at a time */
    DEPTH = 512,       /* of a block of sums, a power of two */
    GROUP = 2 * PANEL, /* columns whose weights are in panels at a time */
    RESULT = 1 << 18   /* sums that remain in the second-level cache */
};

/* y[rows][columns] = sums over depth of x[rows][depth] times weights.  w has
 * rows of a length of `in`: of columns (turned) or of the depth. */
struct run {
    const float *x, *w, *bias;
    float *y;
    size_t rows, columns, depth, in;
    bool turned, add; /* add: to y */
    float low, high;
    size_t wide;          /* columns whose sums remain in a cache */
    float *block, *panel; /* of x; of weights */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- blocks ------------------------------------------------------------- */

/* Rows `row` to row + rows of x from `at` on, away from equal cache sets. */
static void copy_block(const struct run *u, size_t row, size_t rows, size_t at,
                       size_t len)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(u->block + i * (len + SKEW), u->x + (row + i) * u->depth + at,
               len * sizeof(*u->x));
}

static const float *weights_at(const struct run *u, size_t at, size_t column)
{
    return u->turned ? u->w + column * u->in + at : u->w + at * u->in + column;
}

static void fill_panels(const struct run *u, size_t at, size_t len,
                        size_t column, size_t count)
{
    (u->turned ? ddp__dense_turn : ddp__dense_copy)(
        weights_at(u, at, column), u->in, len, count, u->panel);
}

/* The weights that are needed after those at this place, of columns first to
 * end. */
static struct ddp__gemm_fetch next_weights(const struct run *u, size_t at,
                                           size_t column, size_t first,
                                           size_t end)
{
    struct ddp__gemm_fetch f = {.pitch = u->in};
    size_t len;

    column += GROUP;
    if (column >= end) {
        column = first;
        at += DEPTH;
    }
    if (at >= u->depth)
        return f;
    len = least(u->depth - at, DEPTH);
    f.from = weights_at(u, at, column);
    f.shift = u->turned ? 5 : 2;
    f.lines =
        u->turned ? least(end - column, GROUP) << f.shift : len << f.shift;
    return f;
}
_Static_assert(DEPTH == 16 << 5 && GROUP == 16 << 2, "lines of each row");

/* Sums of a group's columns. */
static void multiply(const struct run *u, size_t row, size_t rows, size_t at,
                     size_t len, size_t column, size_t count,
                     const struct ddp__gemm_fetch *fetch)
{
    static const float zeros[GROUP];
    bool last = at + len == u->depth;
    struct ddp__gemm_product g = {.m = rows,
                                  .n = ddp__divide_up(count, 16) * 16,
                                  .k = len,
                                  .a = u->block,
                                  .b = u->panel,
                                  .lda = len + SKEW};
    struct ddp__gemm_finish f = {.bias =
                                     last && u->bias ? u->bias + column : zeros,
                                 .columns = count,
                                 .low = last ? u->low : -INFINITY,
                                 .high = last ? u->high : INFINITY,
                                 .add = at > 0 || u->add,
                                 .fetch = fetch};

    ddp__gemm_finish(&g, &f, u->y + row * u->columns + column, u->columns);
}

/* Columns first to end of some rows. */
static void run_columns(const struct run *u, size_t row, size_t rows,
                        size_t first, size_t end)
{
    for (size_t at = 0; at < u->depth; at += DEPTH) {
        size_t len = least(u->depth - at, DEPTH);

        copy_block(u, row, rows, at, len);
        for (size_t j = first; j < end; j += GROUP) {
            struct ddp__gemm_fetch fetch = next_weights(u, at, j, first, end);
            size_t count = least(end - j, GROUP);

            fill_panels(u, at, len, j, count);
            multiply(u, row, rows, at, len, j, count, &fetch);
        }
    }
}

/* ---- passes ------------------------------------------------------------- */

/* In blocks of rows of about the same size. */
static int run(struct run *u)
{
    size_t blocks = ddp__divide_up(u->rows, ROWS);
    size_t most = ddp__divide_up(u->rows, blocks), len = least(u->depth, DEPTH);

    u->wide = RESULT / most / GROUP * GROUP;
    u->block =
        ddp__scratch((most * (len + SKEW) + len * GROUP) * sizeof(*u->block));
    if (!u->block)
        return DDP_ENOMEM;
    u->panel = u->block + most * (len + SKEW);
    for (size_t i = 0; i < blocks; i++) {
        size_t row = u->rows * i / blocks, end = u->rows * (i + 1) / blocks;

        for (size_t j = 0; j < u->columns; j += u->wide)
            run_columns(u, row, end - row, j, least(j + u->wide, u->columns));
    }
    return 0;
}

static size_t rows_of(const struct ddp__conv_shape *s)
{
    return (size_t)s->n * (size_t)s->oh * (size_t)s->ow;
}

int ddp__dense_fwd(const struct ddp__conv_shape *s, const float *x,
                   const float *w, float *y)
{
    struct run u = {.x = x,
                    .w = w,
                    .y = y,
                    .rows = rows_of(s),
                    .columns = (size_t)s->o,
                    .depth = (size_t)s->c,
                    .in = (size_t)s->c,
                    .turned = true,
                    .low = s->conv.act == DDP_IDENTITY ? -INFINITY : 0,
                    .high = s->conv.act == DDP_RELU6 ? 6 : INFINITY};

    if (s->conv.bias)
        u.bias = w + u.columns * u.depth;
    return run(&u);
}

int ddp__dense_bwd_x(const struct ddp__conv_shape *s, const float *dy,
                     const float *w, float *dx)
{
    struct run u = {.x = dy,
                    .w = w,
                    .y = dx,
                    .rows = rows_of(s),
                    .columns = (size_t)s->c,
                    .depth = (size_t)s->o,
                    .in = (size_t)s->c,
                    .add = s->sum,
                    .low = -INFINITY,
                    .high = INFINITY};

    return run(&u);
}

/* ---- choice ------------------------------------------------------------- */

/* A matrix of rows times weights: a 1x1 convolution that leaves no pixel out,
 * which one with strides does not do to images of one pixel. */
static bool is_product(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return s->dense || (k->kh == 1 && k->kw == 1 && k->groups == 1 &&
                        k->top == 0 && k->left == 0 && k->bottom == 0 &&
                        k->right == 0 && s->oh == s->h && s->ow == s->w);
}

/* oneDNN reads the weights again for each image. */
static bool has_many_pixels(const struct ddp__conv_shape *s,
                            enum ddp__conv_pass pass)
{
    bool again =
        pass != DDP__BWD_W && (size_t)s->o * (size_t)s->c >= MANY_WEIGHTS;

    return s->oh * s->ow > (again ? SOME_PIXELS : FEW_PIXELS);
}

bool ddp__dense_fits(const struct ddp__conv_shape *s, enum ddp__conv_pass pass)
{
    if (s->type != DDP_F32 || (s->sum && pass != DDP__BWD_X) ||
        !is_product(s) || rows_of(s) <= FEW_ROWS || ddp__skinny_lanes() < 16 ||
        (!s->dense && has_many_pixels(s, pass)))
        return false;
    if (pass == DDP__BWD_W)
        return ddp__dense_wgrad_fits(s);
    return pass == DDP__BWD_X || s->conv.act == DDP_IDENTITY ||
           s->conv.act == DDP_RELU || s->conv.act == DDP_RELU6;
}
