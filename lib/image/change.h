/* change.h - the operations of augmentation policies on a sample
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHANGE_H
#define DDP_CHANGE_H

#include "ddp.h"

enum ddp__change_kind {
    DDP__NO_CHANGE,
    DDP__SHEAR_X, /* by a share of the other side */
    DDP__SHEAR_Y,
    DDP__TRANSLATE_X, /* by pixels */
    DDP__TRANSLATE_Y,
    DDP__ROTATE,       /* by degrees, against the clock */
    DDP__LIGHTEN,      /* ImageEnhance.Brightness, by a factor */
    DDP__COLOR,        /* ImageEnhance.Color */
    DDP__CONTRAST_BY,  /* ImageEnhance.Contrast */
    DDP__SHARPEN,      /* ImageEnhance.Sharpness */
    DDP__POSTERIZE,    /* to so many bits */
    DDP__SOLARIZE,     /* from this level on */
    DDP__SOLARIZE_ADD, /* to levels below 128 */
    DDP__AUTO_CONTRAST,
    DDP__EQUALIZE,
    DDP__INVERT,
    DDP__CHANGES
};

struct ddp__change {
    enum ddp__change_kind kind;
    double by;
};

/* How maps fill what comes from outside, and their filter. */
struct ddp__canvas {
    int size;
    enum ddp_interpolation filter;
    uint8_t fill[3];
};

/* Apply it to x (size, size, 3); room has ddp__warp_room(size) entries. */
void ddp__change_apply(const struct ddp__change *c,
                       const struct ddp__canvas *canvas, uint32_t *room,
                       uint8_t *x);

#endif
