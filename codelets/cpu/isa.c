/* isa.c - which instructions the processor has
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Kernels without oneDNN ask, too: this is in every build.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"
#ifdef HAVE_ONEDNN
#include "cpu/onednn/onednn_library.h"
#endif

/* ---- vectors ------------------------------------------------------------ */

#ifdef DDP__X86
#define HERE(name) __builtin_cpu_supports(name)
#define INTEL __builtin_cpu_is("intel")
#else
#define HERE(name) false
#define INTEL false
#endif

bool ddp__avx2_here(void)
{
    return HERE("avx2") && HERE("fma");
}

bool ddp__avx512_here(void)
{
    return HERE("avx512f") && HERE("avx512bw") && HERE("avx512dq") &&
           HERE("avx512vl") && HERE("fma");
}

bool ddp__avx512_vnni_here(void)
{
    return ddp__avx512_here() && HERE("avx512vnni");
}

bool ddp__avx512_bf16_here(void)
{
    return ddp__avx512_here() && HERE("avx512bf16");
}

bool ddp__i16_here(void)
{
    const char *text = getenv("DDP_BF16_INTEGERS");

    if (!ddp__avx512_vnni_here() || !ddp__avx512_bf16_here() || ddp__amx_here())
        return false;
    return text && *text ? strcmp(text, "0") != 0 : INTEL;
}

/* ---- tiles -------------------------------------------------------------- */

#ifdef DDP__AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Who limits oneDNN's instructions (ONEDNN_MAX_CPU_ISA) wants to see how
 * another processor does, and none has some of our kernels and others of
 * oneDNN's. */
static bool forbidden(void)
{
#ifdef HAVE_ONEDNN
    return !ddp__dnn_amx();
#else
    return false;
#endif
}

/* A process must ask the operating system before it uses tiles. */
static bool ask_for_tiles(void)
{
    const long request_permission = 0x1023, tile_data = 18;
    unsigned a, b, c, d;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 22 & 1) ||
        !(d >> 24 & 1) || !ddp__avx512_here())
        return false;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

bool ddp__amx_here(void)
{
    static int have; /* 0: not yet known, 1: no, 2: yes */
    int is = __atomic_load_n(&have, __ATOMIC_RELAXED);

    if (!is) {
        is = 1 + (ask_for_tiles() && !forbidden());
        __atomic_store_n(&have, is, __ATOMIC_RELAXED);
    }
    return is == 2;
}

#else

bool ddp__amx_here(void)
{
    return false;
}

#endif
