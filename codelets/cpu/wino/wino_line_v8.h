/* wino_line_v8.h - filters of one row or column, among Winograd's, with AVX2
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_WINO_LINE_V8_H
#define DDP_CPU_WINO_LINE_V8_H

#include "wino_kind.h"

/* 7 and 3 taps in f32, across and down. */
DDP__X86_ONLY extern const struct ddp__wino_kind ddp__wino_line_v8[4];

#endif
