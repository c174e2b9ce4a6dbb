/* mask.c - a bit of each value: where relu lets gradients pass
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Bits go by way of bytes that are 0 or not, which compilers turn into vectors,
 * eight of them to or from a byte at a time by integer arithmetic.
 */
#include "config.h"

#include "bn.h"
#include "mask.h"

enum { FLAGS = 512 };

/* Byte i of the eight is bit i of the result, and the other way round: bytes of
 * a little-endian machine, as all that StarPU drives. */
static inline uint8_t pack_flags(const uint8_t *flag)
{
    uint64_t v;

    memcpy(&v, flag, sizeof(v));
    return (uint8_t)(v * UINT64_C(0x0102040810204080) >> 56);
}

static inline void unpack_flags(uint8_t bits, uint8_t *flag)
{
    uint64_t v =
        bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);

    memcpy(flag, &v, sizeof(v));
}

DDP__CLONES static void flag_positive(const float *restrict y,
                                      uint8_t *restrict flag, size_t len)
{
    for (size_t i = 0; i < len; i++)
        flag[i] = y[i] > 0;
}

DDP__INLINE void keep_flagged(const uint8_t *restrict flag,
                              const void *restrict dy, float *restrict dr,
                              size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        dr[i] = flag[i] ? ddp__load(dy, i, b) : 0;
}

DDP__CLONES static void keep_flagged_f32(const uint8_t *flag, const void *dy,
                                         float *dr, size_t len)
{
    keep_flagged(flag, dy, dr, len, false);
}

DDP__CLONES static void keep_flagged_bf16(const uint8_t *flag, const void *dy,
                                          float *dr, size_t len)
{
    keep_flagged(flag, dy, dr, len, true);
}

void ddp__mask_make(const float *y, uint8_t *mask, size_t len)
{
    uint8_t flag[FLAGS];

    for (size_t at = 0; at < len; at += FLAGS) {
        size_t n = len - at < FLAGS ? len - at : FLAGS;

        flag_positive(y + at, flag, n);
        for (size_t i = 0; i < n; i += 8)
            mask[(at + i) / 8] = pack_flags(flag + i);
    }
}

void ddp__mask_apply(const uint8_t *mask, const void *dy, float *dr, size_t len,
                     bool b)
{
    uint8_t flag[FLAGS];

    for (size_t at = 0; at < len; at += FLAGS) {
        size_t n = len - at < FLAGS ? len - at : FLAGS;

        for (size_t i = 0; i < n; i += 8)
            unpack_flags(mask[(at + i) / 8], flag + i);
        (b ? keep_flagged_bf16 : keep_flagged_f32)(flag, ddp__at(dy, at, b),
                                                   dr + at, n);
    }
}
