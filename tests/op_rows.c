/* op_rows.c - the table of test_ops: shapes and scalars for every op
 *
 * Sizes are odd on purpose: one image, one channel, nothing a multiple of
 * anything, fewer samples than there is room for.
 */
#include "config.h"
#include <math.h>
#include "check.h"

/* A square kernel: size, stride, dilation, padding all round, groups. */
#define KERNEL(k, s, d, p, g)                                                  \
    .kh = (k), .kw = (k), .sh = (s), .sw = (s), .dh = (d), .dw = (d),          \
    .top = (p), .left = (p), .bottom = (p), .right = (p), .groups = (g)

/* A square window: size, stride, padding all round. */
#define WINDOW(k, s, p)                                                        \
    .kh = (k), .kw = (k), .sh = (s), .sw = (s), .top = (p), .left = (p),       \
    .bottom = (p), .right = (p)

/* The samples, and how many there is room for. */
#define OF(n_, cap_) .n = (n_), .cap = (cap_)

/* Of three samples: 2.6 MB in f32. */
#define LARGE                                                                  \
    {                                                                          \
        57, 57, 67                                                             \
    }

/* An optimizer on a bucket that has all kinds of spans. */
#define SPANS                                                                  \
    .span = {{.begin = 0, .len = 17, .decay = true},                           \
             {.begin = 17, .len = 5},                                          \
             {.begin = 22, .len = 6, .running = true, .momentum = 0.1f},       \
             {.begin = 28, .len = 9, .decay = true}}
#define OPTIMIZER(...)                                                         \
    .family = CHECK_OPTIM, OF(1, 1), .x = {1, 1, 37}, SPANS,                   \
    .call.optim = {.o = {__VA_ARGS__}, .spans = 4}

/* Weighted log cosh: smooth, and unlike the others. */
static double log_cosh(const float *x, const void *target, const float *weight,
                       int n, int len, float *dx, void *arg)
{
    const float *want = target;
    double sum = 0;

    (void)arg;
    for (int i = 0; i < n * len; i++) {
        double d = (double)x[i] - want[i];

        sum += weight[i / len] * log(cosh(d));
        if (dx)
            dx[i] = (float)(weight[i / len] * tanh(d));
    }
    return sum;
}

const struct check_row op_rows[] = {
    /* ---- input ---------------------------------------------------------- */
    {CHECK_INPUT_U8, "3 channels", OF(2, 3), .x = {5, 7, 3},
     .call.input = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
    {CHECK_INPUT_U8, "1 channel", OF(1, 2), .x = {3, 3, 1},
     .call.input = {{0.1307f}, {0.3081f}}},
    {CHECK_INPUT_U8, "4 channels", OF(1, 1), .x = {1, 13, 4},
     .call.input = {{0, 0.1f, 0.2f, 0.3f}, {1, 0.5f, 0.25f, 2}}},
    {CHECK_INPUT_U8, "3 channels, mirrored", OF(2, 3), .x = {5, 7, 3},
     .call.input = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}, true}},
    {CHECK_INPUT_U8, "one column, mirrored", OF(2, 2), .x = {5, 1, 4},
     .call.input = {{0.5f}, {1, 1, 1, 1}, true}},
    {CHECK_INPUT_F32, "20 channels, mirrored", OF(1, 2), .x = {3, 6, 20},
     .call.input.flip = true},
    {CHECK_INPUT_F32, "a vector", OF(3, 5), .x = {1, 1, 4}},
    {CHECK_INPUT_F32, "an image", OF(1, 2), .x = {5, 3, 7}},

    /* ---- convolutions --------------------------------------------------- */
    {CHECK_CONV, "3x3", OF(2, 3), .x = {5, 7, 4}, .y = {0, 0, 6},
     .call.conv = {KERNEL(3, 1, 1, 1, 1), .bias = true}},
    {CHECK_CONV, "3x3, no bias", OF(2, 2), .x = {6, 5, 3}, .y = {0, 0, 5},
     .call.conv = {KERNEL(3, 1, 1, 1, 1)}},
    {CHECK_CONV, "1x1 of one pixel and channel", OF(1, 1), .x = {1, 1, 1},
     .y = {0, 0, 1}, .call.conv = {KERNEL(1, 1, 1, 0, 1), .bias = true}},
    {CHECK_CONV, "1x1 stride 2", OF(2, 3), .x = {7, 8, 3}, .y = {0, 0, 5},
     .call.conv = {KERNEL(1, 2, 1, 0, 1)}},
    {CHECK_CONV, "1x1, 64 to 19 channels", OF(3, 4), .x = {4, 4, 64},
     .y = {0, 0, 19}, .call.conv = {KERNEL(1, 1, 1, 0, 1), .bias = true}},
    {CHECK_CONV, "7x7 stride 2, as a first layer", OF(2, 2), .x = {17, 15, 3},
     .y = {0, 0, 8}, .call.conv = {KERNEL(7, 2, 1, 3, 1)}},
    {CHECK_CONV, "3x3 stride 2", OF(1, 2), .x = {9, 9, 16}, .y = {0, 0, 32},
     .call.conv = {KERNEL(3, 2, 1, 1, 1)}},
    {CHECK_CONV, "3x3, 32 channels", OF(4, 4), .x = {8, 8, 32}, .y = {0, 0, 32},
     .call.conv = {KERNEL(3, 1, 1, 1, 1)}},
    {CHECK_CONV, "two groups", OF(2, 3), .x = {5, 5, 6}, .y = {0, 0, 4},
     .call.conv = {KERNEL(3, 1, 1, 1, 2), .bias = true}},
    {CHECK_CONV, "depthwise stride 2", OF(3, 3), .x = {6, 7, 5}, .y = {0, 0, 5},
     .call.conv = {KERNEL(3, 2, 1, 1, 5)}},
    {CHECK_CONV, "depthwise, two of each", OF(2, 2), .x = {5, 4, 3},
     .y = {0, 0, 6}, .call.conv = {KERNEL(3, 1, 1, 1, 3), .bias = true}},
    {CHECK_CONV, "dilation 2", OF(2, 2), .x = {9, 7, 3}, .y = {0, 0, 4},
     .call.conv = {KERNEL(3, 1, 2, 2, 1), .bias = true}},
    {CHECK_CONV, "2x3, another padding on each side", OF(2, 4), .x = {5, 6, 2},
     .y = {0, 0, 3},
     .call.conv = {2, 3, 1, 1, 1, 1, 1, 0, 2, 3, 1, .bias = true}},
    {CHECK_CONV, "1x5", OF(1, 1), .x = {4, 9, 2}, .y = {0, 0, 3},
     .call.conv = {1, 5, 1, 1, 1, 1, 0, 2, 0, 2, .groups = 1}},
    {CHECK_CONV, "3x2 stride 3x2 dilation 1x3, pixels left over", OF(2, 2),
     .x = {11, 12, 2}, .y = {0, 0, 3},
     .call.conv = {3, 2, 3, 2, 1, 3, 0, 1, 0, 0, 1, .bias = true}},
    {CHECK_CONV, "padding wider than the image", OF(1, 1), .x = {2, 1, 3},
     .y = {0, 0, 2}, .call.conv = {KERNEL(3, 1, 1, 2, 1)}},
    {CHECK_CONV, "5x5 on a digit", OF(2, 3), .x = {28, 28, 1}, .y = {0, 0, 6},
     .call.conv = {KERNEL(5, 1, 1, 2, 1), .bias = true}},
    {CHECK_CONV, "with relu", OF(2, 3), .x = {5, 7, 4}, .y = {0, 0, 6},
     .call.conv = {KERNEL(3, 1, 1, 1, 1), .bias = true, .act = DDP_RELU}},
    {CHECK_CONV, "with relu6, no bias", OF(2, 2), .x = {5, 4, 9},
     .y = {0, 0, 3}, .call.conv = {KERNEL(3, 2, 1, 1, 1), .act = DDP_RELU6}},
    {CHECK_CONV, "depthwise with relu6", OF(2, 2), .x = {5, 4, 8},
     .y = {0, 0, 8}, .call.conv = {KERNEL(3, 1, 1, 1, 8), .act = DDP_RELU6}},
    {CHECK_CONV, "with sigmoid", OF(1, 2), .x = {4, 4, 3}, .y = {0, 0, 2},
     .call.conv = {KERNEL(1, 1, 1, 0, 1), .bias = true, .act = DDP_SIGMOID}},
    {CHECK_CONV, "with tanh", OF(1, 2), .x = {4, 4, 3}, .y = {0, 0, 2},
     .call.conv = {KERNEL(3, 1, 1, 0, 1), .bias = true, .act = DDP_TANH}},

    /* ---- dense ---------------------------------------------------------- */
    {CHECK_DENSE, "4 to 8", OF(3, 4), .x = {1, 1, 4}, .y = {1, 1, 8},
     .call.dense = {.bias = true}},
    {CHECK_DENSE, "1 to 1", OF(1, 1), .x = {1, 1, 1}, .y = {1, 1, 1},
     .call.dense = {.bias = true}},
    {CHECK_DENSE, "37 to 19, no bias", OF(5, 8), .x = {1, 1, 37},
     .y = {1, 1, 19}},
    {CHECK_DENSE, "512 to 10", OF(7, 7), .x = {1, 1, 512}, .y = {1, 1, 10},
     .call.dense = {.bias = true}},
    {CHECK_DENSE, "with relu", OF(4, 5), .x = {1, 1, 9}, .y = {1, 1, 17},
     .call.dense = {.bias = true, .act = DDP_RELU}},
    {CHECK_DENSE, "with relu6, no bias", OF(2, 2), .x = {1, 1, 30},
     .y = {1, 1, 3}, .call.dense = {.act = DDP_RELU6}},
    {CHECK_DENSE, "with sigmoid", OF(2, 3), .x = {1, 1, 6}, .y = {1, 1, 5},
     .call.dense = {.bias = true, .act = DDP_SIGMOID}},
    {CHECK_DENSE, "with tanh", OF(2, 3), .x = {1, 1, 6}, .y = {1, 1, 5},
     .call.dense = {.bias = true, .act = DDP_TANH}},

    /* ---- batch norm ----------------------------------------------------- */
    {CHECK_BN, "4 channels", OF(2, 3), .x = {5, 3, 4},
     .call.bn = {.eps = 1e-5f}},
    {CHECK_BN, "1 channel", OF(3, 3), .x = {4, 5, 1},
     .call.bn = {.eps = 1e-3f}},
    {CHECK_BN, "one image", OF(1, 1), .x = {7, 5, 3},
     .call.bn = {.eps = 1e-5f}},
    {CHECK_BN, "vectors", OF(8, 9), .x = {1, 1, 5}, .call.bn = {.eps = 1e-5f}},
    {CHECK_BN, "a single value", OF(1, 1), .x = {1, 1, 3},
     .call.bn = {.eps = 1e-3f}},
    {CHECK_BN, "33 channels", OF(4, 4), .x = {3, 3, 33},
     .call.bn = {.eps = 1e-5f}},
    {CHECK_BN, "values far from 0", OF(4, 4), .x = {5, 5, 2}, .mean = 100,
     .call.bn = {.eps = 1e-5f}},
    {CHECK_BN, "with relu", OF(3, 4), .x = {4, 3, 6},
     .call.bn = {.eps = 1e-5f, .act = DDP_RELU}},
    {CHECK_BN, "with relu6", OF(2, 2), .x = {5, 3, 3},
     .call.bn = {.eps = 1e-5f, .act = DDP_RELU6}},
    {CHECK_BN, "with sigmoid", OF(2, 2), .x = {5, 3, 3},
     .call.bn = {.eps = 1e-5f, .act = DDP_SIGMOID}},
    {CHECK_BN, "with tanh", OF(2, 2), .x = {5, 3, 3},
     .call.bn = {.eps = 1e-5f, .act = DDP_TANH}},
    {CHECK_BN, "with a residual", OF(2, 3), .x = {3, 5, 4},
     .call.bn = {1e-5f, DDP_IDENTITY, true}},
    {CHECK_BN, "with a residual and relu", OF(3, 4), .x = {3, 5, 7},
     .call.bn = {1e-5f, DDP_RELU, true}},
    {CHECK_BN, "with a residual and tanh", OF(2, 2), .x = {3, 5, 1},
     .call.bn = {1e-5f, DDP_TANH, true}},
    {CHECK_BN, "with a residual, relu and a mask", OF(3, 4), .x = {3, 5, 8},
     .call.bn = {1e-5f, DDP_RELU, true, true}},
    {CHECK_BN, "with a residual, relu and a mask, 40 channels", OF(2, 3),
     .x = {5, 3, 40}, .call.bn = {1e-5f, DDP_RELU, true, true}},
    {CHECK_BN_EVAL, "4 channels", OF(2, 3), .x = {5, 3, 4},
     .call.bn = {.eps = 1e-5f}},
    {CHECK_BN_EVAL, "with relu", OF(1, 3), .x = {1, 1, 9},
     .call.bn = {.eps = 1e-5f, .act = DDP_RELU}},
    {CHECK_BN_EVAL, "with a residual and relu", OF(3, 3), .x = {3, 4, 1},
     .call.bn = {1e-3f, DDP_RELU, true}},
    {CHECK_BN_EVAL, "with a residual and relu6", OF(3, 3), .x = {3, 4, 5},
     .call.bn = {1e-3f, DDP_RELU6, true}},

    /* ---- activations ---------------------------------------------------- */
    {CHECK_ACT, "identity", OF(1, 2), .x = {1, 1, 3}, .call.act = DDP_IDENTITY},
    {CHECK_ACT, "relu", OF(2, 3), .x = {5, 3, 7}, .spread = 2,
     .call.act = DDP_RELU},
    {CHECK_ACT, "relu6", OF(2, 3), .x = {5, 3, 7}, .spread = 8,
     .call.act = DDP_RELU6},
    {CHECK_ACT, "silu", OF(2, 3), .x = {5, 3, 7}, .spread = 8,
     .call.act = DDP_SILU},
    {CHECK_ACT, "sigmoid", OF(2, 3), .x = {5, 3, 7}, .spread = 4,
     .call.act = DDP_SIGMOID},
    {CHECK_ACT, "tanh", OF(2, 3), .x = {5, 3, 7}, .spread = 3,
     .call.act = DDP_TANH},
    {CHECK_ACT, "gelu", OF(2, 3), .x = {5, 3, 7}, .spread = 5,
     .call.act = DDP_GELU},
    {CHECK_ACT, "hardswish", OF(2, 3), .x = {5, 3, 7}, .spread = 5,
     .call.act = DDP_HARDSWISH},
    {CHECK_ACT, "hardsigmoid", OF(2, 3), .x = {5, 3, 7}, .spread = 5,
     .call.act = DDP_HARDSIGMOID},
    {CHECK_ACT, "relu of one value", OF(1, 1), .x = {1, 1, 1},
     .call.act = DDP_RELU},
    {CHECK_ACT, "sigmoid of large values", OF(1, 1), .x = {1, 5, 5},
     .spread = 1000, .call.act = DDP_SIGMOID},
    {CHECK_ACT, "silu of large values", OF(1, 1), .x = {1, 5, 5},
     .spread = 1000, .call.act = DDP_SILU},
    {CHECK_ACT, "tanh of large values", OF(1, 1), .x = {1, 5, 5},
     .spread = 1000, .call.act = DDP_TANH},
    {CHECK_ACT, "gelu of large values", OF(1, 1), .x = {1, 5, 5},
     .spread = 1000, .call.act = DDP_GELU},
    {CHECK_ADD, "a sum", OF(2, 3), .x = {3, 5, 7}},
    {CHECK_ADD, "with relu", OF(1, 2), .x = {3, 3, 1}, .call.act = DDP_RELU},
    {CHECK_ADD, "with tanh", OF(1, 1), .x = {1, 1, 5}, .call.act = DDP_TANH},
    {CHECK_ADD, "with silu", OF(1, 1), .x = {1, 7, 5}, .call.act = DDP_SILU},
    {CHECK_ACC, "a sum", OF(2, 3), .x = {3, 5, 7}},
    {CHECK_ACC, "of one value", OF(1, 1), .x = {1, 1, 1}},

    /* ---- pooling -------------------------------------------------------- */
    {CHECK_MAX_POOL, "2x2", OF(2, 3), .x = {6, 4, 5},
     .call.pool = {WINDOW(2, 2, 0)}},
    {CHECK_MAX_POOL, "2x2, pixels left over", OF(2, 2), .x = {5, 7, 3},
     .call.pool = {WINDOW(2, 2, 0)}},
    {CHECK_MAX_POOL, "3x3 stride 2 pad 1", OF(2, 3), .x = {9, 8, 3},
     .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MAX_POOL, "3x3 stride 1", OF(1, 2), .x = {5, 5, 1},
     .call.pool = {WINDOW(3, 1, 1)}},
    {CHECK_MAX_POOL, "hanging over", OF(2, 2), .x = {6, 7, 2}, .y = {3, 3, 2},
     .call.pool = {WINDOW(3, 2, 0)}},
    {CHECK_MAX_POOL, "3x1 stride 2x1", OF(1, 1), .x = {7, 4, 3},
     .call.pool = {3, 1, 2, 1, 1, 0, .bottom = 1}},
    {CHECK_MAX_POOL, "stride wider than the window", OF(2, 2), .x = {8, 8, 2},
     .call.pool = {WINDOW(2, 3, 0)}},
    {CHECK_MAX_POOL, "17x17: positions beyond a byte", OF(1, 1),
     .x = {20, 19, 2}, .call.pool = {WINDOW(17, 1, 0)}},
    {CHECK_MAX_POOL, "of equal values", OF(2, 2), .x = {7, 7, 3}, .ties = true,
     .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MAX_POOL, "with a NaN", OF(2, 2), .x = {7, 7, 3}, .nan = true,
     .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MAX_POOL, "33 channels", OF(2, 2), .x = {6, 6, 33},
     .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MEAN_POOL, "2x2", OF(2, 3), .x = {6, 4, 5},
     .call.pool = {WINDOW(2, 2, 0), .count_pad = true}},
    {CHECK_MEAN_POOL, "3x3 stride 2 pad 1, padding counts", OF(2, 2),
     .x = {9, 8, 3}, .call.pool = {WINDOW(3, 2, 1), .count_pad = true}},
    {CHECK_MEAN_POOL, "3x3 stride 2 pad 1, padding does not count", OF(2, 2),
     .x = {9, 8, 3}, .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MEAN_POOL, "hanging over, padding counts", OF(1, 2), .x = {6, 8, 2},
     .y = {4, 5, 2}, .call.pool = {WINDOW(3, 2, 1), .count_pad = true}},
    {CHECK_MEAN_POOL, "hanging over, padding does not count", OF(1, 2),
     .x = {6, 8, 2}, .y = {4, 5, 2}, .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MEAN_POOL, "1x3 stride 1x2", OF(2, 2), .x = {3, 9, 1},
     .call.pool = {1, 3, 1, 2, .count_pad = true}},
    {CHECK_MEAN_POOL, "of the whole image", OF(3, 4), .x = {7, 7, 6},
     .call.pool = {WINDOW(7, 7, 0)}},
    {CHECK_MEAN_POOL, "adaptive to 1x1", OF(3, 4), .x = {7, 5, 6},
     .y = {1, 1, 6}, .call.pool = {.adaptive = true}},
    {CHECK_MEAN_POOL, "adaptive, 7x5 to 3x2", OF(2, 2), .x = {7, 5, 3},
     .y = {3, 2, 3}, .call.pool = {.adaptive = true}},
    {CHECK_MEAN_POOL, "adaptive, 3x4 to 7x7", OF(1, 1), .x = {3, 4, 2},
     .y = {7, 7, 2}, .call.pool = {.adaptive = true}},
    {CHECK_MEAN_POOL, "adaptive, 8x8 to 4x4", OF(2, 2), .x = {8, 8, 3},
     .y = {4, 4, 3}, .call.pool = {.adaptive = true}},

    /* ---- branches ------------------------------------------------------- */
    {CHECK_CONCAT, "first channels", OF(2, 3), .x = {3, 5, 2}, .y = {3, 5, 7}},
    {CHECK_CONCAT, "in the middle", OF(2, 2), .x = {3, 5, 3}, .y = {3, 5, 7},
     .call.at = 2},
    {CHECK_CONCAT, "last channel", OF(1, 2), .x = {4, 3, 1}, .y = {4, 3, 6},
     .call.at = 5},
    {CHECK_CONCAT, "all channels", OF(1, 1), .x = {1, 1, 5}, .y = {1, 1, 5}},
    {CHECK_SCALE, "an image", OF(2, 3), .x = {5, 3, 7}},
    {CHECK_SCALE, "a pixel", OF(1, 1), .x = {1, 1, 3}},
    {CHECK_SCALE, "one channel", OF(3, 3), .x = {4, 5, 1}},

    /* ---- dropout -------------------------------------------------------- */
    {CHECK_DROPOUT, "of a third", OF(2, 3), .x = {5, 3, 7},
     .call.dropout = {1 / 3.0f, false, 7}},
    {CHECK_DROPOUT, "of nothing", OF(2, 2), .x = {1, 1, 9},
     .call.dropout = {0, false, 1}},
    {CHECK_DROPOUT, "of most", OF(2, 2), .x = {1, 1, 101},
     .call.dropout = {0.9f, false, 4000000000u}},
    {CHECK_DROPOUT, "of whole samples", OF(9, 11), .x = {3, 2, 1},
     .call.dropout = {0.5f, true, 3}},

    /* ---- losses --------------------------------------------------------- */
    {CHECK_LOSS, "cross entropy of 3 classes", OF(5, 8), .x = {1, 1, 3},
     .spread = 4},
    {CHECK_LOSS, "cross entropy of 1000 classes", OF(3, 3), .x = {1, 1, 1000},
     .spread = 6},
    {CHECK_LOSS, "smoothed cross entropy", OF(4, 5), .x = {1, 1, 11},
     .spread = 4, .call.loss = {.smoothing = 0.1f}},
    {CHECK_LOSS, "cross entropy of 1 class", OF(2, 2), .x = {1, 1, 1}},
    {CHECK_LOSS, "cross entropy, logits beyond exp", OF(4, 4), .x = {1, 1, 12},
     .spread = 20000},
    {CHECK_LOSS, "cross entropy of equal logits", OF(9, 9), .x = {1, 1, 30},
     .ties = true},
    {CHECK_LOSS, "cross entropy, no gradient", OF(3, 4), .x = {1, 1, 7},
     .spread = 3, .call.buffers = 4},
    {CHECK_LOSS, "squared error", OF(3, 4), .x = {1, 1, 5},
     .call.loss = {.kind = DDP_MSE}},
    {CHECK_LOSS, "squared error of an image", OF(2, 2), .x = {3, 5, 2},
     .call.loss = {.kind = DDP_MSE}},
    {CHECK_LOSS, "squared error, no gradient", OF(1, 1), .x = {1, 1, 1},
     .call = {.loss = {.kind = DDP_MSE}, .buffers = 4}},
    {CHECK_LOSS, "the program's own", OF(3, 4), .x = {1, 1, 6},
     .call.loss = {DDP_OWN_LOSS, .fn = log_cosh}},
    {CHECK_LOSS, "auxiliary cross entropy", OF(4, 5), .x = {1, 1, 9},
     .spread = 4, .call.loss = {.smoothing = 0.1f, .aux = 0.3f}},
    {CHECK_LOSS, "auxiliary squared error", OF(2, 3), .x = {1, 1, 7},
     .call.loss = {.kind = DDP_MSE, .aux = 0.4f}},
    {CHECK_LOSS, "auxiliary, the program's own", OF(3, 4), .x = {1, 1, 6},
     .call.loss = {DDP_OWN_LOSS, .fn = log_cosh, .aux = 0.5f}},

    /* ---- too large for a cache, where devices may take other ways -------- */
    {CHECK_BN, "2.6 MB", OF(3, 3), .x = LARGE, .call.bn = {.eps = 1e-5f}},
    {CHECK_BN, "2.6 MB with a residual and relu", OF(3, 3), .x = LARGE,
     .call.bn = {1e-5f, DDP_RELU, true}},
    {CHECK_BN_EVAL, "2.6 MB with relu6", OF(3, 3), .x = LARGE,
     .call.bn = {.eps = 1e-5f, .act = DDP_RELU6}},
    {CHECK_ACT, "relu, 2.6 MB", OF(3, 3), .x = LARGE, .call.act = DDP_RELU},
    {CHECK_ACT, "gelu, 2.6 MB", OF(3, 3), .x = LARGE, .call.act = DDP_GELU},
    {CHECK_ADD, "with relu, 2.6 MB", OF(3, 3), .x = LARGE,
     .call.act = DDP_RELU},
    {CHECK_ACC, "2.6 MB", OF(3, 3), .x = LARGE},
    {CHECK_MAX_POOL, "3x3 stride 1 pad 1, 2.6 MB", OF(3, 3), .x = LARGE,
     .call.pool = {WINDOW(3, 1, 1)}},
    {CHECK_MEAN_POOL, "3x3 stride 1 pad 1, 2.6 MB", OF(3, 3), .x = LARGE,
     .call.pool = {WINDOW(3, 1, 1)}},
    {CHECK_CONCAT, "2.6 MB", OF(3, 3), .x = LARGE, .y = {57, 57, 100},
     .call.at = 31},
    {CHECK_SCALE, "2.6 MB", OF(3, 3), .x = LARGE},
    {CHECK_DROPOUT, "2.6 MB", OF(3, 3), .x = LARGE,
     .call.dropout = {0.25f, false, 9}},
    {CHECK_INPUT_U8, "of 224x224", OF(4, 4), .x = {224, 224, 3},
     .call.input = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
    {CHECK_BN, "2048 channels, with a mask", OF(2, 3), .x = {2, 2, 2048},
     .call.bn = {1e-5f, DDP_RELU, true, true}},
    {CHECK_BN, "64 channels, 2.4 MB, with a mask", OF(3, 3), .x = {56, 56, 64},
     .call.bn = {1e-5f, DDP_RELU, true, true}},
    {CHECK_MAX_POOL, "600 channels", OF(1, 1), .x = {5, 5, 600},
     .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MEAN_POOL, "of the whole image, 2048 channels", OF(2, 3),
     .x = {7, 7, 2048}, .y = {1, 1, 2048}, .call.pool = {.adaptive = true}},
    {CHECK_CONV, "1x1, 260 to 130 channels", OF(2, 2), .x = {7, 7, 260},
     .y = {0, 0, 130}, .call.conv = {KERNEL(1, 1, 1, 0, 1), .bias = true}},
    {CHECK_CONV, "3x3, 96 to 70 channels", OF(2, 2), .x = {7, 7, 96},
     .y = {0, 0, 70}, .call.conv = {KERNEL(3, 1, 1, 1, 1)}},
    {CHECK_DENSE, "2048 to 200", OF(3, 5), .x = {1, 1, 2048}, .y = {1, 1, 200},
     .call.dense = {.bias = true}},

    /* ---- channels in groups of 8, as GPUs like them ---------------------- */
    {CHECK_BN, "24 channels with a residual and relu", OF(3, 4),
     .x = {5, 7, 24}, .call.bn = {1e-5f, DDP_RELU, true}},
    {CHECK_BN, "160 channels", OF(2, 2), .x = {9, 8, 160},
     .call.bn = {.eps = 1e-5f}},
    {CHECK_ACT, "silu, 16 channels", OF(2, 3), .x = {5, 3, 16}, .spread = 8,
     .call.act = DDP_SILU},
    {CHECK_MAX_POOL, "3x3 stride 2 pad 1, 16 channels", OF(2, 3),
     .x = {9, 8, 16}, .call.pool = {WINDOW(3, 2, 1)}},
    {CHECK_MEAN_POOL, "adaptive, 7x5 to 3x2, 8 channels", OF(2, 2),
     .x = {7, 5, 8}, .y = {3, 2, 8}, .call.pool = {.adaptive = true}},
    {CHECK_MEAN_POOL, "of a whole image of 57x43, 40 channels", OF(2, 3),
     .x = {57, 43, 40}, .y = {1, 1, 40}, .call.pool = {.adaptive = true}},
    {CHECK_CONCAT, "8 of 24 channels", OF(2, 2), .x = {3, 5, 8},
     .y = {3, 5, 24}, .call.at = 8},
    {CHECK_SCALE, "24 channels", OF(3, 3), .x = {6, 5, 24}},
    {CHECK_DROPOUT, "of a third, 16 channels", OF(2, 3), .x = {5, 3, 16},
     .call.dropout = {1 / 3.0f, false, 7}},

    /* ---- sums and updates ----------------------------------------------- */
    {CHECK_MERGE, "of a vector", OF(1, 1), .x = {1, 1, 33}},
    {CHECK_MERGE, "of a few values", OF(1, 1), .x = {1, 1, 1}},
    {CHECK_MERGE, "2.6 MB", OF(1, 1), .x = {1, 1, 163201}},
    {CHECK_MERGE_STATS, "of all", OF(1, 1), .x = {1, 1, 1}},
    {CHECK_EMA, "of a vector", OF(1, 1), .x = {1, 1, 33}, .call.ema = {0.75}},
    {CHECK_EMA, "slow, 2.6 MB", OF(1, 1), .x = {1, 1, 163201},
     .call.ema = {0.9999}},
    {CHECK_EMA, "of a step that is not applied", OF(1, 1), .x = {1, 1, 33},
     .no_divisor = true, .call.ema = {0.75}},
    {.what = "sgd", OPTIMIZER(.kind = DDP_SGD)},
    {.what = "sgd, decay and clipping",
     OPTIMIZER(.kind = DDP_SGD, .weight_decay = 0.1f, .clip_norm = 0.5f)},
    {.what = "momentum",
     OPTIMIZER(.kind = DDP_MOMENTUM, .momentum = 0.9f, .weight_decay = 0.01f)},
    {.what = "momentum as in Flux",
     OPTIMIZER(.kind = DDP_MOMENTUM_FLUX, .momentum = 0.9f)},
    {.what = "nesterov, clipping that does nothing",
     OPTIMIZER(.kind = DDP_NESTEROV, .momentum = 0.9f, .clip_norm = 100)},
    {.what = "adam, all decays",
     OPTIMIZER(.kind = DDP_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f,
               .weight_decay = 0.1f, .decay_all = true)},
    {.what = "adamw, clipping",
     OPTIMIZER(.kind = DDP_ADAMW, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f,
               .weight_decay = 0.1f, .clip_norm = 0.5f)},
    {.what = "rmsprop",
     OPTIMIZER(.kind = DDP_RMSPROP, .beta2 = 0.99f, .eps = 1e-8f)},
    {.what = "sgd, clipping, a gradient of NaN",
     .nan = true,
     OPTIMIZER(.kind = DDP_SGD, .clip_norm = 1)},
    {.what = "adam, no sample counted",
     .no_divisor = true,
     OPTIMIZER(.kind = DDP_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f,
               .weight_decay = 0.1f, .clip_norm = 1)},
    {CHECK_OPTIM, "adam, 300000 weights", OF(1, 1), .x = {1, 1, 300000},
     .span = {{.begin = 0, .len = 299999, .decay = true},
              {.begin = 299999, .len = 1}},
     .call.optim = {.o = {.kind = DDP_ADAM,
                          .beta1 = 0.9f,
                          .beta2 = 0.999f,
                          .eps = 1e-8f,
                          .clip_norm = 1},
                    .spans = 2}},
};

const int op_row_count = sizeof(op_rows) / sizeof(op_rows[0]);
