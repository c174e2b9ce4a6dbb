/* skinny.h - dense layers of few samples
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SKINNY_H
#define DDP_SKINNY_H

#include "onednn.h"

/* Whether s is one, in f32. */
bool ddp__skinny_fits(const struct ddp__dnn_shape *s);

/* A task of such a layer, whichever pass. */
int ddp__skinny_run(const struct ddp__task *t, const struct ddp__dnn_shape *s,
                    enum ddp__dnn_pass pass);

#endif
