/* kernelbench.c - compares kernels of CPU workers with oneDNN's primitives
 *
 *     tests/kernelbench [-w] [-n IMAGES] [-s SECONDS] [WORD]...
 *
 * A table in Markdown of one core's times: for each operation whose file,
 * name or shape has one of the WORDs (none: for all) the least milliseconds of
 * ours and of oneDNN's, which run in turns; how many times ours oneDNN's is;
 * the share of ours that its operands take at the speed of a copy, which may be
 * above 100 % where they are in a cache; and how far results differ, relative
 * to their norm.  Nothing is in a cache before a run, but with -w what the runs
 * before it left.  Weights changed before each run, but those of inference.
 * Results that the caches still hold at the end are written to memory after the
 * time is taken: oneDNN's often are, ours go past the caches where they do not
 * fit the second level.  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 gives operands
 * the huge pages that those of a step have.
 * IMAGES [8] are samples where a row has no number of its own, SECONDS [0.2]
 * are for each line; with 0 each runs once.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>

#ifndef HAVE_ONEDNN
int main(void)
{
    fprintf(stderr, "kernelbench: built without oneDNN\n");
    return 77;
}
#else
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "cpu/backend.h"
#include "cpu/onednn/onednn_library.h"
#include "dnn_peer.h"
#include "tap.h"

enum passes { FWD = 1, BWD_X = 2, BWD_W = 4, BOTH = FWD | BWD_X, ALL = 7 };

#define DENSE(file, samples, c, o)                                             \
    {                                                                          \
        file, ALL,                                                             \
        {                                                                      \
            CHECK_DENSE, "dense", .n = (samples), .x = {1, 1, c}, .y = {       \
                1,                                                             \
                1,                                                             \
                o                                                              \
            }                                                                  \
        }                                                                      \
    }

/* Square images and filters or windows of size k, stride s and padding p. */
#define POOL(family, what, side, c, k, s, p)                                   \
    {                                                                          \
        "pool", BOTH,                                                          \
        {                                                                      \
            family, what, .x = {side, side, c}, .call.pool = {                 \
                .kh = (k),                                                     \
                .kw = (k),                                                     \
                .sh = (s),                                                     \
                .sw = (s),                                                     \
                .top = (p),                                                    \
                .left = (p),                                                   \
                .bottom = (p),                                                 \
                .right = (p),                                                  \
                .count_pad = true                                              \
            }                                                                  \
        }                                                                      \
    }
#define BN(what, side, c, act, sum)                                            \
    {                                                                          \
        "bn", BOTH,                                                            \
        {                                                                      \
            CHECK_BN, what, .x = {side, side, c}, .call.bn = {                 \
                1e-5f,                                                         \
                act,                                                           \
                sum,                                                           \
                sum                                                            \
            }                                                                  \
        }                                                                      \
    }
#define ACT(what, f)                                                           \
    {                                                                          \
        "act", BOTH,                                                           \
        {                                                                      \
            CHECK_ACT, what, .x = {28, 28, 240}, .spread = 4, .call.act = f    \
        }                                                                      \
    }
#define LAYER(file, passes, family, images_, what, side, c, o, k, s, p, g, f)  \
    FILTERS(file, passes, family, images_, what, side, c, o, k, k, s, p, p, g, \
            f, false)
#define FILTERS(file, passes, family, images_, what, side, c, o, k, l, s, p,   \
                q, g, f, b)                                                    \
    {                                                                          \
        file, passes,                                                          \
        {                                                                      \
            family, what, .n = (images_), .x = {side, side, c},                \
                          .y = {0, 0, o}, .call.conv = {                       \
                              .kh = (k),                                       \
                              .kw = (l),                                       \
                              .sh = (s),                                       \
                              .sw = (s),                                       \
                              .dh = 1,                                         \
                              .dw = 1,                                         \
                              .top = (p),                                      \
                              .left = (q),                                     \
                              .bottom = (p),                                   \
                              .right = (q),                                    \
                              .groups = (g),                                   \
                              .bias = b,                                       \
                              .act = f                                         \
                          }                                                    \
        }                                                                      \
    }
#define CONV(file, passes, n, what, side, c, o, k, s, p, g)                    \
    LAYER(file, passes, CHECK_CONV, n, what, side, c, o, k, s, p, g,           \
          DDP_IDENTITY)
/* k x l, of stride 1, padded to images of the same size */
#define LINE(file, what, side, c, o, k, l)                                     \
    FILTERS(file, ALL, CHECK_CONV, 0, what, side, c, o, k, l, 1, (k) / 2,      \
            (l) / 2, 1, DDP_IDENTITY, false)
/* weight gradients of layers with a bias, by any of our kernels */
#define BIASED(what, side, c, o, k, s, p)                                      \
    FILTERS("bias", BWD_W, CHECK_CONV, 0, what, side, c, o, k, k, s, p, p, 1,  \
            DDP_IDENTITY, true)
/* of one image, with SiLU */
#define INFER(file, what, side, c, o, k, s, p, g)                              \
    LAYER(file, FWD, CHECK_CONV_NORM, 1, what, side, c, o, k, s, p, g, DDP_SILU)
/* with ReLU6 */
#define CLAMP(file, side, c, o, k, s, p, g)                                    \
    LAYER(file, FWD, CHECK_CONV_NORM, 1, "relu6", side, c, o, k, s, p, g,      \
          DDP_RELU6)

/* What is measured. */
static const struct line {
    const char *file;     /* of codelets/cpu, which has our kernel */
    unsigned passes;      /* enum passes */
    struct check_row row; /* n 0: IMAGES */
} lines[] = {
    POOL(CHECK_MAX_POOL, "max 3x3/2", 112, 64, 3, 2, 1),
    POOL(CHECK_MAX_POOL, "max 2x2/2", 224, 64, 2, 2, 0),
    POOL(CHECK_MAX_POOL, "max 2x2/2", 28, 512, 2, 2, 0),
    POOL(CHECK_MAX_POOL, "max 3x3/2", 35, 288, 3, 2, 0),
    POOL(CHECK_MAX_POOL, "max 3x3/2, odd", 57, 75, 3, 2, 1),
    POOL(CHECK_MEAN_POOL, "mean 3x3", 35, 288, 3, 1, 1),
    POOL(CHECK_MEAN_POOL, "mean 2x2/2", 56, 128, 2, 2, 0),
    POOL(CHECK_MEAN_POOL, "mean of all", 7, 2048, 7, 1, 0),
    BN("norm, relu", 56, 64, DDP_RELU, false),
    BN("norm, relu", 14, 256, DDP_RELU, false),
    BN("norm, sum, relu", 56, 256, DDP_RELU, true),
    BN("norm, sum, relu", 14, 1024, DDP_RELU, true),
    BN("norm, silu", 112, 32, DDP_SILU, false),
    BN("norm, silu", 28, 240, DDP_SILU, false),
    BN("norm", 56, 24, DDP_IDENTITY, false),
    ACT("relu", DDP_RELU),
    ACT("relu6", DDP_RELU6),
    ACT("silu", DDP_SILU),
    ACT("sigmoid", DDP_SIGMOID),
    ACT("tanh", DDP_TANH),
    ACT("gelu", DDP_GELU),
    ACT("hardswish", DDP_HARDSWISH),
    CONV("wino", ALL, 0, "3x3", 56, 64, 64, 3, 1, 1, 1),
    CONV("wino", ALL, 0, "3x3", 28, 128, 128, 3, 1, 1, 1),
    CONV("wino", ALL, 0, "3x3", 14, 256, 256, 3, 1, 1, 1),
    LINE("wino_line", "1x7", 17, 128, 128, 1, 7),
    LINE("wino_line", "7x1", 17, 192, 192, 7, 1),
    LINE("wino_line", "1x3", 8, 384, 384, 1, 3),
    LINE("wino_line", "3x1", 8, 384, 384, 3, 1),
    BIASED("3x3", 224, 64, 64, 3, 1, 1),
    BIASED("3x3", 28, 512, 512, 3, 1, 1),
    BIASED("3x3", 8, 256, 256, 3, 1, 1),
    BIASED("3x3/2", 56, 128, 128, 3, 2, 1),
    BIASED("1x1", 56, 64, 256, 1, 1, 0),
    BIASED("1x1", 56, 24, 144, 1, 1, 0),
    BIASED("3x3, first", 224, 3, 64, 3, 1, 1),
    CONV("wgrad", BWD_W, 0, "1x1", 56, 64, 256, 1, 1, 0, 1),
    CONV("wgrad", BWD_W, 0, "1x1", 14, 256, 1024, 1, 1, 0, 1),
    CONV("wgrad", BWD_W, 0, "3x3/2", 56, 128, 128, 3, 2, 1, 1),
    CONV("wgrad", BWD_W, 0, "3x3/2", 14, 512, 512, 3, 2, 1, 1),
    CONV("wgrad", BWD_W, 0, "7x7/2", 224, 3, 64, 7, 2, 3, 1),
    CONV("wgrad", BWD_W, 128, "3x3", 2, 256, 256, 3, 1, 1, 1),
    CONV("i16_conv", FWD, 0, "7x7/2", 224, 3, 64, 7, 2, 3, 1),
    CONV("i16_conv", BOTH, 0, "1x1", 56, 64, 256, 1, 1, 0, 1),
    CONV("i16_conv", BOTH, 0, "1x1", 56, 256, 64, 1, 1, 0, 1),
    CONV("i16_conv", BOTH, 0, "1x1", 28, 128, 512, 1, 1, 0, 1),
    CONV("i16_conv", BOTH, 0, "1x1", 14, 1024, 256, 1, 1, 0, 1),
    CONV("i16_conv", BOTH, 0, "1x1", 7, 512, 2048, 1, 1, 0, 1),
    CONV("i16_conv", BOTH, 0, "1x1/2", 56, 256, 512, 1, 2, 0, 1),
    CONV("i16_conv", BOTH, 0, "3x3/2", 56, 128, 128, 3, 2, 1, 1),
    CONV("i16_conv", BOTH, 0, "3x3/2", 14, 512, 512, 3, 2, 1, 1),
    CONV("i16_conv", BOTH, 16, "1x1", 112, 16, 96, 1, 1, 0, 1),
    CONV("i16_conv", BOTH, 16, "1x1", 14, 576, 96, 1, 1, 0, 1),
    DENSE("i16_conv", 128, 512, 1000),
    CONV("thin", BOTH, 0, "1x1", 112, 16, 96, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 112, 32, 16, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 56, 24, 144, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 28, 32, 192, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 28, 40, 240, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 14, 96, 384, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 56, 64, 256, 1, 1, 0, 1),
    CONV("thin", BOTH, 0, "1x1", 28, 128, 512, 1, 1, 0, 1),
    CONV("thin", FWD, 0, "3x3/2", 224, 3, 32, 3, 2, 1, 1),
    CONV("thin", FWD, 0, "3x3", 32, 3, 64, 3, 1, 1, 1),
    CONV("thin", FWD, 0, "2x2", 32, 3, 24, 2, 1, 0, 1),
    CONV("amx", BWD_W, 0, "7x7/2", 224, 3, 64, 7, 2, 3, 1),
    CONV("amx", BWD_W, 0, "1x1", 56, 64, 64, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 56, 64, 256, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 56, 256, 64, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 56, 256, 128, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 28, 128, 512, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 28, 512, 128, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 28, 512, 256, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 14, 256, 1024, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 14, 1024, 256, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 14, 1024, 512, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 7, 512, 2048, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1", 7, 2048, 512, 1, 1, 0, 1),
    CONV("amx", BWD_W, 0, "1x1/2", 56, 64, 128, 1, 2, 0, 1),
    CONV("amx", BWD_W, 0, "1x1/2", 56, 256, 512, 1, 2, 0, 1),
    CONV("amx", BWD_W, 0, "1x1/2", 28, 128, 256, 1, 2, 0, 1),
    CONV("amx", BWD_W, 0, "1x1/2", 28, 512, 1024, 1, 2, 0, 1),
    CONV("amx", BWD_W, 0, "1x1/2", 14, 256, 512, 1, 2, 0, 1),
    CONV("amx", BWD_W, 0, "1x1/2", 14, 1024, 2048, 1, 2, 0, 1),
    CONV("amx", BWD_W, 0, "3x3", 56, 64, 64, 3, 1, 1, 1),
    CONV("amx", BWD_W, 0, "3x3", 28, 128, 128, 3, 1, 1, 1),
    CONV("amx", BWD_W, 0, "3x3", 14, 256, 256, 3, 1, 1, 1),
    CONV("amx", BWD_W, 0, "3x3", 7, 512, 512, 3, 1, 1, 1),
    CONV("amx", BWD_W, 0, "3x3/2", 56, 64, 128, 3, 2, 1, 1),
    CONV("amx", BWD_W, 0, "3x3/2", 28, 128, 256, 3, 2, 1, 1),
    CONV("amx", BWD_W, 0, "3x3/2", 14, 256, 512, 3, 2, 1, 1),
    CONV("amx", BWD_W, 0, "3x3/2", 56, 128, 128, 3, 2, 1, 1),
    CONV("amx", BWD_W, 0, "3x3/2", 28, 256, 256, 3, 2, 1, 1),
    CONV("amx", BWD_W, 0, "3x3/2", 14, 512, 512, 3, 2, 1, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 112, 32, 16, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 112, 16, 96, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 56, 96, 24, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 56, 24, 144, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 56, 144, 24, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 28, 144, 32, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 28, 32, 192, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 28, 192, 32, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 28, 144, 40, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 28, 40, 240, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 28, 240, 40, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 192, 64, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 64, 384, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 384, 64, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 384, 96, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 96, 576, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 576, 96, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 240, 80, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 80, 480, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 480, 80, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 480, 112, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 112, 672, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 14, 672, 112, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 576, 160, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 160, 960, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 960, 160, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 960, 320, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 320, 1280, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 672, 192, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 192, 1152, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 1152, 192, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 16, "1x1", 7, 1152, 320, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 0, "1x1", 56, 64, 256, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 0, "1x1", 28, 128, 512, 1, 1, 0, 1),
    CONV("amx_pixels", BOTH, 0, "1x1", 14, 256, 1024, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 112, 16, 96, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 112, 32, 16, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 56, 96, 24, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 56, 24, 144, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 56, 144, 24, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 28, 144, 40, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 28, 40, 240, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 28, 240, 40, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 14, 80, 480, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 14, 480, 112, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 14, 112, 672, 1, 1, 0, 1),
    CONV("amx_wgrad", BWD_W, 0, "1x1", 14, 672, 112, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 112, 16, 96, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 112, 32, 16, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 56, 96, 24, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 56, 24, 144, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 56, 144, 24, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 28, 32, 192, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 28, 192, 32, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 28, 40, 240, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "1x1", 28, 240, 40, 1, 1, 0, 1),
    CONV("wgrad_thin", BWD_W, 0, "3x3", 224, 3, 64, 3, 1, 1, 1),
    CONV("wgrad_thin", BWD_W, 0, "3x3/2", 224, 3, 32, 3, 2, 1, 1),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3/2", 112, 96, 96, 3, 2, 1, 96),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3", 56, 144, 144, 3, 1, 1, 144),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3/2", 56, 144, 144, 3, 2, 1, 144),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3", 28, 192, 192, 3, 1, 1, 192),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3/2", 28, 192, 192, 3, 2, 1, 192),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3", 112, 32, 32, 3, 1, 1, 32),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3", 14, 384, 384, 3, 1, 1, 384),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3", 14, 576, 576, 3, 1, 1, 576),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3/2", 14, 576, 576, 3, 2, 1, 576),
    CONV("depthwise_wgrad_rows", BWD_W, 0, "3x3", 7, 960, 960, 3, 1, 1, 960),
    CONV("depthwise_wgrad", BWD_W, 0, "5x5", 28, 240, 240, 5, 1, 2, 240),
    CONV("depthwise_wgrad", BWD_W, 0, "5x5", 14, 672, 672, 5, 1, 2, 672),
    CONV("depthwise_train", BOTH, 0, "3x3", 112, 32, 32, 3, 1, 1, 32),
    CONV("depthwise_train", BOTH, 0, "3x3", 56, 144, 144, 3, 1, 1, 144),
    CONV("depthwise_train", BOTH, 0, "3x3", 28, 192, 192, 3, 1, 1, 192),
    CONV("depthwise_train", BOTH, 0, "3x3", 14, 576, 576, 3, 1, 1, 576),
    CONV("depthwise_train", BOTH, 0, "3x3", 7, 960, 960, 3, 1, 1, 960),
    CONV("depthwise_train", BOTH, 0, "3x3/2", 112, 96, 96, 3, 2, 1, 96),
    CONV("depthwise_train", BOTH, 0, "3x3/2", 56, 144, 144, 3, 2, 1, 144),
    CONV("depthwise_train", BOTH, 0, "3x3/2", 28, 192, 192, 3, 2, 1, 192),
    CONV("depthwise_train", BOTH, 0, "3x3/2", 14, 576, 576, 3, 2, 1, 576),
    CONV("depthwise_train", BOTH, 0, "5x5", 28, 240, 240, 5, 1, 2, 240),
    CONV("depthwise_train", BOTH, 0, "5x5", 28, 120, 120, 5, 1, 2, 120),
    CONV("depthwise_train", BOTH, 0, "5x5", 14, 672, 672, 5, 1, 2, 672),
    CONV("depthwise_train", BOTH, 0, "5x5", 7, 1152, 1152, 5, 1, 2, 1152),
    CONV("depthwise_train", BOTH, 0, "5x5/2", 56, 144, 144, 5, 2, 2, 144),
    CONV("depthwise_train", BOTH, 0, "5x5/2", 56, 72, 72, 5, 2, 2, 72),
    CONV("depthwise_train", BOTH, 0, "5x5/2", 14, 672, 672, 5, 2, 2, 672),
    CONV("depthwise", ALL, 0, "5x5/2", 4, 672, 672, 5, 2, 2, 672),
    CONV("patch", ALL, 0, "3x3/2", 2, 256, 512, 3, 2, 1, 1),
    CONV("taps", ALL, 64, "3x3", 2, 512, 512, 3, 1, 1, 1),
    CONV("taps", ALL, 64, "3x3", 3, 256, 256, 3, 1, 1, 1),
    CONV("taps", ALL, 64, "3x3/2", 4, 256, 512, 3, 2, 1, 1),
    CONV("skinny", ALL, 2, "3x3", 2, 512, 512, 3, 1, 1, 1),
    CONV("skinny", ALL, 1, "3x3/2", 14, 512, 512, 3, 2, 1, 1),
    CONV("skinny", ALL, 1, "1x1", 7, 2048, 512, 1, 1, 0, 1),
    DENSE("skinny", 1, 768, 512),
    DENSE("skinny", 4, 4096, 4096),
    DENSE("skinny", 8, 4096, 4096),
    DENSE("skinny", 16, 4096, 4096),
    DENSE("dense", 64, 4096, 4096),
    DENSE("dense", 256, 4096, 4096),
    CONV("dense", BOTH, 256, "1x1", 1, 512, 2048, 1, 1, 0, 1),
    CONV("dense", BOTH, 256, "1x1/2", 1, 1024, 2048, 1, 2, 0, 1),
    CONV("dense", BOTH, 4, "1x1", 3, 1024, 128, 1, 1, 0, 1),
    CONV("dense", BOTH, 0, "1x1", 7, 512, 2048, 1, 1, 0, 1),
    CONV("dense", BOTH, 0, "1x1", 7, 2048, 512, 1, 1, 0, 1),
    INFER("depthwise_infer", "3x3", 112, 32, 32, 3, 1, 1, 32),
    INFER("depthwise_infer", "5x5", 14, 672, 672, 5, 1, 2, 672),
    INFER("pointwise", "1x1", 56, 24, 144, 1, 1, 0, 1),
    CLAMP("depthwise_infer", 112, 32, 32, 3, 1, 1, 32),
    CLAMP("depthwise_infer", 112, 96, 96, 3, 2, 1, 96),
    CLAMP("depthwise_infer", 56, 144, 144, 3, 1, 1, 144),
    CLAMP("depthwise_infer", 28, 192, 192, 3, 1, 1, 192),
    CLAMP("depthwise_infer", 14, 384, 384, 3, 1, 1, 384),
    CLAMP("depthwise_infer", 7, 960, 960, 3, 1, 1, 960),
    CLAMP("pointwise", 112, 16, 96, 1, 1, 0, 1),
    CLAMP("pointwise", 56, 24, 144, 1, 1, 0, 1),
    CLAMP("pointwise", 28, 32, 192, 1, 1, 0, 1),
    CLAMP("pointwise", 14, 96, 576, 1, 1, 0, 1),
    CLAMP("pointwise", 7, 160, 960, 1, 1, 0, 1),
    CLAMP("pointwise", 7, 960, 160, 1, 1, 0, 1),
    CLAMP("pointwise", 7, 960, 320, 1, 1, 0, 1),
    CLAMP("pointwise", 7, 320, 1280, 1, 1, 0, 1),
    INFER("pointwise", "1x1", 14, 112, 672, 1, 1, 0, 1),
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

static int images = 8;
static bool warm;
enum { CACHES = 96 << 20 };
static double seconds = 0.2, copy_bytes; /* a second, read and written */

/* ---- times -------------------------------------------------------------- */

/* Of this thread: other programs may run. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void measure_copies(void)
{
    enum { SIZE = 128 << 20 };
    char *from = malloc(SIZE), *to = malloc(SIZE);
    double s = 1e9;

    if (!from || !to)
        bail_out("out of memory");
    memset(from, 1, SIZE);
    memset(to, 1, SIZE);
    for (int i = 0; i < 5; i++) {
        double begin = now();

        memcpy(to, from, SIZE);
        s = least(s, now() - begin);
    }
    copy_bytes = 2.0 * SIZE / s;
    free(from);
    free(to);
}

/* ---- an operation ------------------------------------------------------- */

struct trial {
    const struct line *line;
    struct check *k;
    struct ddp__call call;
    struct dnn_peer *peer;
    double ours, theirs; /* seconds */
};

/* A norm that is none: oneDNN's layer has no norm folded into it. */
static void make_neutral(struct check_tensor *bn, int c)
{
    for (int i = 0; i < 4 * c; i++)
        check_set(bn, (size_t)i, i < c || i >= 3 * c);
}

static struct check *tensors_of(const struct line *l, enum ddp_dtype type)
{
    struct check_row row = l->row;
    struct check *k;

    row.cap = row.n = row.n ? row.n : images;
    k = check_new(&row, type);
    if (!k)
        bail_out("out of memory");
    check_fill(k);
    if (row.family == CHECK_CONV_NORM)
        make_neutral(&k->tensor[ROLE_BN], row.y.c);
    return k;
}

static void run_ours(struct trial *t)
{
    struct check *k = t->k;

    if (k->row.family != CHECK_CONV_NORM)
        k->tensor[ROLE_W].version++;
    if (check_run(k, &ddp__cpu, &t->call, k->row.n, false) < 0)
        bail_out("%s: %s", k->row.what, ddp_errmsg());
}

/* Nothing of before remains in a cache, as between the layers of a step. */
static void empty_caches(void)
{
    static char *other;

    if (!other && !(other = malloc(CACHES)))
        bail_out("out of memory");
    for (size_t i = 0; i < CACHES; i += 64)
        other[i]++;
}

static void measure(struct trial *t)
{
    double spent = 0;

    t->ours = t->theirs = 1e9;
    do {
        double begin, middle, end;

        if (!warm)
            empty_caches();
        begin = now();
        run_ours(t);
        middle = now();
        t->ours = least(t->ours, middle - begin);
        if (!warm)
            empty_caches();
        begin = now();
        dnn_peer_run(t->peer);
        end = now();
        t->theirs = least(t->theirs, end - begin);
        spent += t->ours + t->theirs;
    } while (spent < seconds);
}

/* What all operands take at the speed of a copy. */
static double floor_of(struct trial *t)
{
    double bytes = 0;

    for (int i = 0; i < t->call.buffers; i++) {
        enum check_role role = check_role(t->k, t->call.op, i);

        if (role != ROLE_NONE)
            bytes += (double)t->k->tensor[role].size;
    }
    return bytes / copy_bytes;
}

static void print_trial(struct trial *t)
{
    const struct check_row *r = &t->k->row;

    printf("| %s: %s | %dx%dx%dx%d", t->line->file, r->what, r->n, r->x.h,
           r->x.w, r->x.c);
    if (r->y.c != r->x.c)
        printf(" to %d", r->y.c);
    printf(" | %s, %s | %.3f | ", t->k->dtype == DDP_BF16 ? "bf16" : "f32",
           ddp__signature[t->call.op].name, 1e3 * t->ours);
    printf("%.3f | %.2f | %.0f %% | %.0e |\n", 1e3 * t->theirs,
           t->theirs / t->ours, 100 * floor_of(t) / t->ours,
           dnn_peer_differs(t->peer, t->k));
    fflush(stdout);
}

static void try_op(const struct line *l, struct check *k, enum ddp__op op,
                   bool print)
{
    struct trial t = {.line = l, .k = k, .call = check_call(k, op)};

    if (ddp__cpu.prepare(&t.call, &t.call.on[DDP_CPU].plan) < 0)
        bail_out("%s: %s", k->row.what, ddp_errmsg());
    run_ours(&t);
    if (print && (t.peer = dnn_peer_new(k, op))) {
        dnn_peer_run(t.peer);
        measure(&t);
        print_trial(&t);
        dnn_peer_free(t.peer);
    }
    if (t.call.on[DDP_CPU].plan)
        ddp__cpu.release(t.call.on[DDP_CPU].plan);
}

/* Forward also where it is not asked for: the others read its results. */
static void try_line(const struct line *l, enum ddp_dtype type)
{
    const struct check_kind *kind = &check_kinds[l->row.family];
    struct check *k = tensors_of(l, type);

    for (int i = 0; i < kind->ops; i++)
        if (i == 0 || l->passes & 1u << i)
            try_op(l, k, kind->op[i], l->passes & 1u << i);
    check_free(k);
}

/* ---- the table ---------------------------------------------------------- */

static bool is_wanted(const struct line *l, char **word)
{
    char text[160];

    snprintf(text, sizeof(text), "%s: %s %dx%dx%d", l->file, l->row.what,
             l->row.x.h, l->row.x.w, l->row.x.c);
    for (int i = 0; word[i]; i++)
        if (strstr(text, word[i]))
            return true;
    return !word[0];
}

/* Our kernels of inference, and Winograd's of rows and columns, have no bf16.
 */
static bool has_bf16(const struct line *l)
{
    return ddp__dnn_bf16() && l->row.family != CHECK_CONV_NORM &&
           strcmp(l->file, "wino_line") != 0;
}

/* Tiles of AMX have no f32. */
static bool has_f32(const struct line *l)
{
    return strncmp(l->file, "amx", 3) != 0;
}

static bool has_type(const struct line *l, enum ddp_dtype type)
{
    return type == DDP_BF16 ? has_bf16(l) : has_f32(l);
}

static void print_table(char **word)
{
    printf("| %s, %s | samples, shape | type, pass | ours, ms | oneDNN, ms | "
           "times | floor | differs |\n",
           ddp__dnn_version(), ddp__dnn_isa());
    printf("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < LINES; i++)
        for (enum ddp_dtype type = DDP_F32; type <= DDP_BF16; type++)
            if (is_wanted(&lines[i], word) && has_type(&lines[i], type))
                try_line(&lines[i], type);
}

static int usage(void)
{
    fprintf(stderr,
            "Usage: kernelbench [-w] [-n IMAGES] [-s SECONDS] [WORD]...\n");
    return 64;
}

int main(int argc, char **argv)
{
    struct ddp__machine machine = {.l2_of_core =
                                       (size_t)sysconf(_SC_LEVEL2_CACHE_SIZE)};
    int option;

    while ((option = getopt(argc, argv, "n:s:w")) != -1)
        if (option == 'n')
            images = atoi(optarg);
        else if (option == 's')
            seconds = atof(optarg);
        else if (option == 'w')
            warm = true;
        else
            return usage();
    if (images < 1)
        return usage();
    if (ddp__cpu.init && ddp__cpu.init(&machine) < 0)
        bail_out("%s", ddp_errmsg());
    measure_copies();
    print_table(argv + optind);
    if (ddp__cpu.fini)
        ddp__cpu.fini();
    return 0;
}
#endif
