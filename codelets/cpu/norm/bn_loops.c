/* bn_loops.c - loops of the forward pass of batch normalisation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "bn_loops.h"
#include "cpu/vector/vmath.h"

/* x, res and y are parameters, although k has them, to be restrict. */
DDP__INLINE void normalise(const struct ddp__bn_params *p,
                           const struct ddp__bn_piece *k,
                           const void *restrict x, const void *restrict res,
                           float *restrict y, enum ddp_act act, bool residual,
                           bool b)
{
    const float *restrict mean = p->mean, *restrict a = p->a;
    const float *restrict shift = p->shift;
    size_t rows = k->rows, width = k->width, len = k->len;

    for (size_t r = 0; r < rows; r++) {
        ddp__fetch(x, (r - rows) * width, len, b);
        if (residual)
            ddp__fetch(res, (r - rows) * width, len, b);
        for (size_t i = 0; i < len; i++) {
            float v =
                (ddp__load(x, r * width + i, b) - mean[i]) * a[i] + shift[i];

            if (residual)
                v += ddp__load(res, r * width + i, b);
            y[r * width + i] = ddp__act(v, act);
        }
    }
}

/* ---- one instance of the loop for each activation, residual and type ---- */

/* The activations that may be fused.  `residual` and `b` are constants here. */
DDP__INLINE void normalise_act(const struct ddp__bn_params *p,
                               const struct ddp__bn_piece *k, enum ddp_act act,
                               bool residual, bool b)
{
    switch (act) {
    case DDP_IDENTITY:
        normalise(p, k, k->x, k->res, k->y, DDP_IDENTITY, residual, b);
        break;
    case DDP_RELU:
        normalise(p, k, k->x, k->res, k->y, DDP_RELU, residual, b);
        break;
    case DDP_RELU6:
        normalise(p, k, k->x, k->res, k->y, DDP_RELU6, residual, b);
        break;
    case DDP_SIGMOID:
        normalise(p, k, k->x, k->res, k->y, DDP_SIGMOID, residual, b);
        break;
    case DDP_TANH:
        normalise(p, k, k->x, k->res, k->y, DDP_TANH, residual, b);
        break;
    case DDP_SILU:
        normalise(p, k, k->x, k->res, k->y, DDP_SILU, residual, b);
        break;
    case DDP_HARDSWISH:
        normalise(p, k, k->x, k->res, k->y, DDP_HARDSWISH, residual, b);
        break;
    default: /* not fused */
        break;
    }
}

DDP__CLONES static void normalise_f32(const struct ddp__bn_params *p,
                                      const struct ddp__bn_piece *k,
                                      enum ddp_act act)
{
    if (k->res)
        normalise_act(p, k, act, true, false);
    else
        normalise_act(p, k, act, false, false);
}

DDP__CLONES static void normalise_bf16(const struct ddp__bn_params *p,
                                       const struct ddp__bn_piece *k,
                                       enum ddp_act act)
{
    if (k->res)
        normalise_act(p, k, act, true, true);
    else
        normalise_act(p, k, act, false, true);
}

void ddp__bn_normalise(const struct ddp__bn_params *p,
                       const struct ddp__bn_piece *k, enum ddp_act act, bool b)
{
    if (b)
        normalise_bf16(p, k, act);
    else
        normalise_f32(p, k, act);
}
