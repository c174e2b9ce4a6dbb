/* depthwise_wgrad_rows.c - weight gradients of depthwise 3x3 layers, by rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A strip of rows is in the second-level cache and is read in place, 16
 * channels at a time, while the next strip is prefetched in the order of its
 * addresses.  Sums of a strip are in registers.  They are added up for an
 * image, and those of images in the result; the order depends on the shape
 * alone.
 *
 * One of two busy cores of an Intel Xeon (AVX-512, AMX), 16 images,
 * milliseconds of processor time under load, by oneDNN 2.6 and in this way:
 *
 *     112x112x96 of stride 2  12.1 7.4, bf16 13.8 3.1
 *     112x112x32               4.7 4.0, bf16  7.8 1.9
 *     56x56x144                9.6 4.5, bf16 16.1 2.5
 *     56x56x144 of stride 2    4.1 2.6, bf16  3.4 1.0
 *     28x28x192                2.5 1.6, bf16  3.6 0.9
 *     14x14x576                1.8 1.3, bf16  2.3 0.8
 *     7x7x960                  0.6 0.5, bf16  0.7 0.3
 *
 * The same on a Zen 4, in steps of EfficientNet-B0 and MobileNetV2:
 *
 *     112x112x96 of stride 2  10.8 6.6, bf16 6.8 3.0
 *     112x112x32               5.9 3.5, bf16 5.3 2.1
 *     56x56x144                9.3 4.0, bf16 8.0 2.7
 *     56x56x144 of stride 2    3.8 2.4, bf16 2.6 1.1
 *     28x28x192                2.9 1.4, bf16 1.6 0.9
 *     14x14x576                1.8 1.1, bf16 1.0 1.2
 *     7x7x960                  0.8 0.8, bf16 0.3 0.5
 *
 * Against sums in f64, errors are up to 2.0e-7 of the norm, with bf16
 * 1.3e-7 (tests/test_wgrad.c).
 */
#include "config.h"

#include "cpu/conv/gradient.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act.h"
#include "cpu/isa.h"
#include "cpu/thread.h"
#include "cpu/vector/v16.h"
#include "depthwise_wgrad_band.h"

#ifdef DDP__X86
enum { SIDE = 3, TAPS = SIDE * SIDE, LANES = 16 };

/* Of x and dy in a strip: with twice that, times are about the same, with eight
 * times that up to 1.2 times as long. */
enum { STRIP_BYTES = 64 << 10 };

/* A layer, and sums [block of channels][tap][16] of a strip, an image, all. */
struct run {
    const struct ddp__conv_shape *s;
    const char *x, *dy, *zeros;       /* of an image; a row */
    const struct ddp__bn_clamp *norm; /* that x goes through, or NULL */
    bool b;
    size_t c, pitch, len;
    int rows; /* of dy in a strip */
    float *part, *image, *total;
};

static const char *row_of_x(const struct run *r, int y)
{
    const struct ddp__conv_shape *s = r->s;

    return y < 0 || y >= s->h ? r->zeros
                              : r->x + (size_t)y * (size_t)s->w * r->pitch;
}

/* A band from row y of dy on, without what it fetches. */
static struct ddp__dw_band band_of(const struct run *r, int y, size_t first)
{
    const struct ddp__conv_shape *s = r->s;
    size_t left = r->c - first, at = first * (r->b ? 2 : 4);
    struct ddp__dw_band n = {.pitch = r->pitch,
                             .w = s->w,
                             .ow = s->ow,
                             .left = s->conv.left,
                             .mask = ddp__mask16(left),
                             .norm = r->norm,
                             .channel = first};

    for (int i = 0; i < DDP__DW_LINES; i++) {
        int row = y * s->conv.sh - s->conv.top + i;

        n.x[i] = row_of_x(r, row) + at;
        n.inside[i] = row < 0 || row >= s->h ? 0 : 0xffff;
    }
    for (int i = 0; i < 2; i++)
        n.dy[i] = r->dy + (size_t)((y + i) * s->ow) * r->pitch + at;
    return n;
}

/* What follows the strip of `rows` rows from y on, for `steps` pixels. */
static void look_ahead(const struct run *r, int y, int rows, size_t steps,
                       struct ddp__dw_next *next)
{
    const struct ddp__conv_shape *s = r->s;
    size_t row = (size_t)s->w * r->pitch, dy_row = (size_t)s->ow * r->pitch;
    size_t of_x = (size_t)(rows * s->conv.sh) * row;
    int last = (y + rows - 1) * s->conv.sh - s->conv.top + SIDE;

    next[0] = (struct ddp__dw_next){r->x + (size_t)last * row, of_x / steps};
    next[1] = (struct ddp__dw_next){r->dy + (size_t)(y + rows) * dy_row,
                                    (size_t)rows * dy_row / steps};
}

static void add_strip(const struct run *r, int y, int rows)
{
    const struct ddp__conv_shape *s = r->s;
    int stride = s->conv.sh, most = stride == 1 ? 2 : 1;
    size_t blocks = (r->c + LANES - 1) / LANES;
    size_t bands = (size_t)((rows + most - 1) / most);
    struct ddp__dw_next next[2];

    look_ahead(r, y, rows, blocks * bands * (size_t)s->ow, next);
    memset(r->part, 0, r->len * sizeof(*r->part));
    for (size_t k = 0; k < blocks; k++)
        for (int i = 0; i < rows; i += most) {
            struct ddp__dw_band n = band_of(r, y + i, k * LANES);

            memcpy(n.next, next, sizeof(next));
            ddp__dw_band_add(r->b, rows - i < most ? 1 : most, stride, &n,
                             r->part + k * TAPS * LANES);
            memcpy(next, n.next, sizeof(next));
        }
    ddp__cpu_add_f32(r->image, r->part, r->len);
}

static void add_image(const struct run *r)
{
    memset(r->image, 0, r->len * sizeof(*r->image));
    for (int y = 0; y < r->s->oh; y += r->rows)
        add_strip(r, y, r->s->oh - y < r->rows ? r->s->oh - y : r->rows);
    ddp__cpu_add_f32(r->total, r->image, r->len);
}

static void put_gradient(const struct run *r, bool add, float *dw)
{
    for (size_t j = 0; j < r->c; j++)
        for (size_t i = 0; i < TAPS; i++, dw++)
            *dw = (add ? *dw : 0) +
                  r->total[(j / LANES * TAPS + i) * LANES + j % LANES];
}

static bool fits(const struct ddp__conv_shape *s)
{
    const struct ddp__conv *k = &s->conv;

    return !s->dense && k->groups == s->c && s->o == s->c && k->kh == SIDE &&
           k->kw == SIDE && k->sh == k->sw && k->sh <= 2 && k->dh == 1 &&
           k->dw == 1 && ddp__avx512_here();
}

/* Memory for sums, for a row of zeros, and for `more` bytes. */
static void *run_new(struct run *r, size_t more)
{
    const struct ddp__conv_shape *s = r->s;
    size_t of_x = (size_t)(s->conv.sh * s->w) * r->pitch, sums, zeros;
    size_t rows = STRIP_BYTES / (of_x + (size_t)s->ow * r->pitch);
    char *room;

    r->rows = rows < 2 ? 2 : (int)(rows / 2) * 2;
    r->len = (r->c + LANES - 1) / LANES * LANES * TAPS;
    sums = ddp__align(3 * r->len * sizeof(float));
    zeros = ddp__align((size_t)s->w * r->pitch);
    if (!(room = ddp__scratch(sums + zeros + more)))
        return NULL;
    r->total = (float *)(void *)room;
    r->image = r->total + r->len;
    r->part = r->image + r->len;
    r->zeros = memset(room + sums, 0, zeros);
    memset(r->total, 0, r->len * sizeof(*r->total));
    return room + sums + zeros;
}

static struct run run_of(const struct ddp__conv_shape *s, const void *x,
                         const void *dy)
{
    bool b = s->type == DDP_BF16;

    return (struct run){.s = s,
                        .x = x,
                        .dy = dy,
                        .b = b,
                        .c = (size_t)s->c,
                        .pitch = (size_t)s->c * (b ? 2 : 4)};
}

static void add_images(struct run *r)
{
    const struct ddp__conv_shape *s = r->s;

    for (int i = 0; i < s->n; i++) {
        add_image(r);
        r->x += (size_t)(s->h * s->w) * r->pitch;
        r->dy += (size_t)(s->oh * s->ow) * r->pitch;
    }
}

static int run(const struct ddp__conv_shape *s, const void *x, const void *dy,
               bool accumulate, float *dw)
{
    struct run r = run_of(s, x, dy);

    if (!run_new(&r, 0))
        return DDP_ENOMEM;
    add_images(&r);
    put_gradient(&r, accumulate, dw);
    return 0;
}

static int run_of_norm(const struct ddp__task *t,
                       const struct ddp__conv_shape *s)
{
    struct run r = run_of(s, t->data[DDP__NORM_CONV_BWD_W_X],
                          t->data[DDP__NORM_CONV_BWD_W_DY]);
    void *room = run_new(&r, ddp__bn_clamp_size(t));
    struct ddp__bn_clamp norm;

    if (!room)
        return DDP_ENOMEM;
    norm = ddp__bn_clamp_of(t, room);
    r.norm = &norm;
    add_images(&r);
    put_gradient(&r, t->accumulate, t->data[DDP__NORM_CONV_BWD_W_G]);
    return 0;
}

const struct ddp__gradient ddp__depthwise_wgrad_rows = {
    .name = "depthwise weight gradient by rows",
    .fits = fits,
    .run = run,
    .run_of_norm = run_of_norm};

#endif
