/* pointwise.c - 1x1 convolutions of inference, with what follows them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of pixels by a panel of channels is multiplied (gemm.c) and gets
 * its bias, residual and activation while it is in the first-level cache.
 *
 * One Zen 5 core under load, milliseconds of one image by oneDNN 2.6, and in
 * this way, with SiLU: 112x112, 16 to 96 0.43, 0.29; 56x56, 24 to 144 0.19,
 * 0.13; 14x14, 112 to 672 0.16, 0.12; 7x7, 192 to 1152 0.13, 0.09.  Without it
 * one core is as fast, but parts cost less.  Two cores with ReLU or without
 * activation: 7x7, 512 to 2048 0.36, 0.23; 14x14, 1024 to 512 0.51, 0.43; but
 * 28x28, 512 to 256 0.42, 0.48, and 56x56, 64 to 256 0.22, 0.29, before this
 * kernel fetched ahead.
 *
 * Sums get the rest in registers, but SiLU.  Two cores of an Intel Xeon with
 * AMX under load, microseconds of layers of one image in a network, before that
 * and after, with ReLU6 or without activation; by oneDNN before: 56x56, 24 to
 * 144 95, 87; 28x28, 32 to 192 40, 37; 28x28, 128 to 512 328, 303.  By this
 * kernel before: 56x56, 96 to 24 86, 70; 14x14, 64 to 384 41, 34; 14x14, 384 to
 * 64 41, 32; 7x7, 160 to 960 69, 56; 7x7, 960 to 320 154, 120.
 *
 * Blocks of large batches fetch the pixels and the residual that come next, and
 * as many rows as the second-level cache holds share a pass over many weights.
 * One such core, milliseconds of processor time of 8 images by
 * oneDNN, before that, and after; with ReLU, (+): added to a residual:
 *
 *     56x56, 64 to 256   5.7  5.5  5.3    64 to 256 (+)     7.7  8.0  5.6
 *     56x56, 256 to 64   6.0  6.7  5.6    256 to 128       10.5 11.3 10.0
 *     28x28, 512 to 128  4.6  5.6  4.9    128 to 512 (+)    5.9  6.0  4.8
 *     14x14, 1024 to 256 4.3  5.1  4.6    256 to 1024 (+)   5.6  5.1  4.7
 *     7x7, 2048 to 512   4.8  6.4  4.9    512 to 2048 (+)   5.2  4.7  4.8
 *
 * Of one image 56x56 takes 0.79 ms with 64 to 256 channels (+), by oneDNN 0.86;
 * 256 to 64 0.62, 0.66.  Two cores of a Zen 4, 16 images, of the speed of a
 * network with oneDNN's kernels for large images and without slices (slice.c),
 * with these 1.26 (MobileNetV2), 1.14 (EfficientNet-B0), 1.09 (ResNet-50), and
 * of single images 0.98, 1.03, 1.02.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/team.h"
#include "cpu/conv/infer.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act_v16.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/v16.h"
#include "gemm.h"
#include "patch.h"
#include "pixels.h"

#ifdef DDP__X86

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    ROWS = 56,       /* of a block, but of a tall one */
    STEP = 14,       /* rows that parts are made of, and products (gemm.c) */
    PART = 1 << 20,  /* products of a part, at least: some 10 us */
    AHEAD = 3072,    /* floats of x that are on their way: 12 KB */
    LIGHT = 1 << 18, /* weights that stay in the second-level cache */
    MANY_CHANNELS = 1024,  /* of a tall block */
    TALL = 5 * (LIGHT / 4) /* floats of x in it: 1.25 MiB */
};

static bool fits(const struct ddp__conv_shape *s)
{
    return ddp__pixels_fit(s) && !ddp__patch_pays(s) &&
           s->oh * s->ow >= VECTOR && ddp__infer_has(s->conv.act);
}

static void pack(const struct ddp__conv_shape *s, const float *w,
                 const float *by, int part, float *to)
{
    ddp__pixels_pack(s, w, by, false, part, to);
}

/* ---- blocks ------------------------------------------------------------- */

struct run {
    const struct ddp__conv_shape *s;
    const float *x, *w, *bias;
    float *y;
    size_t rows, c, o, all; /* all: columns of w */
    size_t bands, groups;   /* parts: of rows, of panels */
    size_t block, ahead;    /* rows of a block; floats to the pixels that are
                             * fetched with its first panel, 0: fetches says */
    float low, high;        /* of results, but with SiLU */
    bool strides;           /* x has pixels that are left out */
    bool foresees;          /* what is added is fetched before */
    bool sum, streams, fetches; /* y goes past the caches, x comes from there */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What follows the sums of a block where that is SiLU: `rows` rows of up to
 * PANEL channels from channel j on; y is the first of them. */
DDP__V16 static void finish_silu(const struct run *u, const float *from,
                                 size_t rows, size_t j, float *y)
{
    for (size_t at = 0; at < PANEL && j + at < u->o; at += VECTOR) {
        size_t left = u->o - j - at;
        __mmask16 mask = ddp__mask16(left);
        v16 bias = _mm512_maskz_loadu_ps(mask, u->bias + j + at);

        for (size_t i = 0; i < rows; i++) {
            float *to = y + i * u->o + at;
            v16 v = ADD(LOAD(from + i * PANEL + at), bias);

            if (u->sum)
                v = ADD(v, _mm512_maskz_loadu_ps(mask, to));
            v = ddp__silu_v16(v);
            if (u->streams)
                _mm512_stream_ps(to, v);
            else
                _mm512_mask_storeu_ps(to, mask, v);
        }
    }
}

/* Pixels of a block, one after the other: of strides, copies in `room`. */
static const float *rows_of_x(const struct run *u, size_t row, size_t rows,
                              float *room)
{
    const struct ddp__conv_shape *s = u->s;
    size_t ow = (size_t)s->ow, oh = (size_t)s->oh;

    if (!room)
        return u->x + row * u->c;
    for (size_t i = 0; i < rows; i++) {
        size_t at = row + i, x = at % ow * (size_t)s->conv.sw;
        size_t y = at / ow % oh * (size_t)s->conv.sh, n = at / ow / oh;

        memcpy(room + i * u->c,
               u->x + ((n * (size_t)s->h + y) * (size_t)s->w + x) * u->c,
               u->c * sizeof(*room));
    }
    return room;
}

static void multiply_silu(const struct run *u,
                          const struct ddp__gemm_product *g, size_t j, float *y)
{
    float sums[ROWS * PANEL] __attribute__((aligned(64)));

    ddp__gemm(g, sums, PANEL);
    finish_silu(u, sums, g->m, j, y);
}

/* Rows by a part's panels from `first` to before `end`, channels. */
struct block {
    const float *x; /* the first row's pixel */
    size_t row, rows, first, end;
};

/* From a panel to what is added in the next one or, after the last, in the next
 * block. */
static ptrdiff_t later(const struct run *u, const struct block *b, size_t j)
{
    if (!u->foresees)
        return 0;
    return j + PANEL < b->end ? PANEL
                              : (ptrdiff_t)(b->rows * u->o + b->first - j);
}

/* A panel of a block: channels from j on. */
static void run_panel(const struct run *u, const struct block *b, size_t j)
{
    struct ddp__gemm_product g = {
        .m = b->rows,
        .n = u->all - j < PANEL ? VECTOR : PANEL,
        .k = u->c,
        .a = b->x,
        .lda = u->c,
        .b = u->w + j * u->c,
    };
    struct ddp__gemm_finish f = {
        .bias = u->bias + j,
        .columns = u->o - j,
        .low = u->low,
        .high = u->high,
        .add = u->sum,
        .past = u->streams,
        .next = u->ahead ? b->x + (j == b->first ? u->ahead : 0) : NULL,
        .later = later(u, b, j)};
    float *y = u->y + b->row * u->o + j;

    if (u->s->conv.act == DDP_SILU)
        multiply_silu(u, &g, j, y);
    else
        ddp__gemm_finish(&g, &f, y, u->o);
}

/* Pixels of a block to come: there are too many rows to be foreseen. */
static void fetch_block(const struct run *u, size_t row)
{
    size_t end = least(row + u->block, u->rows);

    for (size_t i = row * u->c; u->fetches && i < end * u->c; i += VECTOR)
        __builtin_prefetch(u->x + i, 0, 2);
}

/* ---- parts -------------------------------------------------------------- */

static size_t part_begin(size_t count, size_t i, size_t parts)
{
    return count * i / parts;
}

static size_t steps_of(const struct run *u)
{
    return (u->rows + STEP - 1) / STEP;
}

static int run_part(void *arg, int i)
{
    const struct run *u = arg;
    size_t band = (size_t)i % u->bands, group = (size_t)i / u->bands;
    size_t last = part_begin(steps_of(u), band + 1, u->bands) * STEP;
    size_t panels = (u->all + PANEL - 1) / PANEL;
    struct block b = {.row = part_begin(steps_of(u), band, u->bands) * STEP,
                      .first = part_begin(panels, group, u->groups) * PANEL,
                      .end = part_begin(panels, group + 1, u->groups) * PANEL};
    float *room = NULL;

    if (u->strides && !(room = ddp__scratch(u->block * u->c * sizeof(*room))))
        return DDP_ENOMEM;
    for (last = least(last, u->rows); b.row < last; b.row += b.rows) {
        b.rows = least(last - b.row, u->block);
        b.x = rows_of_x(u, b.row, b.rows, room);
        fetch_block(u, b.row + b.rows);
        for (size_t j = b.first; j < b.end; j += PANEL)
            run_panel(u, &b, j);
    }
    if (u->streams)
        ddp__store_end();
    return 0;
}

/* Each part reads the weights of its panels and the pixels of its rows: what is
 * more than the other is cut.  Two workers share an odd number of panels in
 * halves of rows. */
static void cut(struct run *u, size_t parts)
{
    size_t panels = (u->all + PANEL - 1) / PANEL, steps = steps_of(u);

    if (u->c * u->o > u->rows * (u->c + u->o)) {
        u->groups = panels <= 2 * parts ? panels : parts;
        u->bands = parts > 1 && u->groups % 2 ? least(2, steps) : 1;
    } else {
        u->bands = least(parts, steps);
        u->groups = least(parts / u->bands, panels);
    }
}

/* How operands come from memory and results get there.  What is added is in
 * the caches, where results replace it. */
static void choose_memory(struct run *u)
{
    bool light = u->c * u->o <= LIGHT, silu = u->s->conv.act == DDP_SILU;

    u->block = ROWS;
    u->streams = u->o % VECTOR == 0 && ddp__streams_v16(u->y, u->rows * u->o);
    u->strides = u->s->conv.sh > 1 || u->s->conv.sw > 1;
    u->fetches = !u->strides && ddp__streams(u->rows * u->c, false);
    if (silu)
        return;
    u->foresees = u->sum;
    u->streams &= !u->sum;
    if (u->fetches && light) {
        u->ahead = (AHEAD / u->c + 1) * u->c;
        u->fetches = false;
    } else if (!u->strides && !light && u->c >= MANY_CHANNELS) {
        u->block = TALL / u->c / STEP * STEP;
        u->fetches = false;
    }
}

static int run(const struct ddp__conv_shape *s, const float *x,
               const float *packed, const float *bias, float *y)
{
    struct run u = {.s = s,
                    .x = x,
                    .w = packed,
                    .bias = bias,
                    .y = y,
                    .rows = (size_t)s->n * (size_t)s->oh * (size_t)s->ow,
                    .c = (size_t)s->c,
                    .o = (size_t)s->o,
                    .all = ddp__pixels_columns(s),
                    .low = s->conv.act == DDP_IDENTITY ? -INFINITY : 0,
                    .high = s->conv.act == DDP_RELU6 ? 6 : INFINITY,
                    .sum = s->sum};
    int parts = ddp__team_parts(u.rows * u.all * (u.c + 64), PART);

    choose_memory(&u);
    cut(&u, (size_t)parts);
    return ddp__team_each((int)(u.bands * u.groups), run_part, &u);
}

const struct ddp__infer ddp__pointwise = {.name = "products of pixels",
                                          .fits = fits,
                                          .packed_size =
                                              ddp__pixels_packed_size,
                                          .parts = ddp__pixels_parts,
                                          .pack = pack,
                                          .run = run};

#endif
