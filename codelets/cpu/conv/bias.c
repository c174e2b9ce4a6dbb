/* bias.c - gradients of biases, next to libddp's kernels for those of weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sums of blocks of pixels are in f32, the sum of blocks is in f64, so that
 * the error does not grow with the number of pixels.  The order depends on the
 * shape alone.
 *
 * With this pass libddp's kernels take layers with a bias where they take those
 * without.  One of two busy cores of an Intel Xeon (AVX-512, AMX), milliseconds
 * of processor time of a weight gradient by oneDNN 2.6, which adds up the bias'
 * in its kernel, and in this way:
 *
 *     3x3, 16x16, 64 to 128, 64 images       13.6  8.0, bf16  3.8 2.5
 *     3x3, 8x8, 256 to 256, 64 images        27.1 15.3, bf16 12.5 6.3
 *     3x3, 4x4, 512 to 512, 64 images        39.8 18.0, bf16 31.3 8.0
 *     3x3, 4x4, 512 to 512, 4 images          5.0  2.2, bf16  4.2 2.2
 *     3x3, 224x224, 64 to 64, 8 images        247   83, bf16   69  41
 *     3x3, 28x28, 512 to 512, 8 images        204   96, bf16   35  30
 *     3x3, 224x224, 3 to 64, 8 images        57.6 19.4, bf16 26.4 17.0
 *     1x1, 14x14, 256 to 1024, 8 images       5.5  5.6, bf16  3.3 1.9
 *     1x1, 56x56, 24 to 144, 8 images         2.8  1.5, bf16  1.5 1.5
 *     3x3 of stride 2, 128, to 28x28          15.3 13.3, bf16  4.5 3.0
 */
#include "config.h"

#include "bias.h"
#include "cpu/cpu.h"

/* Pixels of a block, of those that are added up at a time, and channels whose
 * sums are in the first-level cache. */
enum { BLOCK = 128, PIXELS = 4, MOST = 512, AHEAD = 4096 };

/* part = the sum of `len` channels over a block of rows that are o apart. */
DDP__INLINE void sum_block(const void *restrict dy, size_t rows, size_t o,
                           size_t len, bool b, float *restrict part)
{
    size_t r = 0;

    memset(part, 0, len * sizeof(*part));
    for (; r + PIXELS <= rows; r += PIXELS) {
        ddp__fetch(dy, r * o + AHEAD / (b ? 2 : 4), PIXELS * o, b);
        for (size_t i = 0; i < len; i++) {
            const void *at = ddp__at(dy, r * o + i, b);

            part[i] += (ddp__load(at, 0, b) + ddp__load(at, o, b)) +
                       (ddp__load(at, 2 * o, b) + ddp__load(at, 3 * o, b));
        }
    }
    for (; r < rows; r++)
        for (size_t i = 0; i < len; i++)
            part[i] += ddp__load(dy, r * o + i, b);
}

/* Of up to MOST channels. */
DDP__INLINE void sum_channels(const void *dy, size_t rows, size_t o, size_t len,
                              bool b, bool add, float *db)
{
    double sum[MOST];
    float part[MOST];

    for (size_t i = 0; i < len; i++)
        sum[i] = add ? (double)db[i] : 0;
    for (size_t at = 0; at < rows; at += BLOCK) {
        sum_block(ddp__at(dy, at * o, b), rows - at < BLOCK ? rows - at : BLOCK,
                  o, len, b, part);
        for (size_t i = 0; i < len; i++)
            sum[i] += (double)part[i];
    }
    for (size_t i = 0; i < len; i++)
        db[i] = (float)sum[i];
}

DDP__CLONES static void sum_f32(const void *dy, size_t rows, size_t o,
                                size_t len, bool add, float *db)
{
    sum_channels(dy, rows, o, len, false, add, db);
}

DDP__CLONES static void sum_bf16(const void *dy, size_t rows, size_t o,
                                 size_t len, bool add, float *db)
{
    sum_channels(dy, rows, o, len, true, add, db);
}

void ddp__bias_gradient(const struct ddp__conv_shape *s, const void *dy,
                        bool accumulate, float *db)
{
    size_t rows = (size_t)s->n * (size_t)s->oh * (size_t)s->ow;
    size_t o = (size_t)s->o;
    bool b = s->type == DDP_BF16;

    for (size_t i = 0; i < o; i += MOST)
        (b ? sum_bf16 : sum_f32)(ddp__at(dy, i, b), rows, o,
                                 o - i < MOST ? o - i : MOST, accumulate,
                                 db + i);
}
