/* unit_v16.c - whether the processor has what units of AVX-512 need
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "unit_v16.h"

bool ddp__unit_v16(bool b)
{
#ifdef DDP__UNIT_V16
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma") &&
           (!b || __builtin_cpu_supports("avx512bf16"));
#else
    (void)b;
    return false;
#endif
}
