/* cpu.h - what the files of codelets/cpu/ share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Loops are plain C over channels that the compiler vectorises; DDP__CLONES
 * has it do so once per level of instruction set, chosen at load time.
 * Activations are f32 or bf16: a loop is written once, with a constant `b`
 * (is bf16) that inlining resolves.
 */
#ifndef DDP_CPU_H
#define DDP_CPU_H

#include <string.h>

#include "base/clones.h"
#include "base/half.h"
#include "ops.h"

#define DDP__INLINE static inline __attribute__((always_inline))

/* ---- values ------------------------------------------------------------- */

DDP__INLINE float ddp__load(const void *p, size_t i, bool b)
{
    return b ? ddp__from_bf16(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

/* As ddp__to_bf16(), without a branch. */
DDP__INLINE uint16_t ddp__round_bf16(float f)
{
    union {
        float f;
        uint32_t u;
    } v = {f};
    uint32_t up = (v.u + 0x7fff + ((v.u >> 16) & 1)) >> 16;
    uint32_t nan = (v.u >> 16) | 0x40;

    return (uint16_t)((v.u & 0x7fffffff) > 0x7f800000 ? nan : up);
}

DDP__INLINE void ddp__store(void *p, size_t i, float f, bool b)
{
    if (b)
        ((uint16_t *)p)[i] = ddp__round_bf16(f);
    else
        ((float *)p)[i] = f;
}

DDP__INLINE const void *ddp__at(const void *p, size_t i, bool b)
{
    return (const char *)p + i * (b ? 2 : 4);
}

DDP__INLINE void *ddp__to(void *p, size_t i, bool b)
{
    return (char *)p + i * (b ? 2 : 4);
}

/* What a loop will read, len values from p + at on: processors see late that
 * several arrays are read, and begin again on each page. */
DDP__INLINE void ddp__fetch(const void *p, size_t at, size_t len, bool b)
{
    uintptr_t from = (uintptr_t)p + at * (b ? 2 : 4);
    uintptr_t end = from + len * (b ? 2 : 4);

    for (; from < end; from += 64)
        __builtin_prefetch((const void *)from);
}

static inline int ddp__min_int(int a, int b)
{
    return a < b ? a : b;
}

static inline size_t ddp__divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static inline bool ddp__is_bf16(const struct ddp__task *t, int i)
{
    return t->call->buf[i].type == DDP_BF16;
}

/* Pixels of all samples of buffer i. */
static inline size_t ddp__rows(const struct ddp__task *t, int i)
{
    const struct ddp_shape *s = &t->call->buf[i].shape;

    return (size_t)t->n * (size_t)s->h * (size_t)s->w;
}

#endif
