/* thin.c - convolutions of training where memory limits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Forward passes and data gradients of 1x1 layers of stride 1.  The weights are
 * small, so a block of pixels is multiplied by all of them while it is in the
 * caches; results are stored past these from registers, and pixels are
 * prefetched well ahead.
 *
 * One core of an Intel Xeon with AMX under load, both cores busy, milliseconds
 * of 16 images by oneDNN 2.6 and in this way (and the least that memory and
 * arithmetic allow); kernelbench has more:
 *
 *     112x112, 16 to 96     12.5  4.5 (4.5)    96 to 16     10.7  6.2
 *     56x56, 24 to 144       5.2  2.2 (1.7)    144 to 24     4.6  2.8
 *     28x28, 32 to 192       2.0  0.9 (0.8)    192 to 32     1.5  0.9
 *     14x14, 64 to 384       1.7  0.8 (0.8)    384 to 64     1.1  1.0
 *     of 8 images:
 *     56x56, 64 to 256       5.9  4.4 (4.1)    256 to 64     5.4  4.6
 *     28x28, 128 to 512      4.6  4.2 (4.1)    512 to 128    4.8  4.4
 *     14x14, 128 to 960      2.7  2.1 (1.9)    960 to 128    2.2  2.2
 *
 * With more products for each float in memory, or more input channels, oneDNN
 * is as fast or faster.  On a Zen 4, in steps of MobileNetV2 and ResNet-50:
 *
 *     112x112, 16 to 96     10.3  6.7          96 to 16     12.2  7.1
 *     56x56, 24 to 144       5.0  3.6          144 to 24     7.2  4.3
 *     28x28, 32 to 192       1.9  1.5          192 to 32     2.5  1.4
 *     14x14, 64 to 384       1.6  1.4          384 to 64     1.6  1.5
 *     of 8 images:
 *     56x56, 64 to 256       8.9  7.6          256 to 64     9.2  7.4
 *     28x28, 128 to 512      8.6  7.4          512 to 128    7.8  7.4
 *
 * In bf16 values become floats on their way into the first-level cache, and
 * sums are rounded on their way out of it; a row may also be a short patch of
 * any layer.  Where vdpbf16ps has half the speed of f32 (an Intel Xeon whose
 * AMX is hidden) integers (i16_conv.c) are the other way, and oneDNN for fewer
 * than 32 values.  One core, least milliseconds of 16 images in turns, by these
 * and in this way:
 *
 *     112x112, 16 to 96   8.5  5.5    96 to 16              7.9  6.1
 *     112x112, 32 to 16   4.9  2.1    16 to 32              2.8  2.0
 *     56x56, 24 to 144    4.5  2.9    24 to 96              2.9  1.8
 *     32x32, 3x3, 3 to 64 1.0  0.7    224x224, 3x3/2, 3 to 32 5.9  3.7
 *
 * 28x28, 32 to 192 takes 1.0 either way; 56x56, 144 to 24 3.4 by integers, 3.6.
 *
 * Each output is a sum in the order of the input channels, as oneDNN's are:
 * without a bias all layers above have the same bits.  Against sums in f64,
 * errors are 4e-8 of the norm with 3 channels, 4e-7 with 400
 * (tests/test_thin.c).
 */
#include "config.h"

#include <math.h>

#include "cpu/cpu.h"
#include "cpu/isa.h"
#include "cpu/norm/bn_clamp_v16.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "gemm.h"
#include "patch.h"
#include "pixels.h"
#include "thin.h"
#include "thin_rows.h"

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    ROWS = 28,    /* of a block */
    AHEAD = 3072, /* floats of x that are on their way: 12 KB */
    LEAST_PIXELS = 7 * 7,
    MOST_CHANNELS = 512, /* of x */
    MOST_PRODUCTS = 128, /* for each float of x and y */
    MOST_BF16 = 20,      /* for each value of bf16 */
    FEW_BF16 = 32        /* values of a row, of which there are few enough */
};

struct ddp__conv_shape ddp__thin_product(const struct ddp__conv_shape *s)
{
    struct ddp__conv_shape p = *s;

    p.c *= s->conv.kh * s->conv.kw;
    p.conv.kh = p.conv.kw = 1;
    return p;
}

static bool has_few_products(const struct ddp__conv_shape *s)
{
    struct ddp__conv_shape p = ddp__thin_product(s);
    bool b = s->type == DDP_BF16;
    int most = b ? MOST_BF16 : MOST_PRODUCTS;

    return (b && p.c < FEW_BF16) ||
           (p.c <= MOST_CHANNELS && p.c * p.o <= most * (p.c + p.o));
}

/* Of f32, pixels that lie one after the other; of bf16, where integers
 * (i16_conv.c) are the other way, any patches. */
static bool has_rows(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    if (s->type == DDP_F32)
        return ddp__pixels_fit(s) && k->sh == 1 && k->sw == 1;
    return ddp__i16_here() && !s->dense && k->groups == 1 && k->dh == 1 &&
           k->dw == 1 && k->kh <= DDP__PATCH_MOST && k->kw <= DDP__PATCH_MOST;
}

bool ddp__thin_fits(const struct ddp__conv_shape *s)
{
    return has_rows(s) && s->conv.act == DDP_IDENTITY &&
           !(s->sum && s->type != DDP_F32) && !ddp__patch_pays(s) &&
           s->oh * s->ow >= LEAST_PIXELS && has_few_products(s);
}

/* Some rows are computed in `room` and copied: those of a number of channels
 * that is no multiple of 16 have lines with their neighbours in common.  With a
 * norm, rows of x are normalised in `read` first. */
struct run {
    const struct ddp__conv_shape *s;
    const void *x;
    bool b, pixels; /* x and y are bf16; rows are pixels */
    const float *w, *bias;
    const struct ddp__bn_clamp *norm; /* or NULL */
    float *read;                      /* rows of x, normalised or widened */
    void *y;
    float *room;
    size_t count, c, o, all, ahead; /* c: of a row; all: columns of w */
    bool whole, past;               /* y: has whole lines; passes the caches */
};

static const float *rows_of_x(const struct run *u, size_t row, size_t rows)
{
    const void *x = u->pixels ? ddp__at(u->x, row * u->c, u->b) : u->x;

    if (!u->pixels)
        ddp__thin_rows(u->s, x, row, rows, u->c, u->read);
    else if (u->b)
        ddp__widen(x, rows * u->c, u->read);
    else if (u->norm)
        ddp__bn_clamp_pixels(u->norm, x, rows, u->c, u->read);
    else
        return x;
    return u->read;
}

/* The last panel comes first: where o is no multiple of 16 it writes zeros into
 * the row after, which are replaced. */
static void multiply(const struct run *u, size_t row, size_t rows, float *y)
{
    const float *a = rows_of_x(u, row, rows);
    const float *from = u->pixels ? ddp__at(u->x, row * u->c, u->b) : a;
    size_t last = (u->all - 1) / PANEL * PANEL;

    for (size_t j = last; j <= last; j -= PANEL) {
        struct ddp__gemm_product g = {.m = rows,
                                      .n = u->all - j < PANEL ? VECTOR : PANEL,
                                      .k = u->c,
                                      .a = a,
                                      .lda = u->c,
                                      .b = u->w + j * u->c};
        struct ddp__gemm_stream m = {.bias = u->bias ? u->bias + j : NULL,
                                     .next = j == last ? from + u->ahead : from,
                                     .past = u->past && u->whole};

        ddp__gemm_stream(&g, &m, y + j, u->o);
    }
}

/* Likewise, added to y, which the caches have then. */
static void add(const struct run *u, size_t row, size_t rows, float *y)
{
    static const float zeros[PANEL];
    const float *a = rows_of_x(u, row, rows);

    for (size_t j = 0; j < u->o; j += PANEL) {
        size_t count = u->o - j < PANEL ? u->o - j : PANEL;
        struct ddp__gemm_product g = {.m = rows,
                                      .n = count > VECTOR ? PANEL : VECTOR,
                                      .k = u->c,
                                      .a = a,
                                      .lda = u->c,
                                      .b = u->w + j * u->c};
        struct ddp__gemm_finish f = {.bias = zeros,
                                     .columns = count,
                                     .low = -INFINITY,
                                     .high = INFINITY,
                                     .add = true,
                                     .next = a + u->ahead};

        ddp__gemm_finish(&g, &f, y + j, u->o);
    }
}

static void run_block(const struct run *u, size_t row, size_t rows)
{
    void *y = (char *)u->y + row * u->o * (u->b ? 2 : 4);

    if (u->s->sum) {
        add(u, row, rows, y);
        return;
    }
    if (u->whole || (!u->b && !u->past && row + rows < u->count)) {
        multiply(u, row, rows, y);
        return;
    }
    multiply(u, row, rows, u->room);
    ddp__store_block(y, u->room, rows * u->o, u->b, u->past);
}

/* Memory for rows of y, if they are copied, and for `more` bytes. */
static void *find_room(struct run *u, size_t more)
{
    size_t own =
        u->whole ? 0 : ddp__align((ROWS * u->o + PANEL) * sizeof(float));
    char *room = ddp__scratch(own + more);

    u->room = (float *)(void *)room;
    return room ? room + own : NULL;
}

static struct run run_of(const struct ddp__conv_shape *s, const void *x,
                         const float *packed, void *y)
{
    const struct ddp__conv *k = &s->conv;
    struct run u = {.s = s,
                    .x = x,
                    .b = s->type == DDP_BF16,
                    .pixels = ddp__pixels_fit(s) && k->sh == 1 && k->sw == 1,
                    .w = packed,
                    .y = y,
                    .count = (size_t)s->n * (size_t)s->oh * (size_t)s->ow,
                    .c = (size_t)ddp__thin_product(s).c,
                    .o = (size_t)s->o,
                    .all = ddp__pixels_columns(s)};

    u.past = ddp__streams(u.count * u.o, u.b);
    u.whole = !u.b && u.o % VECTOR == 0 && (uintptr_t)y % 64 == 0;
    u.ahead = u.pixels ? (AHEAD / u.c + 1) * u.c : 0;
    if (s->conv.bias)
        u.bias = packed + u.all * u.c;
    return u;
}

static void run_blocks(const struct run *u)
{
    for (size_t row = 0; row < u->count; row += ROWS)
        run_block(u, row, u->count - row < ROWS ? u->count - row : ROWS);
    if (u->past && !u->s->sum)
        ddp__store_end();
}

int ddp__thin_run(const struct ddp__conv_shape *s, const void *x,
                  const float *packed, void *y)
{
    struct run u = run_of(s, x, packed, y);
    size_t wide = u.b ? ROWS * u.c * sizeof(float) : 0;

    if (!u.whole && !(u.read = find_room(&u, wide)))
        return DDP_ENOMEM;
    run_blocks(&u);
    return 0;
}

int ddp__thin_norm_run(const struct ddp__task *t,
                       const struct ddp__conv_shape *s, const float *packed)
{
    struct run u = run_of(s, t->data[DDP__NORM_CONV_FWD_X], packed,
                          t->data[DDP__NORM_CONV_FWD_Y]);
    size_t of_norm = ddp__bn_clamp_size(t);
    char *room = find_room(&u, of_norm + ROWS * u.c * sizeof(float));
    struct ddp__bn_clamp norm;

    if (!room)
        return DDP_ENOMEM;
    norm = ddp__bn_clamp_of(t, room);
    u.norm = &norm;
    u.read = (float *)(void *)(room + of_norm);
    run_blocks(&u);
    return 0;
}
