/* bn.h - batch norm as a graph of cuDNN
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CUDA_BN_H
#define DDP_CUDA_BN_H

#include "dnn_graph.h"
#include "gpu/after.h"
#include "worker.h"

/* The tensors of both graphs: dy to dr are the gradient's. */
enum {
    BN_X = 1,
    BN_SCALE,
    BN_SHIFT,
    BN_EPS,
    BN_MEAN,
    BN_INV,    /* 1 / sqrt(var + eps) */
    BN_NORMED, /* between norm and residual, or relu */
    BN_R,      /* the residual */
    BN_SUM,    /* between residual and relu */
    BN_Y,
    BN_ZERO, /* what y is compared with, for the mask */
    BN_MASK,
    BN_DY,
    BN_DZ, /* the gradient of relu's input, without a residual */
    BN_DX,
    BN_DSCALE,
    BN_DSHIFT,
    BN_DR, /* the gradient of relu's input, and so of the residual */
    BN_TENSORS
};

/* The graph of BN_FWD or BN_BWD for n samples. */
void ddp__cuda_bn_graph(struct ddp__cudnn_graph *g, const struct ddp__call *c,
                        int n);

/* The plan of a call. */
int ddp__cuda_bn_prepare(const struct ddp__call *c, void **plan);

/* Give `to`, which has c and g, places for dscale and dshift that last until
 * the end of the task; once these are written, have them put into g then. */
int ddp__cuda_bn_sums(struct ddp__cuda_worker *w, struct ddp__k_bn_given *to);
void ddp__cuda_bn_put(const struct ddp__cuda_worker *w,
                      const struct ddp__k_bn_given *of);

/* At the end of a task. */
int ddp__cuda_bn_settle(void);

#endif
