/* dropout.c - dropout and stochastic depth of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/philox.h"
#include "cpu/backend.h"
#include "cpu/cpu.h"

enum { GROUPS = 64 }; /* groups of four elements at a time */

/* keep[4 i + j]: 1 / (1 - p) or 0 for the elements from 4 first on */
DDP__CLONES static void draw_masks(uint64_t seed, uint32_t layer, int64_t id,
                                   uint64_t first, float p,
                                   float *restrict keep)
{
    uint32_t v[4][GROUPS];
    float factor = 1 / (1 - p);

    for (int i = 0; i < GROUPS; i++) {
        struct ddp__philox r =
            ddp__dropout_bits(seed, layer, id, first + (uint64_t)i);

        for (int j = 0; j < 4; j++)
            v[j][i] = r.v[j];
    }
    for (int i = 0; i < GROUPS; i++)
        for (int j = 0; j < 4; j++)
            keep[4 * i + j] = ddp__uniform(v[j][i]) < p ? 0 : factor;
}

/* A dropped NaN is 0 too. */
DDP__INLINE void multiply(const void *restrict x, const float *restrict keep,
                          void *restrict y, size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        ddp__store(y, i, keep[i] > 0 ? ddp__load(x, i, b) * keep[i] : 0, b);
}

DDP__CLONES static void multiply_f32(const void *x, const float *keep, void *y,
                                     size_t len)
{
    multiply(x, keep, y, len, false);
}

DDP__CLONES static void multiply_bf16(const void *x, const float *keep, void *y,
                                      size_t len)
{
    multiply(x, keep, y, len, true);
}

/* One sample of len elements. */
static void drop_sample(const struct ddp__task *t, int64_t id, const void *x,
                        void *y, size_t len, bool b)
{
    uint32_t layer = t->call->dropout.layer;
    float p = t->call->dropout.p, keep[4 * GROUPS];
    bool whole = t->call->dropout.whole_sample;

    if (whole) {
        struct ddp__philox r = ddp__dropout_bits(t->seed, layer, id, 0);
        float all = ddp__uniform(r.v[0]) < p ? 0 : 1 / (1 - p);

        for (int i = 0; i < 4 * GROUPS; i++)
            keep[i] = all;
    }
    for (size_t i = 0, k; i < len; i += k) {
        k = len - i < 4 * GROUPS ? len - i : 4 * GROUPS;
        if (!whole)
            draw_masks(t->seed, layer, id, i / 4, p, keep);
        (b ? multiply_bf16 : multiply_f32)(ddp__at(x, i, b), keep,
                                           ddp__to(y, i, b), k);
    }
}

int ddp__cpu_dropout(const struct ddp__task *t)
{
    size_t len = ddp__len(t, DDP__DROPOUT_X) / (size_t)t->n;
    bool b = ddp__is_bf16(t, DDP__DROPOUT_X);
    bool narrow = t->call->buf[DDP__DROPOUT_IDS].type == DDP_I32;

    for (size_t n = 0; n < (size_t)t->n; n++) {
        int64_t id = narrow ? ((const int32_t *)t->data[DDP__DROPOUT_IDS])[n]
                            : ((const int64_t *)t->data[DDP__DROPOUT_IDS])[n];

        drop_sample(t, id, ddp__at(t->data[DDP__DROPOUT_X], n * len, b),
                    ddp__to(t->data[DDP__DROPOUT_Y], n * len, b), len, b);
    }
    return 0;
}
