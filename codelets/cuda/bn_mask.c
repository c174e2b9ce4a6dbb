/* bn_mask.c - whether cuDNN packs the bits of a mask as we do
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Its manual says that eight booleans make a byte, not in which order, and what
 * it writes may be read by another device or by a kernel of libddp.  So it is
 * tried on a GPU of each model, once for a type, before the first plan with a
 * mask is used: batch norm of zeros and a residual whose signs are known, and
 * its gradient.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "base/error.h"
#include "base/half.h"
#include "bn.h"
#include "dnn_tune.h"
#include "variant.h"

enum { SIDE = 4, CHANNELS = 64, LEN = SIDE * SIDE * CHANNELS };
enum { WORKSPACE = 32 << 20 };

/* A pattern that no other order of bits, pixels or channels has. */
static bool is_positive(size_t i)
{
    return (uint32_t)(i * 2654435761U) >> 31;
}

static void store_value(enum ddp_dtype type, void *to, size_t i, float f)
{
    if (type == DDP_F32)
        ((float *)to)[i] = f;
    else
        ((uint16_t *)to)[i] =
            type == DDP_BF16 ? ddp__to_bf16(f) : ddp__to_f16(f);
}

/* A plan and memory for it; scalars are 1. */
static struct ddp__cudnn_bench *open_bench(struct ddp__cudnn_target *t,
                                           const struct ddp__call *c,
                                           struct ddp__cudnn_plan **plan)
{
    struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();

    if (g)
        ddp__cuda_bn_graph(g, c, 1);
    if (ddp__cudnn_plan_get(t, g, WORKSPACE, false, plan) < 0)
        return NULL;
    return ddp__cudnn_bench_new(*plan, (*plan)->workspace);
}

/* What a tensor holds. */
struct contents {
    int tensor; /* 0: the end of a list */
    const void *data;
    size_t size;
};

/* Run it with some tensors given, and compare the result. */
static bool graph_gives(struct ddp__cudnn_target *t, const struct ddp__call *c,
                        const struct contents *in,
                        const struct contents *expected)
{
    struct ddp__cudnn_plan *plan;
    struct ddp__cudnn_bench *b = open_bench(t, c, &plan);
    void *got = calloc(1, expected->size);
    bool same = b && got;
    float ms;

    for (; same && in->tensor; in++)
        same = ddp__cudnn_bench_put(b, in->tensor, in->data, in->size) == 0;
    same = same && ddp__cudnn_bench_run(b, plan, &ms) == 0 &&
           ddp__cudnn_bench_get(b, expected->tensor, got, expected->size) == 0;
    if (same && memcmp(got, expected->data, expected->size) != 0) {
        ddp__fail(DDP_ENODEV, "cuDNN orders the bits of a mask differently");
        same = false;
    }
    ddp__cudnn_bench_free(b);
    free(got);
    return same;
}

/* Both directions: a pattern of signs must come out as our mask, and our mask
 * must let the same gradients pass. */
static bool cudnn_masks_match(struct ddp__cudnn_target *t, enum ddp_dtype type)
{
    struct ddp__call c = {
        .op = DDP__OP_BN_FWD,
        .cap = 1,
        .buf[DDP__BN_FWD_X] = {type, true, {SIDE, SIDE, CHANNELS}, 0},
        .bn = {.act = DDP_RELU, .residual = true, .mask = true}};
    size_t size = LEN * ddp__dtype_size(type);
    float r[LEN], dy[LEN], dr[LEN]; /* of the type; f32 is the largest */
    uint8_t mask[LEN / 8] = {0};

    for (size_t i = 0; i < LEN; i++) {
        bool on = is_positive(i);

        mask[i / 8] |= (uint8_t)(on << i % 8);
        store_value(type, r, i, on ? 2 : -2); /* is compared with a scalar, 1 */
        store_value(type, dy, i, 3);
        store_value(type, dr, i, on ? 3 : 0);
    }
    if (!graph_gives(t, &c, (struct contents[]){{BN_R, r, size}, {0}},
                     &(struct contents){BN_MASK, mask, sizeof(mask)}))
        return false;
    c.op = DDP__OP_BN_BWD;
    return graph_gives(t, &c,
                       (struct contents[]){{BN_DY, dy, size},
                                           {BN_MASK, mask, sizeof(mask)},
                                           {0}},
                       &(struct contents){BN_DR, dr, size});
}

bool ddp__cuda_masks_fit(struct ddp__cudnn_target *t, enum ddp_dtype type)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    enum { UNKNOWN, NO, YES };
    bool fit;

    if (t->described)
        return true; /* nothing runs there */
    pthread_mutex_lock(&lock);
    if (t->masks[type] == UNKNOWN) {
        int before = ddp__cudnn_target_enter(t);

        t->masks[type] = cudnn_masks_match(t, type) ? YES : NO;
        if (t->masks[type] == NO)
            ddp__cuda_fell_back(ddp_errmsg());
        ddp__cudnn_target_leave(t, before);
    }
    fit = t->masks[type] == YES;
    pthread_mutex_unlock(&lock);
    return fit;
}
