/* wino_square_v8.h - filters of 3x3, among Winograd's, with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_SQUARE_V8_H
#define DDP_CPU_WINO_SQUARE_V8_H

#include "wino_kind.h"

/* 3x3 in f32. */
DDP__X86_ONLY extern const struct ddp__wino_kind ddp__wino_square_v8;

#endif
