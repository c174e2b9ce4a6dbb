/* wino_square.h - filters of 3x3, among Winograd's
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_SQUARE_H
#define DDP_CPU_WINO_SQUARE_H

#include "wino_kind.h"

/* 3x3 in f32 and bf16, with AVX-512. */
DDP__X86_ONLY extern const struct ddp__wino_kind ddp__wino_square[2];

#endif
