/* dropout.c - dropout and stochastic depth, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The mask is a function of (seed, layer, sample, element), so backward makes
 * it again instead of keeping it, and every device makes the same one.
 */
#include "config.h"
#include "backend.h"
#include "base/philox.h"
#include "ref.h"

/* Samples are known by a number, an i32 or i64. */
static int64_t sample_id(const struct ddp__task *t, size_t n)
{
    if (t->call->buf[DDP__DROPOUT_IDS].type == DDP_I32)
        return ((const int32_t *)t->data[DDP__DROPOUT_IDS])[n];
    return ((const int64_t *)t->data[DDP__DROPOUT_IDS])[n];
}

static bool is_dropped(const struct ddp__task *t, int64_t id, size_t element)
{
    size_t i = t->call->dropout.whole_sample ? 0 : element;
    struct ddp__philox r =
        ddp__dropout_bits(t->seed, t->call->dropout.layer, id, i / 4);

    return ddp__uniform(r.v[i % 4]) < t->call->dropout.p;
}

/* y = x / (1 - p), or 0 where the mask says so */
int ddp__ref_dropout(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__DROPOUT_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__DROPOUT_Y);
    size_t sample = ddp__ref_sample_len(t, DDP__DROPOUT_X);
    double keep = 1 - (double)t->call->dropout.p;

    for (size_t i = 0; i < ddp__len(t, DDP__DROPOUT_X); i++) {
        bool drop = is_dropped(t, sample_id(t, i / sample), i % sample);

        ddp__ref_write(&y, i, drop ? 0 : ddp__ref_read(&x, i) / keep);
    }
    return 0;
}
