/* act.c - elementwise activations and sums of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * One Zen 5 core (AVX-512) under load, 1.5 million values, milliseconds of
 * oneDNN 2.6's eltwise and here; f32 forward, backward, and the same in bf16:
 *
 *     ReLU         0.10 0.29 0.05 0.30   0.16 0.21 0.08 0.08
 *     ReLU6        0.09 0.88 0.06 0.70   0.19 0.20 0.15 0.09
 *     SiLU         0.38 0.80 0.40 0.85   0.35 0.42 0.32 0.40
 *     sigmoid      0.36 0.90 0.35 0.78   0.33 0.20 0.30 0.08
 *     tanh         0.36 0.91 0.30 0.81   0.89 0.21 0.76 0.08
 *     GELU         0.45 1.03 0.45 0.93   0.77 0.80 0.71 0.77
 *     hardswish    0.10 0.87 0.09 0.80   0.23 0.24 0.17 0.17
 *
 * Both passes together are slower by oneDNN, but for GELU's, 6 to 7 % faster.
 * Most activations of networks are in norms (bn.c).
 */
#include "config.h"

#include "act.h"
#include "backend.h"
#include "cpu.h"
#include "store.h"
#include "vmath.h"

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

#define ACTS(X)                                                                \
    X(DDP_IDENTITY)                                                            \
    X(DDP_RELU)                                                                \
    X(DDP_RELU6)                                                               \
    X(DDP_SILU)                                                                \
    X(DDP_SIGMOID)                                                             \
    X(DDP_TANH)                                                                \
    X(DDP_GELU)                                                                \
    X(DDP_HARDSWISH)                                                           \
    X(DDP_HARDSIGMOID)

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
ACTS(X)
#undef X

typedef void (*two_f)(const void *x, float *y, size_t len);
typedef void (*three_f)(const void *p, const void *q, float *y, size_t len);

#define X(a) [a] = {forward_##a##_f32, forward_##a##_bf16},
static const two_f forward_of[DDP_ACT_COUNT][2] = {ACTS(X)};
#undef X
#define X(a) [a] = {backward_##a##_f32, backward_##a##_bf16},
static const three_f backward_of[DDP_ACT_COUNT][2] = {ACTS(X)};
#undef X
#define X(a) [a] = {sum_##a##_f32, sum_##a##_bf16},
static const three_f sum_of[DDP_ACT_COUNT][2] = {ACTS(X)};
#undef X

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
        if (two)
            two(ddp__at(x, i, b), to, k);
        else
            three(ddp__at(x, i, b), ddp__at(z, i, b), to, k);
        if (to == buf)
            ddp__store_block(ddp__to(y, i, b), buf, k, b, stream);
    }
    ddp__store_end();
}

int ddp__cpu_act_fwd(const struct ddp__task *t)
{
    bool b = ddp__is_bf16(t, DDP__ACT_FWD_X);

    by_block(forward_of[t->call->act][b], NULL, t->data[DDP__ACT_FWD_X], NULL,
             t->data[DDP__ACT_FWD_Y], ddp__len(t, DDP__ACT_FWD_X), b);
    return 0;
}

int ddp__cpu_act_bwd(const struct ddp__task *t)
{
    bool b = ddp__is_bf16(t, DDP__ACT_BWD_SLOPE);

    by_block(NULL, backward_of[t->call->act][b], t->data[DDP__ACT_BWD_SLOPE],
             t->data[DDP__ACT_BWD_DY], t->data[DDP__ACT_BWD_DX],
             ddp__len(t, DDP__ACT_BWD_SLOPE), b);
    return 0;
}

int ddp__cpu_add(const struct ddp__task *t)
{
    bool b = ddp__is_bf16(t, DDP__ADD_A);

    by_block(NULL, sum_of[t->call->act][b], t->data[DDP__ADD_A],
             t->data[DDP__ADD_B], t->data[DDP__ADD_Y], ddp__len(t, DDP__ADD_A),
             b);
    return 0;
}

DDP__CLONES void ddp__cpu_add_f32(float *restrict dst,
                                  const float *restrict src, size_t len)
{
    for (size_t i = 0; i < len; i++)
        dst[i] += src[i];
}

int ddp__cpu_acc(const struct ddp__task *t)
{
    if (ddp__is_bf16(t, DDP__ACC_DST))
        by_block(NULL, sum_of[DDP_IDENTITY][true], t->data[DDP__ACC_DST],
                 t->data[DDP__ACC_SRC], t->data[DDP__ACC_DST],
                 ddp__len(t, DDP__ACC_DST), true);
    else
        ddp__cpu_add_f32(t->data[DDP__ACC_DST], t->data[DDP__ACC_SRC],
                         ddp__len(t, DDP__ACC_DST));
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
