/* test_ref.c - ref on numbers worked out by hand: activations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * test_ops.c shows that ref's backward fits its forward; this shows that the
 * forward is what PyTorch's documentation means, on cases small enough for
 * paper.  Values are exact or f32 roundings of what is written: 1e-6.
 */
#include "config.h"
#include "base/half.h"
#include "base/philox.h"
#include "hand.h"

/* ---- random numbers ----------------------------------------------------- */

/* The known answers of the authors' own implementation (Random123). */
static void test_philox(void)
{
    static const struct {
        uint64_t key, hi, lo;
        uint32_t want[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX,
         UINT64_MAX,
         UINT64_MAX,
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < LEN(known); i++) {
        struct ddp__philox r =
            ddp__philox(known[i].key, known[i].hi, known[i].lo);

        ok(memcmp(r.v, known[i].want, sizeof(r.v)) == 0,
           "philox: known answer %zu", i);
    }
}

/* ---- bf16 --------------------------------------------------------------- */

/* 8 bits of significand: the neighbours of 1 are 1 + 2^-7 and 1 - 2^-8. */
static void test_bf16(void)
{
    float x[] = {1, 1.00390625f, 1.01171875f, 1.004f, -0.0f, INFINITY, NAN};
    float back[LEN(x)] = {0};
    uint16_t y[LEN(x)] = {0};
    struct ddp__call c = {
        .buf = {image(1, 1, 7), of_type(DDP_BF16, image(1, 1, 7))}};

    RUN(INPUT_F32, &c, 1, x, y);
    for (size_t i = 0; i < LEN(x); i++)
        back[i] = ddp__from_bf16(y[i]);
    ok(IS(back, 1, 1, 1.015625f, 1.0078125f) && y[4] == 0x8000 &&
           y[5] == 0x7f80 && isnan(back[6]),
       "bf16: halves go to even, zeros keep their sign, NaN remains NaN");
}

/* ---- f16 ---------------------------------------------------------------- */

/* The definition: 2^(e - 15) (1 + m / 2^10), below 2^-14 m / 2^24. */
static double f16_value(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31  ? (m ? NAN : INFINITY)
               : e == 0 ? ldexp(m, -24)
                        : ldexp(1024 + m, e - 25);

    return h >> 15 ? -v : v;
}

static bool rounds(double x, uint16_t h)
{
    return ddp__to_f16((float)x) == h && ddp__to_f16((float)-x) == (h | 0x8000);
}

/* All 2^16 numbers; and between each two neighbours the middle, which goes to
 * the even one, and the f32 numbers next to it on both sides.  Beyond the
 * largest, 65504, comes what would be 65536. */
static void test_f16(void)
{
    int bad = 0, astray = 0;

    for (int h = 0; h < 0x10000; h++) {
        double want = f16_value((uint16_t)h);
        float got = ddp__from_f16((uint16_t)h);

        bad += isnan(want) ? !isnan(got) : !(got == want);
        bad += isnan(want) ? !isnan(ddp__from_f16(ddp__to_f16(got)))
                           : ddp__to_f16(got) != h;
    }
    is_int(bad, 0, "f16: all numbers to f32 and back");
    for (int h = 0; h < 0x7c00; h++) {
        double next = h == 0x7bff ? 65536 : f16_value((uint16_t)(h + 1));
        float middle = (float)((f16_value((uint16_t)h) + next) / 2);

        astray += !rounds(middle, (uint16_t)(h + (h & 1)));
        astray += !rounds(nextafterf(middle, 0), (uint16_t)h);
        astray += !rounds(nextafterf(middle, INFINITY), (uint16_t)(h + 1));
    }
    is_int(astray, 0, "f16: rounds to the nearest, a middle to the even one");
    ok(rounds(INFINITY, 0x7c00) && rounds(1e30, 0x7c00) && rounds(1e-30, 0) &&
           rounds(0, 0),
       "f16: too large is infinite, too small is 0");
    ok(isnan(ddp__from_f16(ddp__to_f16(NAN))), "f16: NaN remains NaN");
}

/* ---- input -------------------------------------------------------------- */

static void test_input(void)
{
    uint8_t x[] = {0, 255, 51, 51, 255, 0};
    float y[6] = {0};
    struct ddp__call c = {
        .buf = {of_type(DDP_U8, image(1, 1, 3)), image(1, 1, 3)},
        .input = {{0, 0.5f, 0.2f}, {1, 0.5f, 0.1f}}};

    RUN(INPUT_U8, &c, 2, x, y);
    ok(IS(y, 0, 1, 0, 0.2f, 1, -2), "input_u8: (x / 255 - mean) / std");
}

/* ---- convolutions ------------------------------------------------------- */

static void test_conv(void)
{
    float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4, 0.5f};
    float dy[] = {1, 10, 100, 1000}, y[4] = {0}, dx[9] = {0}, g[5] = {0};
    struct ddp__call c = {
        .buf = {image(3, 3, 1), vector(5), image(2, 2, 1)},
        .conv = {2, 2, 1, 1, 1, 1, .groups = 1, .bias = true}};

    RUN(CONV_FWD, &c, 1, x, w, y);
    ok(IS(y, 37.5f, 47.5f, 67.5f, 77.5f), "conv: 2x2 on 3x3, not flipped");
    c.buf[DDP__CONV_BWD_X_DY] = image(2, 2, 1);
    c.buf[DDP__CONV_BWD_X_DX] = image(3, 3, 1);
    RUN(CONV_BWD_X, &c, 1, dy, w, dx);
    ok(IS(dx, 1, 12, 20, 103, 1234, 2040, 300, 3400, 4000),
       "conv: the gradient of x is dy spread by the kernel");
    c.sum = true;
    RUN(CONV_BWD_X, &c, 1, dy, w, dx);
    c.sum = false;
    ok(IS(dx, 2, 24, 40, 206, 2468, 4080, 600, 6800, 8000),
       "conv: it is added when the call is a sum");
    c.buf[DDP__CONV_BWD_W_X] = image(3, 3, 1);
    c.buf[DDP__CONV_BWD_W_DY] = image(2, 2, 1);
    c.buf[DDP__CONV_BWD_W_G] = vector(5);
    RUN(CONV_BWD_W, &c, 1, x, dy, g);
    ok(IS(g, 5421, 6532, 8754, 9865, 1111), "conv: the gradient of w and b");
    RUN_ADDING(CONV_BWD_W, &c, 1, x, dy, g);
    ok(IS(g, 10842, 13064, 17508, 19730, 2222),
       "conv: gradients are added when the task accumulates");
}

static void test_conv_padding(void)
{
    float x[] = {1, 2, 3, 4}, w[] = {1, 10, 100, 1000}, y[4] = {0};
    struct ddp__call c = {.buf = {image(2, 2, 1), vector(4), image(2, 2, 1)},
                          .conv = {2, 2, 1, 1, 1, 1, .groups = 1}};

    c.conv.top = c.conv.right = 1;
    RUN(CONV_FWD, &c, 1, x, w, y);
    ok(IS(y, 2100, 200, 4321, 402), "conv: padding at the top and the right");
    c.conv.top = c.conv.right = 0;
    c.conv.bottom = c.conv.left = 1;
    RUN(CONV_FWD, &c, 1, x, w, y);
    ok(IS(y, 3010, 4321, 30, 43), "conv: padding at the bottom and the left");
}

static void test_conv_steps(void)
{
    float x[] = {1, 2, 3, 4, 5, 6, 7}, w[] = {1, 10}, y[4] = {0};
    struct ddp__call c = {.buf = {image(1, 7, 1), vector(2), image(1, 2, 1)},
                          .conv = {1, 2, 1, 3, 1, 2, .groups = 1}};

    RUN(CONV_FWD, &c, 1, x, w, y);
    ok(IS(y, 31, 64), "conv: stride 3 and dilation 2");
}

/* Two pixels of four channels in two groups, two outputs of each. */
static void test_conv_groups(void)
{
    float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0};
    float w[] = {1, 10, 100, 1000, 1, 10, 2, 0};
    struct ddp__call c = {.buf = {image(1, 2, 4), vector(8), image(1, 2, 4)},
                          .conv = {1, 1, 1, 1, 1, 1, .groups = 2}};

    RUN(CONV_FWD, &c, 1, x, w, y);
    ok(IS(y, 21, 2100, 43, 6, 65, 6500, 87, 14),
       "conv: a group sees its own channels");
}

/* As test_bn() has it: a value x becomes 4 (x - 5) / sqrt(6 + 3) + 1. */
static void test_conv_norm(void)
{
    float x[] = {1, 3}, w[] = {2, 3}, y[] = {1, -20};
    float norm[] = {4, 1, 5, 6};
    struct ddp__call c = {
        .buf = {image(1, 2, 1), vector(2), image(1, 2, 1), vector(4)},
        .conv = {1, 1, 1, 1, 1, 1, .groups = 1}};

    c.conv.bias = true;
    c.conv.eps = 3;
    RUN(CONV_NORM, &c, 1, x, w, y, norm);
    ok(IS(y, 1, 19 / 3.0f), "conv: with a norm, by its running statistics");
    c.sum = true;
    c.conv.act = DDP_RELU6;
    y[0] = 2;
    y[1] = -20;
    RUN(CONV_NORM, &c, 1, x, w, y, norm);
    ok(IS(y, 3, 0), "conv: with a norm, y is added before the activation");
}

/* ---- dense -------------------------------------------------------------- */

static void test_dense(void)
{
    float x[] = {1, 2, 3, -1, 0, 1}, w[] = {1, 10, 100, 1, -1, 1, 0.5f, -3};
    float y[4] = {0}, dy[] = {1, 2, 3, 4}, dx[6] = {0}, g[8] = {0};
    struct ddp__call c = {.buf = {image(1, 1, 3), vector(8), image(1, 1, 2)},
                          .dense = {true, DDP_RELU}};

    RUN(DENSE_FWD, &c, 2, x, w, y);
    ok(IS(y, 321.5f, 0, 99.5f, 0), "dense: W x + b, then relu");
    c.buf[DDP__DENSE_BWD_X_DY] = image(1, 1, 2);
    c.buf[DDP__DENSE_BWD_X_DX] = image(1, 1, 3);
    RUN(DENSE_BWD_X, &c, 2, dy, w, dx);
    ok(IS(dx, 3, 8, 102, 7, 26, 304), "dense: the gradient of x");
    c.buf[DDP__DENSE_BWD_W_X] = image(1, 1, 3);
    c.buf[DDP__DENSE_BWD_W_DY] = image(1, 1, 2);
    c.buf[DDP__DENSE_BWD_W_G] = vector(8);
    RUN(DENSE_BWD_W, &c, 2, x, dy, g);
    ok(IS(g, -2, 2, 6, -2, 4, 10, 4, 6), "dense: the gradient of w and b");
}

/* ---- batch norm --------------------------------------------------------- */

/* Values 1 and 3: mean 2, variance 1 (unbiased 2); with eps 3 the factor is
 * 1/2, so xhat is -+1/2. */
static void test_bn(void)
{
    float x[] = {1, 3}, w[] = {4, 1, 5, 6}, y[2] = {0}, stat[2] = {0},
          r[] = {-5, 1};
    float dy[] = {1, 2}, dx[2] = {0}, g[4] = {0};
    struct ddp__call c = {.buf = {image(1, 1, 1), vector(4), image(1, 1, 1),
                                  vector(2), image(1, 1, 1)},
                          .bn = {.eps = 3}};

    RUN(BN_FWD, &c, 2, x, w, y, stat);
    ok(IS(y, -1, 3) && IS(stat, 2, 1), "bn: y and the statistics");
    c.bn.act = DDP_RELU;
    c.bn.residual = true;
    RUN(BN_FWD, &c, 2, x, w, y, stat, r);
    ok(IS(y, 0, 4), "bn: the residual comes before the activation");
    c.bn.act = DDP_IDENTITY;
    c.bn.residual = false;
    w[3] = 1;
    RUN(BN_EVAL, &c, 2, x, w, y);
    ok(IS(y, -7, -3), "bn: evaluation uses the running statistics");

    c = (struct ddp__call){.bn = {.eps = 3}};
    for (int i = 0; i < 3; i++)
        c.buf[i] = image(1, 1, 1);
    c.buf[DDP__BN_BWD_DX] = image(1, 1, 1);
    RUN(BN_BWD, &c, 2, x, y, dy, w, stat, g, dx);
    ok(IS(g, 0.5f, 3, 4, 4),
       "bn: gradients of scale and shift; n mean, n unbiased variance");
    /* scale / 2 (dy - 3/2 - xhat / 4) = 2 (-+1/2 +- 1/8) */
    ok(IS(dx, -0.75f, 0.75f), "bn: the gradient of x");
}

/* The same two values as pixels of one sample: statistics count once. */
static void test_bn_pixels(void)
{
    float x[] = {1, 3}, w[] = {4, 1, 5, 6}, stat[] = {2, 1}, dy[] = {1, 2};
    float g[] = {1, 1, 1, 1}, dx[2] = {0};
    struct ddp__call c = {.buf = {image(1, 2, 1), image(1, 2, 1),
                                  image(1, 2, 1), vector(4), vector(2),
                                  vector(4), image(1, 2, 1)},
                          .bn = {.eps = 3}};

    RUN_ADDING(BN_BWD, &c, 1, x, x, dy, w, stat, g, dx);
    ok(IS(g, 1.5f, 4, 3, 3), "bn: statistics times samples, not pixels; added");
}

/* The two values of test_bn() in two sub-batches, one after the other. */
static void test_bn_sync(void)
{
    float x[] = {1, 3}, w[] = {4, 1, 5, 6}, dy[] = {1, 2}, dx[2] = {0};
    float y[2] = {0}, stat[3] = {0}, g[4] = {0}, r[] = {-5, 1}, dr[2] = {0};
    double sum[3] = {0}, dsum[2] = {0};
    struct ddp__call c = {.bn = {.eps = 3}};

    for (int i = 0; i < DDP_MAX_BUFFERS; i++)
        c.buf[i] = image(1, 1, 1);
    RUN(BN_SUM, &c, 1, &x[0], sum);
    RUN_ADDING(BN_SUM, &c, 1, &x[1], sum);
    ok(sum[0] == 4 && sum[1] == 10 && sum[2] == 2,
       "bn: sums of x and of its square, and how many");
    c.bn.residual = true;
    for (int i = 0; i < 2; i++)
        RUN(BN_SYNC, &c, 1, &x[i], w, &y[i], stat, &r[i], r, sum);
    ok(IS(y, -6, 4) && IS(stat, 2, 1, 2), "bn: y by statistics of both");
    RUN(BN_SUM_BWD, &c, 1, &x[0], y, &dy[0], w, stat, g, dsum, &dr[0]);
    RUN_ADDING(BN_SUM_BWD, &c, 1, &x[1], y, &dy[1], w, stat, g, dsum, &dr[1]);
    ok(dsum[0] == 3 && fabs(dsum[1] - 1) < 1e-12 && IS(dr, 1, 2),
       "bn: sums of dz and of dz (x - mean)");
    ok(IS(g, 0.5f, 3, 4, 4), "bn: gradients as of one sub-batch");
    for (int i = 0; i < 2; i++)
        RUN(BN_SYNC_BWD, &c, 1, &x[i], y, &dy[i], w, stat, dsum, &dx[i],
            &dr[i]);
    ok(IS(dx, -0.75f, 0.75f), "bn: dx as of one sub-batch");
}

static void test_bn_single(void)
{
    float x[] = {7}, y[] = {0}, dy[] = {5}, w[] = {1, 0, 0, 1};
    float stat[] = {7, 0}, g[4] = {0}, dx[1] = {0};
    struct ddp__call c = {.buf = {image(1, 1, 1), image(1, 1, 1),
                                  image(1, 1, 1), vector(4), vector(2),
                                  vector(4), image(1, 1, 1)},
                          .bn = {.eps = 1e-5f}};

    RUN(BN_BWD, &c, 1, x, y, dy, w, stat, g, dx);
    ok(IS(g, 0, 5, 7, 0) && dx[0] == 0,
       "bn: of a single value, finite and without a gradient");
}

/* ---- activations -------------------------------------------------------- */

static void test_act(void)
{
    static const struct {
        enum ddp_act act;
        float at_1, at_minus_1, at_7;
    } want[DDP_ACT_COUNT] = {
        {DDP_IDENTITY, 1, -1, 7},
        {DDP_RELU, 1, 0, 7},
        {DDP_RELU6, 1, 0, 6},
        {DDP_SILU, 0.7310585786f, -0.2689414214f, 6.9936229378f},
        {DDP_SIGMOID, 0.7310585786f, 0.2689414214f, 0.9990889488f},
        {DDP_TANH, 0.7615941560f, -0.7615941560f, 0.9999983369f},
        {DDP_GELU, 0.8413447461f, -0.1586552539f, 7},
        {DDP_HARDSWISH, 4 / 6.0f, -2 / 6.0f, 7},
        {DDP_HARDSIGMOID, 4 / 6.0f, 2 / 6.0f, 1},
    };
    float x[] = {1, -1, 7}, y[3] = {0}, bad[] = {NAN, NAN, NAN};

    for (int i = 0; i < DDP_ACT_COUNT; i++) {
        struct ddp__call c = {.buf = {image(1, 1, 3), image(1, 1, 3)},
                              .act = want[i].act};

        RUN(ACT_FWD, &c, 1, x, y);
        ok(IS(y, want[i].at_1, want[i].at_minus_1, want[i].at_7),
           "act %d: known values", i);
        RUN(ACT_FWD, &c, 1, bad, y);
        ok(isnan(y[0]), "act %d: a NaN is not hidden", i);
    }
}

/* ---- pooling ------------------------------------------------------------ */

static void test_max_pool(void)
{
    float x[] = {1, 5, 5, 2, 0, 5, 5, 3, 9, 8, NAN, 7}, y[4] = {0},
          dx[12] = {0};
    float dy[] = {1, 10, 100, 1000};
    uint8_t index[4] = {0};
    struct ddp__call c = {.buf = {image(3, 4, 1), image(2, 2, 1),
                                  of_type(DDP_U8, image(2, 2, 1))},
                          .pool = {.kh = 2, .kw = 2, .sh = 1, .sw = 2}};

    RUN(MAX_POOL_FWD, &c, 1, x, y, index);
    ok(IS(y, 5, 5, 9, NAN), "max pool: the maximum; a NaN wins");
    ok(index[0] == 1 && index[1] == 0 && index[2] == 2 && index[3] == 2,
       "max pool: of equal values the first is taken");
    c.buf[DDP__MAX_POOL_BWD_DY] = image(2, 2, 1);
    c.buf[DDP__MAX_POOL_BWD_INDEX] = of_type(DDP_U8, image(2, 2, 1));
    c.buf[DDP__MAX_POOL_BWD_DX] = image(3, 4, 1);
    RUN(MAX_POOL_BWD, &c, 1, dy, index, dx);
    ok(IS(dx, 0, 1, 10, 0, 0, 0, 0, 0, 100, 0, 1000, 0),
       "max pool: the gradient goes to the winners");
}

/* Padding never wins, and a window may hang over: 3 wide, stride 2, one pixel
 * of padding on the left, and the last window sticks out at the right. */
static void test_max_pool_edges(void)
{
    float x[] = {-1, -2, -3, -4}, y[3] = {0}, dy[] = {1, 2, 4}, dx[4] = {0};
    int32_t index[3] = {0};
    struct ddp__call c = {.buf = {image(1, 4, 1), image(1, 3, 1),
                                  of_type(DDP_I32, image(1, 3, 1))},
                          .pool = {1, 3, 1, 2, .left = 1}};

    RUN(MAX_POOL_FWD, &c, 1, x, y, index);
    ok(IS(y, -1, -2, -4) && index[0] == 1 && index[1] == 0 && index[2] == 0,
       "max pool: padding never wins");
    c.buf[DDP__MAX_POOL_BWD_DY] = image(1, 3, 1);
    c.buf[DDP__MAX_POOL_BWD_INDEX] = of_type(DDP_I32, image(1, 3, 1));
    c.buf[DDP__MAX_POOL_BWD_DX] = image(1, 4, 1);
    RUN(MAX_POOL_BWD, &c, 1, dy, index, dx);
    ok(IS(dx, 1, 2, 0, 4), "max pool: gradients at the edges");
    c.buf[DDP__MAX_POOL_FWD_X] = image(1, 4, 1);
    c.buf[DDP__MAX_POOL_FWD_Y] = image(1, 3, 1);
    c.buf[DDP__MAX_POOL_FWD_INDEX] = of_type(DDP_I32, image(1, 3, 1));
    x[0] = x[1] = -INFINITY;
    RUN(MAX_POOL_FWD, &c, 1, x, y, index);
    ok(y[0] == -INFINITY && index[0] == 1,
       "max pool: padding does not even win over minus infinity");
}

/* Pixels 1 2 3 4, 3 wide, stride 2, padding 1.  The windows are (0 1 2),
 * (2 3 4) and, hanging over, (4 0) and one pixel past the padding. */
static void test_mean_pool(void)
{
    float x[] = {1, 2, 3, 4}, y[3] = {0}, dy[] = {1, 10, 100}, dx[4] = {0};
    struct ddp__call c = {.buf = {image(1, 4, 1), image(1, 3, 1)},
                          .pool = {1, 3, 1, 2, 0, 1, true, .right = 1}};

    RUN(MEAN_POOL_FWD, &c, 1, x, y);
    ok(IS(y, 1, 3, 2), "mean pool: padding counts, what hangs over does not");
    c.buf[DDP__MEAN_POOL_BWD_DY] = image(1, 3, 1);
    c.buf[DDP__MEAN_POOL_BWD_DX] = image(1, 4, 1);
    RUN(MEAN_POOL_BWD, &c, 1, dy, dx);
    ok(IS(dx, 1 / 3.0f, 11 / 3.0f, 10 / 3.0f, 10 / 3.0f + 50),
       "mean pool: the gradient with padding that counts");
    c.pool.count_pad = false;
    RUN(MEAN_POOL_BWD, &c, 1, dy, dx);
    ok(IS(dx, 0.5f, 0.5f + 10 / 3.0f, 10 / 3.0f, 10 / 3.0f + 100),
       "mean pool: the gradient without it");
    c.buf[DDP__MEAN_POOL_FWD_X] = image(1, 4, 1);
    c.buf[DDP__MEAN_POOL_FWD_Y] = image(1, 3, 1);
    RUN(MEAN_POOL_FWD, &c, 1, x, y);
    ok(IS(y, 1.5f, 3, 4), "mean pool: pixels of the image only");
}

/* 5 pixels to 3: windows 0..1, 1..3, 3..4.  2 to 3: 0, 0..1, 1. */
static void test_adaptive_pool(void)
{
    float x[] = {1, 2, 3, 4, 5}, y[3] = {0}, dy[] = {1, 1, 1}, dx[5] = {0};
    struct ddp__call c = {.buf = {image(1, 5, 1), image(1, 3, 1)},
                          .pool = {.adaptive = true}};

    RUN(MEAN_POOL_FWD, &c, 1, x, y);
    ok(IS(y, 1.5f, 3, 4.5f), "adaptive pool: 5 pixels to 3");
    c.buf[DDP__MEAN_POOL_BWD_DY] = image(1, 3, 1);
    c.buf[DDP__MEAN_POOL_BWD_DX] = image(1, 5, 1);
    RUN(MEAN_POOL_BWD, &c, 1, dy, dx);
    ok(IS(dx, 0.5f, 0.5f + 1 / 3.0f, 1 / 3.0f, 0.5f + 1 / 3.0f, 0.5f),
       "adaptive pool: the gradient");
    c.buf[DDP__MEAN_POOL_FWD_X] = image(1, 2, 1);
    c.buf[DDP__MEAN_POOL_FWD_Y] = image(1, 3, 1);
    RUN(MEAN_POOL_FWD, &c, 1, x, y);
    ok(IS(y, 1, 1.5f, 2), "adaptive pool: 2 pixels to 3");
}

/* ---- branches ----------------------------------------------------------- */

static void test_join(void)
{
    float a[] = {1, -2, 3, 4}, b[] = {1, 1, -5, 0}, y[8] = {0}, dx[4] = {0};
    struct ddp__call c = {
        .buf = {image(1, 2, 2), image(1, 2, 2), image(1, 2, 2)}};

    c.act = DDP_RELU;
    RUN(ADD, &c, 1, a, b, y);
    ok(IS(y, 2, 0, 0, 4), "add: then the activation");
    RUN(ACC, &c, 1, b, a);
    ok(IS(b, 2, -1, -2, 4), "acc: adds to the first");
    for (int i = 0; i < 8; i++)
        y[i] = (float)i;
    c = (struct ddp__call){.buf = {image(1, 2, 2), image(1, 2, 4)}, .at = 1};
    RUN(CONCAT, &c, 1, a, y);
    ok(IS(y, 0, 1, -2, 3, 4, 3, 4, 7), "concat: other channels are unchanged");
    c.buf[DDP__SPLIT_DY] = image(1, 2, 4);
    c.buf[DDP__SPLIT_DX] = image(1, 2, 2);
    c.at = 2;
    RUN(SPLIT, &c, 1, y, dx);
    ok(IS(dx, -2, 3, 4, 7), "split: takes a part of the channels");
}

static void test_scale(void)
{
    float x[] = {1, 2, 3, 4}, s[] = {10, 100}, dy[] = {1, 1, 2, 3};
    float y[4] = {0}, dx[4] = {0}, ds[2] = {0};
    struct ddp__call c = {.buf = {image(1, 2, 2), image(1, 1, 2),
                                  image(1, 2, 2), image(1, 2, 2),
                                  image(1, 1, 2)}};

    RUN(SCALE_FWD, &c, 1, x, s, y);
    ok(IS(y, 10, 200, 30, 400), "scale: one factor per channel");
    RUN(SCALE_BWD, &c, 1, x, s, dy, dx, ds);
    ok(IS(dx, 10, 100, 20, 300) && IS(ds, 7, 14), "scale: the gradients");
    c.scaled = true;
    RUN(SCALE_BWD, &c, 1, y, s, dy, dx, ds);
    ok(IS(dx, 10, 100, 20, 300) && IS(ds, 7, 14), "scale: from y");
    s[1] = y[1] = y[3] = 0;
    RUN(SCALE_BWD, &c, 1, y, s, dy, dx, ds);
    ok(IS(dx, 10, 0, 20, 0) && IS(ds, 7, 0), "scale: from y, factor 0");
}

/* ---- dropout ------------------------------------------------------------ */

enum { DROP_LEN = 5000 };

static void test_dropout(void)
{
    static float x[2 * DROP_LEN], y[2 * DROP_LEN], z[2 * DROP_LEN];
    int64_t ids[] = {7, 1LL << 40}, swapped[] = {1LL << 40, 7};
    struct ddp__call c = {.buf = {image(1, 1, DROP_LEN),
                                  of_type(DDP_I64, image(1, 1, 1)),
                                  image(1, 1, DROP_LEN)},
                          .dropout = {0.2f, false, 3}};
    int dropped = 0, both = 0, pairs = 0, scaled = 0;

    for (int i = 0; i < 2 * DROP_LEN; i++)
        x[i] = 4;
    RUN(DROPOUT, &c, 2, x, ids, y);
    for (int i = 0; i < 2 * DROP_LEN; i++) {
        dropped += y[i] == 0;
        scaled += fabsf(y[i] - 5) < 1e-5f;
        both += i < DROP_LEN && y[i] == 0 && y[DROP_LEN + i] == 0;
        pairs += i % 2 && y[i - 1] == 0 && y[i] == 0;
    }
    /* 2000 expected, standard deviation 40; 200 of both and of pairs, 14:
     * six of each. */
    ok(abs(dropped - 2000) < 240 && dropped + scaled == 2 * DROP_LEN,
       "dropout: about p of the values are 0, the others divided by 1 - p");
    ok(abs(both - 200) < 84, "dropout: samples have masks of their own");
    ok(abs(pairs - 200) < 84, "dropout: neighbours go by themselves");
    RUN(DROPOUT, &c, 2, x, swapped, z);
    ok(memcmp(y, z + DROP_LEN, sizeof(y) / 2) == 0 &&
           memcmp(y + DROP_LEN, z, sizeof(y) / 2) == 0,
       "dropout: the mask follows the sample, not its place");
    c.dropout.layer = 4;
    RUN(DROPOUT, &c, 2, x, ids, z);
    ok(memcmp(y, z, sizeof(y)) != 0, "dropout: layers have masks of their own");
}

static void test_stochastic_depth(void)
{
    float x[300], y[300] = {0};
    int64_t ids[100];
    struct ddp__call c = {.buf = {image(1, 1, 3),
                                  of_type(DDP_I64, image(1, 1, 1)),
                                  image(1, 1, 3)},
                          .dropout = {0.5f, true, 1}};
    int dropped = 0, whole = 0;

    for (int i = 0; i < 300; i++) {
        x[i] = 1;
        ids[i / 3] = i / 3;
    }
    RUN(DROPOUT, &c, 100, x, ids, y);
    for (int i = 0; i < 300; i += 3) {
        dropped += y[i] == 0;
        whole += y[i] == y[i + 1] && y[i] == y[i + 2];
    }
    /* 50 expected, standard deviation 5. */
    ok(whole == 100 && abs(dropped - 50) < 30,
       "stochastic depth: a sample goes as a whole");
}

int main(void)
{
    test_philox();
    test_bf16();
    test_f16();
    test_input();
    test_conv();
    test_conv_padding();
    test_conv_steps();
    test_conv_groups();
    test_conv_norm();
    test_dense();
    test_bn();
    test_bn_pixels();
    test_bn_sync();
    test_bn_single();
    test_act();
    test_max_pool();
    test_max_pool_edges();
    test_mean_pool();
    test_adaptive_pool();
    test_join();
    test_scale();
    test_dropout();
    test_stochastic_depth();
    return done_testing();
}
