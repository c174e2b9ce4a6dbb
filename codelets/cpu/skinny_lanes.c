/* skinny_lanes.c - which vectors products with few rows have here
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "skinny_lanes.h"
#include "skinny_v16.h"
#include "skinny_v8.h"

int ddp__skinny_lanes(void)
{
#ifdef DDP__V16
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return 16;
#endif
#ifdef DDP__SKINNY_V8
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 8;
#endif
    return 0;
}
