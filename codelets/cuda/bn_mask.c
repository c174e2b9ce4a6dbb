/* bn_mask.c - whether cuDNN packs the bits of a mask as we do
 *
 * Its manual says that eight booleans make a byte, not in which order, and what
 * it writes may be read by another device or by a kernel of our own.  So it is
 * tried on the GPU, once for a type, before the first plan with a mask is used:
 * batch norm of zeros and a residual whose signs are known, and its gradient.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "dnn_tune.h"
#include "variant.h"

enum { SIDE = 4, CHANNELS = 64, LEN = SIDE * SIDE * CHANNELS };
enum { WORKSPACE = 32 << 20 };

/* A pattern that no other order of bits, pixels or channels has. */
static bool positive(size_t i)
{
    return (uint32_t)(i * 2654435761U) >> 31;
}

static void put(enum ddp_dtype type, void *to, size_t i, float f)
{
    if (type == DDP_F32)
        ((float *)to)[i] = f;
    else
        ((uint16_t *)to)[i] =
            type == DDP_BF16 ? ddp__to_bf16(f) : ddp__to_f16(f);
}

/* A plan and memory for it; scalars are 1. */
static struct ddp__cudnn_bench *open_bench(const struct ddp__call *c,
                                           struct ddp__cudnn_plan **plan)
{
    struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();

    if (g)
        ddp__cuda_bn_graph(g, c, 1);
    if (ddp__cudnn_plan_get(g, WORKSPACE, false, plan) < 0)
        return NULL;
    return ddp__cudnn_bench_new((*plan)->graph, (*plan)->workspace);
}

/* Run it with some tensors given, and have a look at `size` bytes of `out`. */
static bool gives(const struct ddp__call *c, const char *names,
                  const void *const in[], const size_t in_size[], char out,
                  const void *want, size_t size)
{
    struct ddp__cudnn_plan *plan;
    struct ddp__cudnn_bench *b = open_bench(c, &plan);
    void *got = calloc(1, size);
    bool same = b && got;
    float ms;

    for (int i = 0; same && names[i]; i++)
        same = ddp__cudnn_bench_put(b, names[i], in[i], in_size[i]) == 0;
    same = same && ddp__cudnn_bench_run(b, plan, &ms) == 0 &&
           ddp__cudnn_bench_get(b, out, got, size) == 0 &&
           memcmp(got, want, size) == 0;
    ddp__cudnn_bench_free(b);
    free(got);
    return same;
}

static bool try(enum ddp_dtype type)
{
    struct ddp__call c = {
        .op = DDP__OP_BN_FWD,
        .cap = 1,
        .buf[0] = {type, true, {SIDE, SIDE, CHANNELS}, 0},
        .bn = {.act = DDP_RELU, .residual = true, .mask = true}};
    size_t size = LEN * ddp__dtype_size(type);
    float r[LEN], dy[LEN], dr[LEN]; /* of the type; f32 is the largest */
    uint8_t mask[LEN / 8] = {0};

    for (size_t i = 0; i < LEN; i++) {
        bool on = positive(i);

        mask[i / 8] |= (uint8_t)(on << i % 8);
        put(type, r, i, on ? 2 : -2); /* is compared with a scalar, 1 */
        put(type, dy, i, 3);
        put(type, dr, i, on ? 3 : 0);
    }
    if (!gives(&c, "r", (const void *[]){r}, (size_t[]){size}, 'k', mask,
               sizeof(mask)))
        return false;
    c.op = DDP__OP_BN_BWD;
    return gives(&c, "dk", (const void *[]){dy, mask},
                 (size_t[]){size, sizeof(mask)}, 'r', dr, size);
}

bool ddp__cuda_masks_fit(enum ddp_dtype type)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static enum { UNKNOWN, NO, YES } known[DDP_F16 + 1];
    bool fit;

    if (ddp__cudnn_target.described)
        return true; /* nothing runs there */
    pthread_mutex_lock(&lock);
    if (known[type] == UNKNOWN) {
        int before = ddp__cudnn_target_enter();

        known[type] = try(type) ? YES : NO;
        ddp__cudnn_target_leave(before);
    }
    fit = known[type] == YES;
    pthread_mutex_unlock(&lock);
    return fit;
}
