/* patch.h - convolutions of small images as products of matrices
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A patch is what the taps of one output see of one group of channels.  With a
 * row for each output of all samples, the patches P make a dense layer of the
 * convolution, for each group:
 *
 *     Y = P W',   dP = dY W,   dW = dY' P
 *
 * Taps that meet only padding are left out.  If there is one output, and its
 * taps see all of the image, P is x itself.  Few rows need no patches
 * (skinny.h).
 */
#ifndef DDP_PATCH_H
#define DDP_PATCH_H

#include "cpu/conv/shape.h"

struct ddp__patch {
    struct ddp__conv_shape layer; /* of all groups */
    int y, x, height, width;      /* the taps that meet the image */
    bool is_x;
    bool is_skinny; /* few rows, of all taps: weights are read in place */
};

/* Whether this is faster than a convolution, too: there are few outputs, or one
 * of which half of the taps meet only padding and no patch is to be copied. */
bool ddp__patch_pays(const struct ddp__conv_shape *s);

struct ddp__patch ddp__patch_of(const struct ddp__conv_shape *s);

/* The dense layer of one group, for n samples of the convolution. */
struct ddp__conv_shape ddp__patch_product(const struct ddp__patch *p, int n);

/* Channels of a group, and a patch's values. */
static inline size_t ddp__patch_in(const struct ddp__patch *p)
{
    return (size_t)(p->layer.c / p->layer.conv.groups);
}

static inline size_t ddp__patch_out(const struct ddp__patch *p)
{
    return (size_t)(p->layer.o / p->layer.conv.groups);
}

static inline size_t ddp__patch_len(const struct ddp__patch *p)
{
    return (size_t)(p->height * p->width) * ddp__patch_in(p);
}

/* All pixels that the taps of all outputs of one image see, in the order of the
 * patches; -1: padding. */
void ddp__patch_list_pixels(const struct ddp__patch *p, int *pixel);
size_t ddp__patch_pixels(const struct ddp__patch *p); /* how many */

#endif
