/* order.c - the order of samples: a keyed permutation for each epoch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Feistel network over an unbalanced split of the bits, with cycle
 *          walking into 0..count-1: Black and Rogaway, "Ciphers with arbitrary
 *          finite domains", CT-RSA 2002.  Round function: Philox.
 */
#include "base/philox.h"
#include "data/order.h"

/* The top bits of the generator's upper counter words separate its uses: they
 * are 0 for the numbers of samples, which dropout uses. */
static const uint64_t key_domain = (uint64_t)2 << 62;
static const uint64_t order_domain = (uint64_t)3 << 62;

enum { ROUNDS = 8 };

static uint32_t round_bits(uint64_t key, int round, uint32_t half)
{
    return ddp__philox(key, (uint64_t)round, half).v[0];
}

/* One pass of the network over `bits` bits. */
static uint64_t feistel(uint64_t key, int bits, uint64_t x)
{
    int low_bits = bits / 2;
    uint32_t low_mask = (uint32_t)(((uint64_t)1 << low_bits) - 1);
    uint32_t high_mask = (uint32_t)(((uint64_t)1 << (bits - low_bits)) - 1);
    uint32_t low = (uint32_t)x & low_mask, high = (uint32_t)(x >> low_bits);

    for (int i = 0; i < ROUNDS; i += 2) {
        high ^= round_bits(key, i, low) & high_mask;
        low ^= round_bits(key, i + 1, high) & low_mask;
    }
    return (uint64_t)high << low_bits | low;
}

int64_t ddp__permute(uint64_t seed, int64_t epoch, int64_t count, int64_t pos)
{
    uint64_t key = ddp__key(seed, order_domain | (uint64_t)epoch, 0);
    uint64_t x = (uint64_t)pos;
    int bits = 2;

    if (count < 2)
        return 0;
    while (((uint64_t)count - 1) >> bits)
        bits++;
    do
        x = feistel(key, bits, x);
    while (x >= (uint64_t)count);
    return (int64_t)x;
}

int64_t ddp__order_index(const struct ddp__order *o, int64_t count, int64_t pos)
{
    return o->shuffle ? ddp__permute(o->seed, o->epoch, count, pos) : pos;
}

/* 0 is the key of the permutation. */
int64_t ddp__order_draw(const struct ddp__order *o, int64_t index, int64_t n)
{
    uint64_t key = ddp__key(o->seed, order_domain | (uint64_t)o->epoch,
                            1 + (uint64_t)index);

    return (int64_t)((key >> 32) * (uint64_t)n >> 32);
}

uint64_t ddp__order_key(const struct ddp__order *o, int64_t index)
{
    return ddp__key(o->seed, key_domain | (uint64_t)o->epoch, (uint64_t)index);
}
