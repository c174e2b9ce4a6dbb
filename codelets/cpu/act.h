/* act.h - sums of activations, for other kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_ACT_H
#define DDP_CPU_ACT_H

#include <stddef.h>

/* dst += src */
void ddp__cpu_add_f32(float *dst, const float *src, size_t len);

#endif
