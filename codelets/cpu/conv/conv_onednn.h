/* conv_onednn.h - convolutions and dense layers by oneDNN's primitives
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_CONV_ONEDNN_H
#define DDP_CPU_CONV_ONEDNN_H

#include "plan.h"

/* Operands of forward passes and data gradients: out = in * weight. */
enum {
    DDP__CONV_IN = DDP__CONV_FWD_X,
    DDP__CONV_WEIGHT = DDP__CONV_FWD_W,
    DDP__CONV_OUT = DDP__CONV_FWD_Y
};
_Static_assert((int)DDP__CONV_BWD_X_DY == (int)DDP__CONV_IN &&
                   (int)DDP__CONV_BWD_X_W == (int)DDP__CONV_WEIGHT &&
                   (int)DDP__CONV_BWD_X_DX == (int)DDP__CONV_OUT,
               "both passes run through the same functions");

/* Forward passes and data gradients: as a primitive has them; with the images
 * of narrow rows side by side; and, of a stride, one for each phase. */
int ddp__conv_primitive(const struct ddp__task *t, struct ddp__plan *p);
int ddp__conv_strip(const struct ddp__task *t, struct ddp__plan *p);
int ddp__conv_phases(const struct ddp__task *t, struct ddp__plan *p);

/* Gradients of weights and bias. */
int ddp__conv_gradient(const struct ddp__task *t, struct ddp__plan *p);

#endif
