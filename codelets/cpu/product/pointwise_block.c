/* pointwise_block.c - some pixels of a 1x1 convolution of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block of pixels is multiplied by a panel of channels (gemm.c), whose sums
 * get bias, residual and activation in registers; SiLU, in the first-level
 * cache.
 */
#include "config.h"

#include <string.h>

#include "cpu/elementwise/act_v16.h"
#include "cpu/vector/v16.h"
#include "gemm.h"
#include "pointwise_block.h"

#ifdef DDP__X86

enum { VECTOR = DDP__GEMM_VECTOR, PANEL = DDP__GEMM_PANEL };

/* ---- pixels ------------------------------------------------------------- */

/* Pixels of a block, one after the other: of strides, copies in `room`. */
static const float *pixels_of(const struct ddp__pointwise_run *u,
                              const struct ddp__pointwise_block *b, float *room)
{
    const struct ddp__conv_shape *s = u->s;
    size_t ow = (size_t)s->ow, oh = (size_t)s->oh;

    if (!room)
        return u->x + b->row * u->c;
    for (size_t i = 0; i < b->rows; i++) {
        size_t at = b->row + i, x = at % ow * (size_t)s->conv.sw;
        size_t y = at / ow % oh * (size_t)s->conv.sh, n = at / ow / oh;

        memcpy(room + i * u->c,
               u->x + ((n * (size_t)s->h + y) * (size_t)s->w + x) * u->c,
               u->c * sizeof(*room));
    }
    return room;
}

/* Pixels of a block to come: there are too many rows to be foreseen. */
static void fetch_block(const struct ddp__pointwise_run *u, size_t row)
{
    size_t end = row + u->block < u->rows ? row + u->block : u->rows;

    for (size_t i = row * u->c; u->fetches && i < end * u->c; i += VECTOR)
        __builtin_prefetch(u->x + i, 0, 2);
}

/* ---- panels ------------------------------------------------------------- */

/* What follows the sums of a block where that is SiLU: `rows` rows of up to
 * PANEL channels from channel j on; y is the first of them. */
DDP__V16 static void finish_silu(const struct ddp__pointwise_run *u,
                                 const float *from, size_t rows, size_t j,
                                 float *y)
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

static void multiply_silu(const struct ddp__pointwise_run *u,
                          const struct ddp__gemm_product *g, size_t j, float *y)
{
    float sums[DDP__POINTWISE_ROWS * PANEL] __attribute__((aligned(64)));

    ddp__gemm(g, sums, PANEL);
    finish_silu(u, sums, g->m, j, y);
}

/* From a panel to what is added in the next one or, after the last, in the next
 * block. */
static ptrdiff_t later(const struct ddp__pointwise_run *u,
                       const struct ddp__pointwise_block *b, size_t j)
{
    if (!u->foresees)
        return 0;
    return j + PANEL < b->end ? PANEL
                              : (ptrdiff_t)(b->rows * u->o + b->first - j);
}

/* A panel of a block, whose pixels are at x: channels from j on. */
static void run_panel(const struct ddp__pointwise_run *u,
                      const struct ddp__pointwise_block *b, const float *x,
                      size_t j)
{
    struct ddp__gemm_product g = {
        .m = b->rows,
        .n = u->all - j < PANEL ? VECTOR : PANEL,
        .k = u->c,
        .a = x,
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
        .next = u->ahead ? x + (j == b->first ? u->ahead : 0) : NULL,
        .later = later(u, b, j)};
    float *y = u->y + b->row * u->o + j;

    if (u->s->conv.act == DDP_SILU)
        multiply_silu(u, &g, j, y);
    else
        ddp__gemm_finish(&g, &f, y, u->o);
}

void ddp__pointwise_block(const struct ddp__pointwise_run *u,
                          const struct ddp__pointwise_block *b, float *room)
{
    const float *x = pixels_of(u, b, room);

    fetch_block(u, b->row + b->rows);
    for (size_t j = b->first; j < b->end; j += PANEL)
        run_panel(u, b, x, j);
}

#endif
