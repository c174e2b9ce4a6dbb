/* peak.c - what the arithmetic of the cores can do at most
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every core runs as many independent chains of multiply-adds as registers
 * allow, enough to hide their latency, and nothing else.
 */
#include "config.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "peak.h"
#include "ways.h"

/* run() of a way does ROUNDS rounds. */
enum { CHAINS = 14, ROUNDS = 20000 };

/* Keeps the compiler from seeing through a value in a register. */
#define HIDE(v) __asm__ volatile("" : "+x"(v))
#define HIDE512(v) __asm__ volatile("" : "+v"(v))

/* ---- any processor ------------------------------------------------------ */

WAYS_KERNEL static double plain_f32(void)
{
    enum { LANES = 64 };
    volatile float seed = 1e-3f;
    float a = seed, x[LANES] = {0};

    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < LANES; i++)
            x[i] = x[i] * a + a;
        __asm__ volatile("" ::: "memory");
    }
    seed = x[0];
    return 2.0 * ROUNDS * LANES;
}

#if defined(__x86_64__)

/* ---- AVX2 and AVX-512, f32 ---------------------------------------------- */

WAYS_KERNEL __attribute__((target("avx2,fma"))) static double avx2_f32(void)
{
    __m256 x[CHAINS], a = _mm256_set1_ps(0.5f);

    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm256_set1_ps((float)i);
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm256_fmadd_ps(x[i], a, a);
        HIDE(a);
    }
    for (int i = 0; i < CHAINS; i++)
        HIDE(x[i]);
    return 2.0 * 8 * CHAINS * ROUNDS;
}

WAYS_KERNEL __attribute__((target("avx512f"))) static double avx512_f32(void)
{
    __m512 x[CHAINS], a = _mm512_set1_ps(0.5f);

    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm512_set1_ps((float)i);
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm512_fmadd_ps(x[i], a, a);
        HIDE512(a);
    }
    for (int i = 0; i < CHAINS; i++)
        HIDE512(x[i]);
    return 2.0 * 16 * CHAINS * ROUNDS;
}

/* ---- bf16: dot products of AVX-512, integers, tiles of AMX -------------- */

static bool has_avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

WAYS_KERNEL __attribute__((target("avx512f,avx512bf16"))) static double
avx512_bf16(void)
{
    __m512 x[CHAINS];
    __m512i ones = _mm512_set1_epi16(0x3c00);
    __m512bh a = (__m512bh)ones;

    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm512_setzero_ps();
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm512_dpbf16_ps(x[i], a, a);
        HIDE512(a);
    }
    for (int i = 0; i < CHAINS; i++)
        HIDE512(x[i]);
    return 2.0 * 32 * CHAINS * ROUNDS;
}

/* Of Intel's processors AVX512_BF16 has half the speed of f32, and pairs of
 * 16-bit integers twice that: without AMX libddp multiplies these. */
static bool has_faster_i16(void)
{
    return has_avx512_bf16() && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_is("intel");
}

WAYS_KERNEL __attribute__((target("avx512f,avx512vnni"))) static double
avx512_i16(void)
{
    __m512i x[CHAINS], a = _mm512_set1_epi16(3);

    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm512_setzero_si512();
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 14
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm512_dpwssd_epi32(x[i], a, a);
        HIDE512(a);
    }
    for (int i = 0; i < CHAINS; i++)
        HIDE512(x[i]);
    return 2.0 * 32 * CHAINS * ROUNDS;
}

/* Bits of the processor (leaf 7) and the request that Linux requires before
 * tiles are used (its documentation, x86/xstate: permission for feature 18). */
static bool has_amx_bf16(void)
{
    enum { LEAF7_EDX_AMX_BF16 = 1 << 22, REQ_XCOMP_PERM = 0x1023, TILES = 18 };
    unsigned a = 7, b, c = 0, d;

    if (!has_avx512_bf16())
        return false;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (d & LEAF7_EDX_AMX_BF16) &&
           syscall(SYS_arch_prctl, REQ_XCOMP_PERM, TILES) == 0;
}

/* Eight tiles of 16 rows of 64 bytes: four sums, two of each factor. */
WAYS_KERNEL __attribute__((target("amx-tile,amx-bf16"))) static double
amx_bf16(void)
{
    struct {
        uint8_t palette, start, zero[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        shape.bytes[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("" : : "r"(&shape) : "memory"); /* all of it is read */
    _tile_loadconfig(&shape);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int r = 0; r < ROUNDS; r++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return 2.0 * 16 * 16 * 32 * 4 * ROUNDS;
}

static const struct way bf16_ways[] = {
    {"bf16 amx", has_amx_bf16, amx_bf16, NULL},
    {"i16 avx512", has_faster_i16, avx512_i16, NULL},
    {"bf16 avx512", has_avx512_bf16, avx512_bf16, NULL},
    {NULL, NULL, NULL, NULL},
};
static const struct way f32_ways[] = {
    {"f32 avx512", ways_avx512, avx512_f32, NULL},
    {"f32 avx2", ways_avx2, avx2_f32, NULL},
    {"f32 compiler", ways_always, plain_f32, NULL},
    {NULL, NULL, NULL, NULL},
};

#else

static const struct way bf16_ways[] = {{NULL, NULL, NULL, NULL}};
static const struct way f32_ways[] = {
    {"f32 compiler", ways_always, plain_f32, NULL},
    {NULL, NULL, NULL, NULL},
};

#endif

/* ---- the best that there is --------------------------------------------- */

int peak_measure(struct peak *p, enum ddp_dtype type, int cores, double seconds)
{
    const struct way *way = ways_best(type == DDP_BF16 ? bf16_ways : f32_ways);

    if (!way->base)
        return peak_measure(p, DDP_F32, cores, seconds);
    *p = (struct peak){.base = way->base, .cores = cores};
    return ways_measure(way, cores, seconds, &p->flops);
}
