/* store.c - results on their way from a small f32 buffer to memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu.h"
#include "cpu/vector/v16.h"
#include "isa.h"
#include "store.h"

size_t ddp__stream_bytes = 3 << 20;

/* 3 MiB is for cores with 2 MiB of second-level cache, and scales with it.
 * Processors with less than 1 MiB have a larger share of the third level, which
 * does not count here: virtual machines report all of their host's. */
void ddp__store_init(const struct ddp__machine *m)
{
    size_t l2 = m->l2_of_core ? m->l2_of_core : 2 << 20;

    if (l2 < 1 << 20)
        l2 = 1 << 20;
    ddp__stream_bytes = l2 + l2 / 2;
}

/* ---- f32 ---------------------------------------------------------------- */

#ifdef DDP__X86
__attribute__((target("avx512f"))) static void
stream_vectors(float *dst, const float *src, size_t len)
{
    for (size_t i = 0; i < len; i += 16)
        _mm512_stream_ps(dst + i, _mm512_loadu_ps(src + i));
}

static void stream_quarters(float *dst, const float *src, size_t len)
{
    for (size_t i = 0; i < len; i += 4)
        _mm_stream_ps(dst + i, _mm_loadu_ps(src + i));
}

/* Past the caches: whole lines, what is before and after them as usual. */
static void stream_f32(float *dst, const float *src, size_t len)
{
    size_t head = ((size_t) - (uintptr_t)dst & 63) / sizeof(*dst), lines, at;

    if (head > len)
        head = len;
    lines = (len - head) & ~(size_t)15;
    at = head + lines;
    memcpy(dst, src, head * sizeof(*dst));
    (ddp__avx512_here() ? stream_vectors : stream_quarters)(dst + head,
                                                            src + head, lines);
    memcpy(dst + at, src + at, (len - at) * sizeof(*dst));
}
#else
static void stream_f32(float *dst, const float *src, size_t len)
{
    memcpy(dst, src, len * sizeof(*dst));
}
#endif

/* ---- bf16 --------------------------------------------------------------- */

DDP__CLONES static void round_bf16(uint16_t *restrict dst,
                                   const float *restrict src, size_t len)
{
    for (size_t i = 0; i < len; i++)
        dst[i] = ddp__round_bf16(src[i]);
}

#ifdef DDP__X86
/* The processor's own conversion rounds equally, except numbers below 2^-126,
 * which become 0. */
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) static void
convert_bf16(uint16_t *dst, const float *src, size_t len, bool stream)
{
    size_t head = ((size_t) - (uintptr_t)dst & 63) / sizeof(*dst);

    if (head > len)
        head = len;
    round_bf16(dst, src, head);
    for (dst += head, src += head, len -= head; len >= 32;
         dst += 32, src += 32, len -= 32) {
        __m512i v = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(src + 16),
                                                 _mm512_loadu_ps(src));

        if (stream)
            _mm512_stream_si512((void *)dst, v);
        else
            _mm512_store_si512((void *)dst, v);
    }
    round_bf16(dst, src, len);
}
#else
static void convert_bf16(uint16_t *dst, const float *src, size_t len,
                         bool stream)
{
    (void)stream;
    round_bf16(dst, src, len);
}
#endif

void ddp__store_block(void *dst, const float *src, size_t len, bool b,
                      bool stream)
{
    if (b && ddp__avx512_bf16_here())
        convert_bf16(dst, src, len, stream);
    else if (b)
        round_bf16(dst, src, len);
    else if (stream)
        stream_f32(dst, src, len);
    else
        memcpy(dst, src, len * sizeof(*src));
}

void ddp__store_end(void)
{
#ifdef DDP__X86
    _mm_sfence();
#endif
}

/* ---- the other way ------------------------------------------------------ */

DDP__CLONES void ddp__widen(const uint16_t *restrict src, size_t len,
                            float *restrict dst)
{
    for (size_t i = 0; i < len; i++)
        dst[i] = ddp__from_bf16(src[i]);
}
