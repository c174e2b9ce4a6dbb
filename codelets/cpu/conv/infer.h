/* infer.h - kernels for convolutions of inference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_INFER_H
#define DDP_INFER_H

#include "shape.h"

/* A result has the same bits in any batch. */
struct ddp__infer {
    const char *name;
    /* Whether this is worthwhile, here. */
    bool (*fits)(const struct ddp__conv_shape *s);
    size_t (*packed_size)(const struct ddp__conv_shape *s);
    /* In parts; by: factors of filters, or NULL. */
    int (*parts)(const struct ddp__conv_shape *s);
    void (*pack)(const struct ddp__conv_shape *s, const float *w,
                 const float *by, int part, float *to);
    /* y = act(w * x + bias (+ y)) */
    int (*run)(const struct ddp__conv_shape *s, const float *x,
               const float *packed, const float *bias, float *y);
};

/* One per file.  They need AVX-512. */
#define DDP__INFERS(X) X(depthwise_infer) X(pointwise)

#define X(name) extern const struct ddp__infer ddp__##name;
DDP__INFERS(X)
#undef X

/* The kernel for a layer; NULL: there is none. */
const struct ddp__infer *ddp__infer_of(const struct ddp__conv_shape *s);

/* The kernels by AVX-512 have a loop for each of these. */
static inline bool ddp__infer_has(enum ddp_act act)
{
    return act == DDP_IDENTITY || act == DDP_RELU || act == DDP_RELU6 ||
           act == DDP_SILU;
}

#endif
