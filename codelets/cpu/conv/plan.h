/* plan.h - what a convolution or dense layer keeps between its runs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Words: as on every device, a plan is what prepare makes for a call, before
 * its first task; a variant is the part of a plan that serves one number of
 * samples.
 */
#ifndef DDP_PLAN_H
#define DDP_PLAN_H

#include "cpu/onednn/onednn.h"
#include "cpu/product/patch.h"
#include "pack.h"

struct ddp__variant; /* plan_variant.h */

/* Which taps of a layer a plan computes with: its tap (i, j) is the layer's
 * (y + step_y i, x + step_x j) of `width` in a row. */
struct ddp__taps {
    int y, x, step_y, step_x, height, width;
};

/* How a plan computes, and the fields of the plan that only this way uses. */
enum ddp__way {
    /* oneDNN's primitives */
    DDP__WAY_PRIMITIVE,
    DDP__WAY_ROWS,    /* for parts of one image: rows, parts */
    DDP__WAY_STRIP,   /* for one image of all samples: gap */
    DDP__WAY_PHASES,  /* one a phase: phase */
    DDP__WAY_PATCHES, /* for a dense layer: patch, product */
    /* libddp's kernels: any pass */
    DDP__WAY_SKINNY,
    DDP__WAY_DENSE,
    DDP__WAY_DEPTHWISE,
    DDP__WAY_TAPS,
    /* forward and data gradient */
    DDP__WAY_WINO,
    DDP__WAY_THIN,
    DDP__WAY_AMX_PIXELS,
    DDP__WAY_I16,
    DDP__WAY_INFER, /* infer */
    DDP__WAY_DEPTHWISE_TRAIN,
    /* weight gradient */
    DDP__WAY_WINO_WGRAD,
    DDP__WAY_GRADIENT, /* gradient */
    DDP__WAYS
};

/* What a call keeps.  The list of variants only grows.
 *
 * The data gradient of a layer with strides falls into phases: the pixels
 * (sh i + a, sw j + b) of dx get something from every sh-th and sw-th tap
 * only, and make up the gradient of a layer without strides.
 */
struct ddp__plan {
    struct ddp__conv_shape shape; /* of the layer; n is the call's cap */
    enum ddp__conv_pass pass;
    bool transposed; /* the data gradient as a forward pass */
    enum ddp__way way;
    size_t weights; /* elements */
    pthread_mutex_t lock;
    struct ddp__variant *variant; /* owned */
    struct ddp__packs packs;
    struct ddp__packs folds; /* weights and bias with the norm's factors */
    struct ddp__taps taps;
    struct ddp__plan **phase;  /* owned; [sh][sw], NULL: no tap, all zero */
    struct ddp__plan *product; /* owned; of patches, for each group */
    struct ddp__patch patch;
    struct ddp__rows *rows; /* owned; of one image */
    int parts;              /* of rows */
    int gap;                /* pixels between images that are side by side */
    const struct ddp__infer *infer;
    const struct ddp__gradient *gradient;
};

/* Make and free the plan of a convolution or dense layer. */
int ddp__cpu_conv_prepare(const struct ddp__call *c, void **plan);
void ddp__cpu_conv_release(void *plan);

/* The plan of a call, with its way of computing; no primitive is made. */
int ddp__plan_new(const struct ddp__call *c, struct ddp__plan **out);
void ddp__plan_free(struct ddp__plan *p);

/* Elements of phase[]. */
static inline int ddp__plan_phases(const struct ddp__plan *p)
{
    return p->phase ? p->shape.conv.sh * p->shape.conv.sw : 0;
}

/* Whether the plan's taps are in another order than the weights'. */
static inline bool ddp__plan_flips(const struct ddp__plan *p)
{
    return p->transposed && p->taps.height * p->taps.width > 1;
}

#endif
