/* test_cuda_after.c - the bodies of after.h, run on a CPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Bias and activation are compared with ref's activations on the same values:
 * f32 to 1e-6 relative, for expf() against exp(); bf16 to half a unit in the
 * last of its 8 bits more.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/after.h"
#include "ref/act.h"
#include "tap.h"

enum { ROWS = 5, CHANNELS = 11, LEN = ROWS * CHANNELS };

static float at(const float *f32, const uint16_t *bf16, bool half, int i)
{
    return half ? ddp__from_bf16(bf16[i]) : f32[i];
}

static void test_bias_act(enum ddp_act act, bool half, bool with_bias)
{
    float y[LEN], bias[CHANNELS], was[LEN];
    uint16_t h[LEN];
    struct ddp__k_bias_act p = {.items = (LEN + DDP__WIDTH - 1) / DDP__WIDTH,
                                .type = half ? DDP_BF16 : DDP_F32,
                                .act = act,
                                .bias = with_bias ? bias : NULL,
                                .y = half ? (void *)h : y,
                                .len = LEN,
                                .c = CHANNELS};
    int wrong = 0;

    for (int i = 0; i < LEN; i++) {
        y[i] = (float)(i * 37 % 101) * 0.2f - 10;
        h[i] = ddp__to_bf16(y[i]);
        was[i] = at(y, h, half, i);
    }
    for (int i = 0; i < CHANNELS; i++)
        bias[i] = (float)i * 0.5f - 2;
    for (unsigned i = 0; i < p.items; i++)
        ddp__k_bias_act_item(&p, i, p.type);
    for (int i = 0; i < LEN; i++) {
        double b = with_bias ? bias[i % CHANNELS] : 0;
        double want = ddp__ref_act(act, was[i] + b);
        double room = (half ? 1.0 / 256 : 0) + 1e-6;

        wrong += !(fabs(at(y, h, half, i) - want) <= room * fabs(want) + 1e-7);
    }
    is_int(wrong, 0, "activation %d, %s, %s bias", act, half ? "bf16" : "f32",
           with_bias ? "with" : "without");
}

/* Blocks of threads, for channels that do not fill the last. */
static void run(void (*block)(const struct ddp__k_bn_given *,
                              struct ddp__k_bn_var_shared *, unsigned),
                const struct ddp__k_bn_given *p)
{
    struct ddp__k_bn_var_shared shared;

    for (unsigned i = 0; i < p->blocks; i++)
        block(p, &shared, i);
}

static void test_statistics(void)
{
    enum { C = 300 };
    float var[C], inv[C], back[C];
    struct ddp__k_bn_given p = {.blocks = 2, .c = C, .eps = 1e-5f, .inv = inv};
    int wrong = 0;

    for (int i = 0; i < C; i++)
        var[i] = i == 0 ? 0 : powf(10, (float)(i % 12) - 7);
    p.var = var;
    run(ddp__k_bn_inv_block, &p);
    p.var = back;
    run(ddp__k_bn_var_block, &p);
    for (int i = 0; i < C; i++)
        wrong += !(back[i] >= 0 &&
                   fabsf(back[i] - var[i]) <= 1e-6f * (var[i] + p.eps));
    is_int(wrong, 0, "variances come back from 1 / sqrt(var + eps)");
}

/* As the second of two norms; the first has more channels than a block. */
static void put(const struct ddp__k_bn_given *p)
{
    enum { C = DDP__THREADS + 1 };
    static float v[C], g[4 * C];
    struct ddp__k_bn_var_shared shared;
    struct ddp__k_bn_puts all = {.blocks = 2 + p->blocks,
                                 .count = 2,
                                 .of = {{.blocks = 2,
                                         .c = C,
                                         .var = v,
                                         .mean = v,
                                         .dscale = v,
                                         .dshift = v,
                                         .g = g},
                                        *p}};

    for (unsigned i = 0; i < all.blocks; i++)
        ddp__k_bn_put_block(&all, &shared, i);
}

static void test_gradient(void)
{
    float mean[] = {3, -1}, var[] = {3, 0}, inv[] = {0.5f, 1},
          dscale[] = {7, 8}, dshift[] = {-4, 5}, g[8] = {0};
    const float want[] = {7, 8, -4, 5, 12, -4, 18, 0};
    struct ddp__k_bn_given p = {.blocks = 1,
                                .c = 2,
                                .n = 4,
                                .eps = 1,
                                .unbias = 1.5f,
                                .mean = mean,
                                .var = var,
                                .inv = inv,
                                .dscale = dscale,
                                .dshift = dshift,
                                .g = g};
    int wrong = 0;

    put(&p);
    p.add = true;
    put(&p);
    for (int i = 0; i < 8; i++)
        wrong += g[i] != 2 * want[i];
    is_int(wrong, 0, "g is dscale, dshift, n mean, n var; written, then added");

    p.var = NULL;
    p.add = false;
    wrong = 0;
    put(&p);
    for (int i = 0; i < 8; i++) /* powers of two: 1 / inv^2 is exact */
        wrong += g[i] != want[i];
    is_int(wrong, 0, "the same of 1 / sqrt(var + eps)");
}

int main(void)
{
    static const enum ddp_act acts[] = {DDP_IDENTITY, DDP_RELU, DDP_RELU6,
                                        DDP_SIGMOID, DDP_TANH};

    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
        for (int k = 0; k < 4; k++)
            test_bias_act(acts[i], k & 1, k & 2);
    test_statistics();
    test_gradient();
    return done_testing();
}
