/* skinny_lanes.c - which vectors products with few rows have here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu/isa.h"
#include "skinny_lanes.h"

int ddp__skinny_lanes(void)
{
    return ddp__avx512_here() ? 16 : ddp__avx2_here() ? 8 : 0;
}
