/* pointwise.c - 1x1 convolutions of inference, with what follows them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A layer is blocks of pixels (pointwise_block.c) by panels of channels, which
 * workers share in parts.
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
 * Pixels that the second-level cache could hold are fetched ahead, too, since
 * the layer before wrote more than these: two cores of an Intel Xeon (AVX-512),
 * microseconds of one image in a network without and so: 112x112, 32 to 16 74,
 * 56; 56x56, 96 to 24 71, 64.
 *
 * Of one image 56x56 takes 0.79 ms with 64 to 256 channels (+), by oneDNN 0.86;
 * 256 to 64 0.62, 0.66.  Two cores of a Zen 4, 16 images, of the speed of a
 * network with oneDNN's kernels for large images and without slices (slice.c),
 * with these 1.26 (MobileNetV2), 1.14 (EfficientNet-B0), 1.09 (ResNet-50), and
 * of single images 0.98, 1.03, 1.02.
 */
#include "config.h"

#include <math.h>

#include "base/team.h"
#include "cpu/conv/infer.h"
#include "cpu/cpu.h"
#include "cpu/elementwise/act_v16.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "gemm.h"
#include "patch.h"
#include "pixels.h"
#include "pointwise_block.h"

#ifdef DDP__X86

enum {
    VECTOR = DDP__GEMM_VECTOR,
    PANEL = DDP__GEMM_PANEL,
    STEP = DDP__GEMM_ROWS, /* rows that parts are made of */
    PART = 1 << 20,        /* products of a part, at least: some 10 us */
    AHEAD = 3072,          /* floats of x that are on their way: 12 KB */
    LIGHT = 1 << 18,       /* weights that stay in the second-level cache */
    EVICTED = 3,           /* x may be out of a cache that holds it twice */
    MANY_CHANNELS = 1024,  /* of a tall block */
    TALL = 5 * (LIGHT / 4) /* floats of x in it: 1.25 MiB */
};

static bool fits(const struct ddp__conv_shape *s)
{
    return s->type == DDP_F32 && ddp__pixels_fit(s) && !ddp__patch_pays(s) &&
           s->oh * s->ow >= VECTOR && ddp__infer_has(s->conv.act);
}

static void pack(const struct ddp__conv_shape *s, const float *w,
                 const float *by, int part, float *to)
{
    ddp__pixels_pack(s, w, by, false, part, to);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- parts -------------------------------------------------------------- */

static size_t part_begin(size_t count, size_t i, size_t parts)
{
    return count * i / parts;
}

static size_t steps_of(const struct ddp__pointwise_run *u)
{
    return (u->rows + STEP - 1) / STEP;
}

static int run_part(void *arg, int i)
{
    const struct ddp__pointwise_run *u = arg;
    size_t band = (size_t)i % u->bands, group = (size_t)i / u->bands;
    size_t last = part_begin(steps_of(u), band + 1, u->bands) * STEP;
    size_t panels = (u->all + PANEL - 1) / PANEL;
    struct ddp__pointwise_block b = {
        .row = part_begin(steps_of(u), band, u->bands) * STEP,
        .first = part_begin(panels, group, u->groups) * PANEL,
        .end = part_begin(panels, group + 1, u->groups) * PANEL};
    float *room = NULL;

    if (u->strides && !(room = ddp__scratch(u->block * u->c * sizeof(*room))))
        return DDP_ENOMEM;
    for (last = least(last, u->rows); b.row < last; b.row += b.rows) {
        b.rows = least(last - b.row, u->block);
        ddp__pointwise_block(u, &b, room);
    }
    if (u->streams)
        ddp__store_end();
    return 0;
}

/* Each part reads the weights of its panels and the pixels of its rows: what is
 * more than the other is cut.  Two workers share an odd number of panels in
 * halves of rows. */
static void cut(struct ddp__pointwise_run *u, size_t parts)
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
static void choose_memory(struct ddp__pointwise_run *u)
{
    bool light = u->c * u->o <= LIGHT, silu = u->s->conv.act == DDP_SILU;

    u->block = DDP__POINTWISE_ROWS;
    u->streams = u->o % VECTOR == 0 && ddp__streams_v16(u->y, u->rows * u->o);
    u->strides = u->s->conv.sh > 1 || u->s->conv.sw > 1;
    u->fetches = !u->strides && ddp__streams(EVICTED * u->rows * u->c, false);
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
    struct ddp__pointwise_run u = {
        .s = s,
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
