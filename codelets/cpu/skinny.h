/* skinny.h - products with few rows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_H
#define DDP_SKINNY_H

#include "onednn.h"

enum { DDP__SKINNY_MOST = 40 }; /* rows, which a convolution may have */

/* Whether s, a dense layer, is one, in f32. */
bool ddp__skinny_fits(const struct ddp__dnn_shape *s);

/* A pass of such a layer, with s->n rows, by the task of a dense layer or a
 * convolution.  x: inputs or their gradients; NULL: the task's. */
int ddp__skinny_run(const struct ddp__task *t, const struct ddp__dnn_shape *s,
                    enum ddp__dnn_pass pass, float *x);

#endif
