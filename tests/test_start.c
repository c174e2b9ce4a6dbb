/* test_start.c - weights that are not drawn at random
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Whitened outputs are computed here by the definition of a convolution, and
 * their second moments are those that they should have.  Weights are f32
 * numbers and the moments a few thousand products: within 1e-5.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "ddp.h"
#include "defaults.h"
#include "tap.h"

/* ---- identity ----------------------------------------------------------- */

/* Of (out, in, 3, 3) weights: whether output o is input o. */
static bool passes(const float *w, int in, int o)
{
    bool good = true;

    for (int k = 0; k < 9 * in; k++)
        good = good && w[k] == (k == 9 * o + 4 ? 1.0f : 0.0f);
    return good;
}

/* As torch.nn.init.dirac_(w[:in]) leaves them. */
static void test_identity(int in, int out)
{
    enum { MOST = 6 * 6 * 9 };
    ddp_chain_t *c = ddp_chain_new(
        ddp_conv_new(in, out, 3,
                     &(struct ddp_conv_options){
                         CONV_DEFAULTS, .init.bound = 0.5f, .identity = true}),
        DDP_END);
    size_t row = 9 * (size_t)in, len = row * (size_t)out;
    float w[MOST] = {0};
    bool good = c && ddp_chain_init(c, 3) == 0 &&
                ddp_chain_get(c, "0.weight", w, len) == 0;
    int random = 0;

    for (int o = 0; o < out && o < in; o++)
        good = good && passes(w + (size_t)o * row, in, o);
    for (size_t k = (size_t)in * row; k < len; k++)
        random += w[k] != 0 && fabsf(w[k]) <= 0.5f;
    ok(good, "identity: %d inputs pass through %d outputs", in, out);
    is_int(random, out > in ? (out - in) * 9 * in : 0,
           "those that are left are random");
    ddp_chain_free(c);
}

static void test_groups(void)
{
    ok(!ddp_conv_new(4, 4, 3,
                     &(struct ddp_conv_options){CONV_DEFAULTS, .groups = 2,
                                                .identity = true}) &&
           ddp_errcode() == DDP_EINVAL,
       "identity with groups: %s", ddp_errmsg());
}

/* ---- whitening ---------------------------------------------------------- */

enum { N = 30, H = 6, W = 5, C = 2, K = 2, LEN = K * K * C, OUT = 2 * LEN - 2 };
enum { SIZE = H * W * C };

/* Values that depend on their neighbours and have a mean. */
static void make_bytes(uint8_t x[N][SIZE])
{
    uint32_t r = 1;

    for (int n = 0; n < N; n++)
        for (int i = 0; i < SIZE; i++) {
            r = r * 1664525u + 1013904223u;
            x[n][i] = (uint8_t)((r >> 26) + (i > C ? x[n][i - C] / 2 : 20) +
                                (i % C && i ? x[n][i - 1] / 3 : 0));
        }
}

static ddp_dataset_t *data_of(const void *x, enum ddp_dtype type)
{
    static const int32_t label[N];
    struct ddp_arrays a;

    ddp_arrays_init(&a);
    a.x = x;
    a.type = type;
    a.shape = (struct ddp_shape){H, W, C};
    a.count = N;
    a.label = label;
    a.classes = 2;
    return ddp_dataset_arrays(&a);
}

static ddp_chain_t *first_of(int in, int out)
{
    return ddp_chain_new(ddp_conv_new(in, out, K,
                                      &(struct ddp_conv_options){
                                          CONV_DEFAULTS, .no_bias = true}),
                         DDP_END);
}

/* Output o of the patch at (y, x); weights are (o, c, y, x). */
static double output(const float *w, const float *image, int o, int y, int x)
{
    double sum = 0;

    for (int c = 0; c < C; c++)
        for (int i = 0; i < K; i++)
            for (int j = 0; j < K; j++)
                sum += (double)w[((o * C + c) * K + i) * K + j] *
                       (double)image[((y + i) * W + x + j) * C + c];
    return sum;
}

/* The mean of a product of outputs over all patches. */
static double moment(const float *w, float x[N][SIZE], int a, int b)
{
    double sum = 0;

    for (int n = 0; n < N; n++)
        for (int i = 0; i + K <= H; i++)
            for (int j = 0; j + K <= W; j++)
                sum += output(w, x[n], a, i, j) * output(w, x[n], b, i, j);
    return sum / (N * (H - K + 1) * (W - K + 1));
}

static void test_moments(const float *w, float x[N][SIZE])
{
    double off = 0;

    for (int a = 0; a < OUT; a++)
        for (int b = 0; b < OUT; b++) {
            double want = a / 2 != b / 2 ? 0 : a == b ? 1 : -1;

            off = fmax(off, fabs(moment(w, x, a, b) - want));
        }
    is_near(off, 0, 1e-5, "whitened: variances 1, in pairs, uncorrelated");
}

/* The norm of a kernel falls as the variance in its direction rises. */
static void test_order(const float *w)
{
    double before = 0;
    bool rises = true;

    for (int o = 0; o < OUT; o += 2) {
        double sum = 0;

        for (int k = 0; k < LEN; k++)
            sum += (double)w[o * LEN + k] * (double)w[o * LEN + k];
        rises = rises && sum > before;
        before = sum;
    }
    ok(rises, "the largest variance first");
}

static void test_whitening(void)
{
    static uint8_t bytes[N][SIZE];
    static float x[N][SIZE];
    float w[OUT * LEN], again[OUT * LEN];
    ddp_chain_t *c = first_of(C, OUT);
    ddp_dataset_t *f, *b;

    make_bytes(bytes);
    for (int n = 0; n < N; n++)
        for (int i = 0; i < SIZE; i++)
            x[n][i] = (float)bytes[n][i] / 255.0f;
    f = data_of(x, DDP_F32);
    b = data_of(bytes, DDP_U8);
    ok(ddp_chain_whiten(c, f, N, 1e-9) == 0 &&
           ddp_chain_get(c, "0.weight", w, OUT * LEN) == 0,
       "a first layer is whitened");
    test_moments(w, x);
    test_order(w);
    ok(ddp_chain_whiten(c, b, 1000, 1e-9) == 0 &&
           ddp_chain_get(c, "0.weight", again, OUT * LEN) == 0 &&
           memcmp(w, again, sizeof(w)) == 0,
       "bytes, and more samples than there are: the same weights");
    ddp_chain_free(c);
    ddp_dataset_free(f);
    ddp_dataset_free(b);
}

static void refuses(ddp_chain_t *c, int64_t n, double eps, int code)
{
    static const float x[N][SIZE];
    ddp_dataset_t *d = data_of(x, DDP_F32);

    is_int(ddp_chain_whiten(c, d, n, eps), code, "%s", ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

static void test_refusals(void)
{
    refuses(first_of(C, OUT), 0, 1e-3, DDP_EINVAL);
    refuses(first_of(C, OUT), 9, 0, DDP_EINVAL);
    refuses(first_of(C, 2 * LEN + 1), 9, 1e-3, DDP_ESHAPE);
    refuses(first_of(C + 1, OUT), 9, 1e-3, DDP_ESHAPE);
    refuses(
        ddp_chain_new(ddp_flatten_new(), ddp_dense_new(SIZE, 2, NULL), DDP_END),
        9, 1e-3, DDP_ESHAPE);
    refuses(ddp_chain_new(ddp_flatten_new(), DDP_END), 9, 1e-3, DDP_EINVAL);
}

int main(void)
{
    test_identity(4, 6);
    test_identity(6, 4);
    test_groups();
    test_whitening();
    test_refusals();
    return done_testing();
}
