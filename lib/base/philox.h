/* philox.h - counter-based random numbers: the same on every device
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11;
 *          Philox4x32 with 10 rounds.
 */
#ifndef DDP_PHILOX_H
#define DDP_PHILOX_H

#include <stdint.h>

#include "base/device.h"

struct ddp__philox {
    uint32_t v[4];
};

DDP__DEVICE struct ddp__philox ddp__philox(uint64_t key, uint64_t hi,
                                           uint64_t lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t a = (uint32_t)lo, b = (uint32_t)(lo >> 32);
    uint32_t c = (uint32_t)hi, d = (uint32_t)(hi >> 32);

    for (int i = 0; i < 10; i++) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;

        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct ddp__philox){{a, b, c, d}};
}

/* 24 bits of a word as a float in [0, 1). */
DDP__DEVICE float ddp__uniform(uint32_t u)
{
    return (float)(u >> 8) * 0x1p-24f;
}

/* The four words that decide dropout of elements 4 i .. 4 i + 3 of a sample
 * (whole samples: i = 0, first word): drop if ddp__uniform() < p. */
DDP__DEVICE struct ddp__philox ddp__dropout_bits(uint64_t seed, uint32_t layer,
                                                 int64_t id, uint64_t i)
{
    return ddp__philox(seed, (uint64_t)id, (uint64_t)layer << 40 | i);
}

/* Derive a 64-bit key from another one and a counter. */
DDP__DEVICE uint64_t ddp__key(uint64_t key, uint64_t hi, uint64_t lo)
{
    struct ddp__philox r = ddp__philox(key, hi, lo);

    return (uint64_t)r.v[1] << 32 | r.v[0];
}

#endif
