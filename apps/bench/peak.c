/* peak.c - what the cores and the memory can do at most
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Every core runs as many independent chains of multiply-adds as registers
 * allow, enough to hide their latency, and nothing else; or copies and reads
 * more than the caches hold.  Time is that of the thread, so that a neighbour
 * does not make the peak look low.
 */
#include "config.h"
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "common/app.h"
#include "common/cores.h"
#include "peak.h"

enum { CHAINS = 14, ROUNDS = 20000 };

/* An instruction set, of which run() does ROUNDS rounds and returns the
 * operations; or memory, and bytes. */
struct way {
    const char *base;
    bool (*there)(void);
    double (*run)(void);
    void (*end)(void); /* of a thread; or NULL */
};

/* Keep values in registers, in a debug build as well. */
#if defined(__clang__)
#define KERNEL __attribute__((no_sanitize("address", "undefined")))
#else
#define KERNEL                                                                 \
    __attribute__((optimize("O2"), no_sanitize("address", "undefined")))
#endif

/* Keeps the compiler from seeing through a value in a register. */
#define HIDE(v) __asm__ volatile("" : "+x"(v))
#define HIDE512(v) __asm__ volatile("" : "+v"(v))

/* ---- any processor ------------------------------------------------------ */

static bool always(void)
{
    return true;
}

KERNEL static double plain_f32(void)
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

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

KERNEL __attribute__((target("avx2,fma"))) static double avx2_f32(void)
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

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

KERNEL __attribute__((target("avx512f"))) static double avx512_f32(void)
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

/* ---- bf16: dot products of AVX-512, tiles of AMX ------------------------ */

static bool has_avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

KERNEL __attribute__((target("avx512f,avx512bf16"))) static double
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
KERNEL __attribute__((target("amx-tile,amx-bf16"))) static double amx_bf16(void)
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
    {"bf16 avx512", has_avx512_bf16, avx512_bf16, NULL},
    {NULL, NULL, NULL, NULL},
};
static const struct way f32_ways[] = {
    {"f32 avx512", has_avx512, avx512_f32, NULL},
    {"f32 avx2", has_avx2, avx2_f32, NULL},
    {"f32 compiler", always, plain_f32, NULL},
    {NULL, NULL, NULL, NULL},
};

#else

static const struct way bf16_ways[] = {{NULL, NULL, NULL, NULL}};
static const struct way f32_ways[] = {
    {"f32 compiler", always, plain_f32, NULL},
    {NULL, NULL, NULL, NULL},
};

#endif

/* ---- memory ------------------------------------------------------------- */

enum { LEAST_HALF = 32 << 20, MOST_HALF = 128 << 20, HUGE_PAGE = 2 << 20 };

/* Bytes that a core copies, to as many others: those of all cores are twice as
 * many as the third-level cache holds, if 256 MiB for each are enough. */
static size_t half;

static _Thread_local char *room; /* 2 half */

static size_t half_for(int cores)
{
    long l3 = 0;

#ifdef _SC_LEVEL3_CACHE_SIZE
    l3 = sysconf(_SC_LEVEL3_CACHE_SIZE) / cores;
#endif
    l3 = l3 < LEAST_HALF ? LEAST_HALF : l3 > MOST_HALF ? MOST_HALF : l3;
    return (size_t)l3 / HUGE_PAGE * HUGE_PAGE;
}

/* Large pages, as the library has them. */
static bool has_room(void)
{
    if (room)
        return true;
    if (!(room = aligned_alloc(HUGE_PAGE, 2 * half)))
        return false;
#ifdef MADV_HUGEPAGE
    madvise(room, 2 * half, MADV_HUGEPAGE); /* may be refused */
#endif
    /* Pages that nobody wrote are all the same one. */
    memset(room, 1, 2 * half);
    return true;
}

static double copy_bytes(void)
{
    if (!has_room())
        return 0;
    memcpy(room, room + half, half);
    return 2.0 * (double)half;
}

/* Narrow vectors would be what limits it. */
#define READER(name, ...)                                                      \
    KERNEL __VA_ARGS__ static double name(void)                                \
    {                                                                          \
        typedef uint64_t wide __attribute__((vector_size(64)));                \
        wide a = {0}, b = {0}, c = {0}, d = {0};                               \
                                                                               \
        if (!has_room())                                                       \
            return 0;                                                          \
        for (size_t i = 0; i < 2 * half / sizeof(a); i += 4) {                 \
            const wide *p = (const wide *)(const void *)room + i;              \
                                                                               \
            a ^= p[0];                                                         \
            b ^= p[1];                                                         \
            c ^= p[2];                                                         \
            d ^= p[3];                                                         \
        }                                                                      \
        a ^= b ^ c ^ d;                                                        \
        __asm__ volatile("" : : "m"(a)); /* it is needed */                    \
        return 2.0 * (double)half;                                             \
    }
READER(read_plain)
#if defined(__x86_64__)
READER(read_avx2, __attribute__((target("avx2"))))
READER(read_avx512, __attribute__((target("avx512f"))))
#endif
#undef READER

static void free_room(void)
{
    free(room);
    room = NULL;
}

static const struct way copy_way = {"copy", always, copy_bytes, free_room};
static const struct way read_ways[] = {
#if defined(__x86_64__)
    {"read, avx512", has_avx512, read_avx512, free_room},
    {"read, avx2", has_avx2, read_avx2, free_room},
#endif
    {"read", always, read_plain, free_room},
};

/* ---- all cores at once -------------------------------------------------- */

/* The threads wait until all have started, or one could not be started. */
enum { WAIT, GO, GIVE_UP };

struct core {
    const struct way *way;
    const int *signal; /* not owned */
    double seconds, rate;
    int nth;
};

static void *measure_core(void *arg)
{
    struct core *c = arg;
    double begin, now, ops = 0;
    int signal;

    app_pin(c->nth);
    while ((signal = __atomic_load_n(c->signal, __ATOMIC_ACQUIRE)) == WAIT)
        sched_yield();
    if (signal == GIVE_UP)
        return NULL;
    c->way->run(); /* the clock frequency takes a moment to rise */
    begin = app_thread_time();
    do {
        ops += c->way->run();
        now = app_thread_time();
    } while (now - begin < c->seconds);
    c->rate = ops / (now - begin);
    if (c->way->end)
        c->way->end();
    return NULL;
}

static int measure_cores(const struct way *way, int cores, double seconds,
                         double *rate)
{
    struct core *core = calloc((size_t)cores, sizeof(*core));
    pthread_t *thread = calloc((size_t)cores, sizeof(*thread));
    int n = 0, signal = WAIT;

    *rate = 0;
    for (; core && thread && n < cores; n++) {
        core[n] = (struct core){way, &signal, seconds, 0, n};
        if (pthread_create(&thread[n], NULL, measure_core, &core[n]))
            break;
    }
    __atomic_store_n(&signal, n == cores ? GO : GIVE_UP, __ATOMIC_RELEASE);
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        *rate += core[i].rate;
    }
    free(core);
    free(thread);
    return n == cores ? 0 : -1;
}

/* The first one that there is, or the end of the table. */
static const struct way *best_way(const struct way *way)
{
    while (way->base && !way->there())
        way++;
    return way;
}

int peak_measure(struct peak *p, enum ddp_dtype type, int cores, double seconds)
{
    const struct way *way = best_way(type == DDP_BF16 ? bf16_ways : f32_ways);

    if (!way->base)
        return peak_measure(p, DDP_F32, cores, seconds);
    *p = (struct peak){.base = way->base, .cores = cores};
    return measure_cores(way, cores, seconds, &p->flops);
}

int peak_memory(struct memory *m, int cores, double seconds)
{
    half = half_for(cores);
    if (measure_cores(&copy_way, cores, seconds, &m->copy) < 0 ||
        measure_cores(best_way(read_ways), cores, seconds, &m->read) < 0)
        return -1;
    return m->copy > 0 && m->read > 0 ? 0 : -1;
}

double memory_seconds(const struct memory *m, double bytes, double read)
{
    double all = bytes / m->copy, inputs = read / m->read;

    return all > inputs ? all : inputs;
}
