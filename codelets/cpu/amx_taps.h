/* amx_taps.h - bf16 weight gradients of images of few pixels on AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AMX_TAPS_H
#define DDP_AMX_TAPS_H

#include "onednn.h"

/* Whether this is worthwhile, here. */
bool ddp__amx_taps_fits(const struct ddp__dnn_shape *s);

/* bias.h has the gradient of a bias. */
int ddp__amx_taps_run(const struct ddp__dnn_shape *s, const void *x,
                      const void *dy, bool accumulate, float *dw);

#endif
