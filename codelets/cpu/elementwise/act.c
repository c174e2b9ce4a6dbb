/* act.c - elementwise activations and sums of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core (AVX-512) under load, 1.5 million values from memory
 * (tests/kernelbench act), milliseconds of oneDNN 2.6's eltwise and here; f32
 * forward, backward, and the same in bf16:
 *
 *     relu       0.25 0.23  0.40 0.36  0.13 0.12  0.28 0.15
 *     relu6      0.22 0.21  0.44 0.32  0.13 0.12  0.28 0.15
 *     silu       0.70 0.25  0.72 0.31  0.42 0.19  0.64 0.28
 *     sigmoid    0.39 0.24  0.39 0.32  0.36 0.19  0.28 0.19
 *     tanh       0.65 0.25  0.47 0.42  0.38 0.15  0.28 0.19
 *     gelu       0.77 0.36  1.30 0.40  0.55 0.37  0.92 0.42
 *     hardswish  0.28 0.24  0.57 0.35  0.14 0.13  0.29 0.16
 *
 * f32 runs at the speed of memory.  Here are the loops for processors without
 * AVX-512, act_units.c has those with it: by these, vectorised by a compiler,
 * tanh took 0.9 and gelu 0.8.
 *
 * Most activations of networks are in norms (bn.c), and most of those of the
 * rest are fused into convolutions.
 */
#include "config.h"

#include "act.h"
#include "act_units.h"
#include "cpu/backend.h"
#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/vector/unit_v16.h"
#include "cpu/vector/vmath.h"

/* A loop per activation and type: the macros make the wrappers. */
DDP__INLINE void forward(const void *restrict x, float *restrict y, size_t len,
                         enum ddp_act a, bool b)
{
    for (size_t i = 0; i < len; i++)
        y[i] = ddp__act(ddp__load(x, i, b), a);
}

DDP__INLINE void backward(const void *restrict s, const void *restrict dy,
                          float *restrict dx, size_t len, enum ddp_act a,
                          bool b)
{
    for (size_t i = 0; i < len; i++)
        dx[i] = ddp__act_grad(ddp__load(s, i, b), ddp__load(dy, i, b), a);
}

DDP__INLINE void sum(const void *restrict p, const void *restrict q,
                     float *restrict y, size_t len, enum ddp_act a, bool b)
{
    for (size_t i = 0; i < len; i++)
        y[i] = ddp__act(ddp__load(p, i, b) + ddp__load(q, i, b), a);
}

#define X(a)                                                                   \
    DDP__CLONES static void forward_##a##_f32(const void *x, float *y,         \
                                              size_t len)                      \
    {                                                                          \
        forward(x, y, len, a, false);                                          \
    }                                                                          \
    DDP__CLONES static void forward_##a##_bf16(const void *x, float *y,        \
                                               size_t len)                     \
    {                                                                          \
        forward(x, y, len, a, true);                                           \
    }                                                                          \
    DDP__CLONES static void backward_##a##_f32(const void *s, const void *dy,  \
                                               float *dx, size_t len)          \
    {                                                                          \
        backward(s, dy, dx, len, a, false);                                    \
    }                                                                          \
    DDP__CLONES static void backward_##a##_bf16(const void *s, const void *dy, \
                                                float *dx, size_t len)         \
    {                                                                          \
        backward(s, dy, dx, len, a, true);                                     \
    }                                                                          \
    DDP__CLONES static void sum_##a##_f32(const void *p, const void *q,        \
                                          float *y, size_t len)                \
    {                                                                          \
        sum(p, q, y, len, a, false);                                           \
    }                                                                          \
    DDP__CLONES static void sum_##a##_bf16(const void *p, const void *q,       \
                                           float *y, size_t len)               \
    {                                                                          \
        sum(p, q, y, len, a, true);                                            \
    }
DDP__CPU_ACTS(X)
#undef X

typedef void (*two_f)(const void *x, float *y, size_t len);
typedef void (*three_f)(const void *p, const void *q, float *y, size_t len);

#define X(a) [a] = {forward_##a##_f32, forward_##a##_bf16},
static const two_f forward_of[DDP_ACT_COUNT][2] = {DDP__CPU_ACTS(X)};
#undef X
#define X(a) [a] = {backward_##a##_f32, backward_##a##_bf16},
static const three_f backward_of[DDP_ACT_COUNT][2] = {DDP__CPU_ACTS(X)};
#undef X
#define X(a) [a] = {sum_##a##_f32, sum_##a##_bf16},
static const three_f sum_of[DDP_ACT_COUNT][2] = {DDP__CPU_ACTS(X)};
#undef X

/* Values that are fetched at a time, a block before they are read. */
enum { PIECE = 256 };

/* y = f(x) or f(x, z) of a block. */
static void run_block(two_f two, three_f three, const void *x, const void *z,
                      float *y, size_t len, bool b)
{
    size_t k;

    for (size_t i = 0; i < len; i += k) {
        k = len - i < PIECE ? len - i : PIECE;
        ddp__fetch(x, i + DDP__BLOCK, k, b);
        if (two) {
            two(ddp__at(x, i, b), y + i, k);
        } else {
            ddp__fetch(z, i + DDP__BLOCK, k, b);
            three(ddp__at(x, i, b), ddp__at(z, i, b), y + i, k);
        }
    }
}

/* y = f(x) or f(x, z), block by block; x may be y. */
static void by_block(two_f two, three_f three, const void *x, const void *z,
                     void *y, size_t len, bool b)
{
    float buf[DDP__BLOCK] __attribute__((aligned(64)));
    bool stream = ddp__streams(len, b) && x != y;
    size_t k;

    for (size_t i = 0; i < len; i += k) {
        float *to = b || stream ? buf : (float *)y + i;

        k = len - i < DDP__BLOCK ? len - i : DDP__BLOCK;
        run_block(two, three, ddp__at(x, i, b), z ? ddp__at(z, i, b) : NULL, to,
                  k, b);
        if (to == buf)
            ddp__store_block(ddp__to(y, i, b), buf, k, b, stream);
    }
    ddp__store_end();
}

/* y = act(x), or act(x + z) where there is a z. */
static void run_forward(enum ddp_act act, const void *x, const void *z, void *y,
                        size_t len, bool b)
{
    if (ddp__unit_v16(b))
        ddp__act_units(act, x, z, y, len, b);
    else
        by_block(z ? NULL : forward_of[act][b], sum_of[act][b], x, z, y, len,
                 b);
}

int ddp__cpu_act_fwd(const struct ddp__task *t)
{
    run_forward(t->call->act, t->data[DDP__ACT_FWD_X], NULL,
                t->data[DDP__ACT_FWD_Y], ddp__len(t, DDP__ACT_FWD_X),
                ddp__is_bf16(t, DDP__ACT_FWD_X));
    return 0;
}

int ddp__cpu_act_bwd(const struct ddp__task *t)
{
    const void *slope = t->data[DDP__ACT_BWD_SLOPE];
    const void *dy = t->data[DDP__ACT_BWD_DY];
    void *dx = t->data[DDP__ACT_BWD_DX];
    size_t len = ddp__len(t, DDP__ACT_BWD_SLOPE);
    bool b = ddp__is_bf16(t, DDP__ACT_BWD_SLOPE);

    if (ddp__unit_v16(b))
        ddp__act_grad_units(t->call->act, slope, dy, dx, len, b);
    else
        by_block(NULL, backward_of[t->call->act][b], slope, dy, dx, len, b);
    return 0;
}

int ddp__cpu_add(const struct ddp__task *t)
{
    run_forward(t->call->act, t->data[DDP__ADD_A], t->data[DDP__ADD_B],
                t->data[DDP__ADD_Y], ddp__len(t, DDP__ADD_A),
                ddp__is_bf16(t, DDP__ADD_A));
    return 0;
}

DDP__CLONES void ddp__cpu_add_f32(float *restrict dst,
                                  const float *restrict src, size_t len)
{
    for (size_t i = 0; i < len; i++)
        dst[i] += src[i];
}

void ddp__cpu_add_values(void *dst, const void *src, size_t len, bool b)
{
    if (b)
        run_forward(DDP_IDENTITY, dst, src, dst, len, true);
    else
        ddp__cpu_add_f32(dst, src, len);
}

int ddp__cpu_acc(const struct ddp__task *t)
{
    ddp__cpu_add_values(t->data[DDP__ACC_DST], t->data[DDP__ACC_SRC],
                        ddp__len(t, DDP__ACC_DST),
                        ddp__is_bf16(t, DDP__ACC_DST));
    return 0;
}

int ddp__cpu_merge(const struct ddp__task *t)
{
    ddp__cpu_add_f32(t->data[DDP__MERGE_DST], t->data[DDP__MERGE_SRC],
                     ddp__len(t, DDP__MERGE_DST));
    return 0;
}

int ddp__cpu_merge_stats(const struct ddp__task *t)
{
    double *dst = t->data[DDP__MERGE_STATS_DST];
    const double *src = t->data[DDP__MERGE_STATS_SRC];

    for (size_t i = 0; i < ddp__len(t, DDP__MERGE_STATS_DST); i++)
        dst[i] += src[i];
    return 0;
}
