/* pool_unit.h - channels of pooling layers in vectors, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Channels go through in units of 32, the last ones under a mask.  Of bf16 the
 * even ones are in one vector, the odd ones in another: a pixel's unit is then
 * a vector in memory, and the upper halves of two in registers.
 */
#ifndef DDP_POOL_UNIT_H
#define DDP_POOL_UNIT_H

#include "pool.h"
#include "store.h"
#include "thread.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define DDP__POOL_V16

/* Kernels of f32 convert nothing to bf16: they need no avx512bf16. */
#define DDP__POOL_ISA                                                          \
    target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma")
#define DDP__POOL_TARGET __attribute__((DDP__POOL_ISA))
#define DDP__POOL_INLINE                                                       \
    static inline __attribute__((always_inline, DDP__POOL_ISA))

enum {
    DDP__POOL_UNIT = 32,
    DDP__POOL_MOST = 2,       /* units at a time, to wait for no addition */
    DDP__POOL_AHEAD = 4 << 10 /* bytes; 8 Ki: up to 24 % slower */
};

/* Whether `len` values at y go past the caches. */
static inline bool ddp__pool_streams(const struct ddp__pooling *g,
                                     const void *y, size_t len)
{
    return ddp__streams(len, g->b) && g->c % DDP__POOL_UNIT == 0 &&
           (uintptr_t)y % 64 == 0;
}

/* ---- units -------------------------------------------------------------- */

typedef __m512 v16;

/* How the channels of a unit are in memory; all but `mask` are constants of the
 * loops. */
struct ddp__unit {
    bool b, whole, stream;
    __mmask32 mask; /* of those there are, unless whole */
};

/* Processors see too late that several rows are read: what comes next is
 * fetched here. */
DDP__POOL_INLINE void ddp__unit_load(v16 v[2], const void *p, size_t i,
                                     struct ddp__unit k)
{
    const char *next = (const char *)ddp__at(p, i, k.b) + DDP__POOL_AHEAD;

    _mm_prefetch(next, _MM_HINT_T0);
    if (k.b) {
        const uint16_t *at = (const uint16_t *)p + i;
        __m512i w = k.whole ? _mm512_loadu_si512(at)
                            : _mm512_maskz_loadu_epi16(k.mask, at);

        v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(w, 16));
        v[1] = _mm512_castsi512_ps(
            _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
    } else {
        const float *at = (const float *)p + i;

        _mm_prefetch(next + 64, _MM_HINT_T0);
        v[0] = k.whole ? _mm512_loadu_ps(at)
                       : _mm512_maskz_loadu_ps((__mmask16)k.mask, at);
        v[1] = k.whole
                   ? _mm512_loadu_ps(at + 16)
                   : _mm512_maskz_loadu_ps((__mmask16)(k.mask >> 16), at + 16);
    }
}

DDP__POOL_INLINE void ddp__unit_put_bf16(uint16_t *p, __m512i w,
                                         struct ddp__unit k)
{
    if (k.stream)
        _mm512_stream_si512((void *)p, w);
    else if (k.whole)
        _mm512_storeu_si512(p, w);
    else
        _mm512_mask_storeu_epi16(p, k.mask, w);
}

/* As store.c: the processor rounds numbers below 2^-126 to 0. */
DDP__POOL_INLINE __m512i ddp__unit_round_bf16(const v16 v[2])
{
    const __m512i turns = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
        6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);

    return _mm512_permutexvar_epi16(turns,
                                    (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]));
}

/* Of what ddp__unit_load() made of them. */
DDP__POOL_INLINE __m512i ddp__unit_exact_bf16(const v16 v[2])
{
    return _mm512_mask_blend_epi16(
        0xaaaaaaaa, _mm512_srli_epi32(_mm512_castps_si512(v[0]), 16),
        _mm512_castps_si512(v[1]));
}

DDP__POOL_INLINE void ddp__unit_put_f32(float *p, v16 v, struct ddp__unit k,
                                        __mmask16 mask)
{
    if (k.stream)
        _mm512_stream_ps(p, v);
    else if (k.whole)
        _mm512_storeu_ps(p, v);
    else
        _mm512_mask_storeu_ps(p, mask, v);
}

/* exact: v are values that were loaded. */
DDP__POOL_INLINE void ddp__unit_put(void *p, size_t i, const v16 v[2],
                                    struct ddp__unit k, bool exact)
{
    if (k.b) {
        ddp__unit_put_bf16(
            (uint16_t *)p + i,
            exact ? ddp__unit_exact_bf16(v) : ddp__unit_round_bf16(v), k);
    } else {
        ddp__unit_put_f32((float *)p + i, v[0], k, (__mmask16)k.mask);
        ddp__unit_put_f32((float *)p + i + 16, v[1], k,
                          (__mmask16)(k.mask >> 16));
    }
}

/* f(..., c, units, kind) for all channels, whose first is c. */
#define DDP__POOL_UNITS(channels, b, stream, f, ...)                           \
    do {                                                                       \
        size_t c = 0;                                                          \
                                                                               \
        for (; c + DDP__POOL_MOST * DDP__POOL_UNIT <= (channels);              \
             c += DDP__POOL_MOST * DDP__POOL_UNIT)                             \
            f(__VA_ARGS__, c, DDP__POOL_MOST,                                  \
              (struct ddp__unit){b, true, stream, 0});                         \
        for (; c + DDP__POOL_UNIT <= (channels); c += DDP__POOL_UNIT)          \
            f(__VA_ARGS__, c, 1, (struct ddp__unit){b, true, stream, 0});      \
        if (c < (channels))                                                    \
            f(__VA_ARGS__, c, 1,                                               \
              (struct ddp__unit){b, false, false,                              \
                                 ((__mmask32)1 << ((channels)-c)) - 1});       \
    } while (0)

/* A function of a line for each kind, and which one a task takes. */
#define DDP__POOL_KINDS(name, type)                                            \
    DDP__POOL_TARGET static void name##_f32(const type *l)                     \
    {                                                                          \
        name(l, false, false);                                                 \
    }                                                                          \
    DDP__POOL_TARGET static void name##_f32_past(const type *l)                \
    {                                                                          \
        name(l, false, true);                                                  \
    }                                                                          \
    DDP__POOL_TARGET static void name##_bf16(const type *l)                    \
    {                                                                          \
        name(l, true, false);                                                  \
    }                                                                          \
    DDP__POOL_TARGET static void name##_bf16_past(const type *l)               \
    {                                                                          \
        name(l, true, true);                                                   \
    }
#define DDP__POOL_RUN(name, b, stream, l)                                      \
    ((b)        ? (stream) ? name##_bf16_past : name##_bf16                    \
     : (stream) ? name##_f32_past                                              \
                : name##_f32)(l)

/* ---- what results are made of ------------------------------------------- */

/* A value in an image, and its place in a window or the factor it gets. */
struct ddp__pool_tap {
    size_t at;
    union {
        int32_t position;
        float factor;
    };
};

/* Result i of a row has taps end[i - 1] .. end[i] - 1. */
struct ddp__pool_list {
    int *end;
    struct ddp__pool_tap *tap;
};

static inline size_t ddp__pool_list_size(int width, int most)
{
    return ddp__align((size_t)width * sizeof(int)) +
           (size_t)width * (size_t)most * sizeof(struct ddp__pool_tap);
}

static inline struct ddp__pool_list ddp__pool_list_in(void *room, int width)
{
    return (struct ddp__pool_list){
        room, (void *)((char *)room + ddp__align((size_t)width * sizeof(int)))};
}

/* A row of results of one image. */
struct ddp__pool_line {
    const struct ddp__pool_list *row;
    int width;
    size_t c;
    const void *from;
    void *to;
    uint8_t *index; /* of `to` forward, of `from` backward; NULL: mean */
};

#endif
#endif
