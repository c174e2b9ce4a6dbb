/* wino_lanes.c - which vectors Winograd's convolutions have here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/isa.h"
#include "wino_lanes.h"

int ddp__wino_lanes(void)
{
    return ddp__avx512_here() ? 16 : ddp__avx2_here() ? 8 : 0;
}
