/* test_taps.c - convolutions of images of few pixels against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What is lost are roundings of sums in f32: those of n products in a row, each
 * of 2^-24 of the sum so far, come to 2^-24 sqrt(n / 3) of its norm if they are
 * independent; twice that are allowed, and one rounding for a bias or what was
 * there before.
 */
#include "config.h"

#include <math.h>

#include "tap.h"

#if !defined(HAVE_ONEDNN) || !defined(__x86_64__)
int main(void)
{
    skip_all("built without oneDNN, or not for x86-64");
}
#else
#include "cpu/product/taps.h"
#include "cpu/product/taps_wgrad.h"
#include "cpu/store.h"
#include "random.h"

/* A layer of k x l taps; top to right: padding. */
struct row {
    int n, h, w, c, o, k, l, stride, dilation, top, left, bottom, right;
    bool bias;
    enum ddp_act act;
};

static const struct row rows[] = {
    {65, 1, 1, 64, 96, 3, 3, 1, 1, 1, 1, 1, 1, true, DDP_IDENTITY},
    {17, 2, 2, 32, 64, 3, 3, 1, 1, 1, 1, 1, 1, false, DDP_IDENTITY},
    {63, 2, 2, 96, 32, 3, 3, 1, 1, 1, 1, 1, 1, true, DDP_RELU},
    {65, 3, 3, 32, 32, 3, 3, 1, 1, 1, 1, 1, 1, true, DDP_RELU6},
    {15, 3, 2, 64, 32, 3, 3, 1, 1, 1, 1, 1, 1, false, DDP_RELU},
    {63, 2, 2, 64, 32, 3, 3, 2, 1, 1, 1, 1, 1, true, DDP_IDENTITY},
    {17, 3, 3, 32, 96, 3, 3, 2, 1, 1, 1, 1, 1, false, DDP_IDENTITY},
    {33, 4, 4, 64, 64, 3, 3, 2, 1, 1, 1, 1, 1, true, DDP_IDENTITY},
    {17, 4, 4, 32, 32, 3, 3, 2, 1, 0, 0, 1, 1, false, DDP_IDENTITY},
    {20, 8, 8, 32, 32, 3, 3, 2, 1, 1, 1, 1, 1, false, DDP_IDENTITY},
    {29, 2, 3, 32, 64, 1, 3, 1, 1, 0, 1, 0, 1, true, DDP_IDENTITY},
    {17, 2, 2, 32, 32, 4, 4, 1, 1, 2, 1, 1, 2, true, DDP_IDENTITY},
    {31, 3, 3, 32, 32, 3, 3, 1, 2, 2, 2, 2, 2, false, DDP_IDENTITY},
    {17, 3, 3, 32, 32, 2, 2, 3, 1, 0, 0, 0, 0, true, DDP_IDENTITY},
    {13, 2, 2, 32, 32, 3, 3, 3, 1, 3, 3, 0, 0, true, DDP_IDENTITY},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct layer {
    struct ddp__conv_shape s;
    size_t x, y, w; /* values: w without the bias */
    float *in[2], *weights, *out;
    double *want;
};

/* ---- layers ------------------------------------------------------------- */

static int outputs(int in, int taps, int pad, const struct row *r)
{
    return (in + pad - r->dilation * (taps - 1) - 1) / r->stride + 1;
}

static void layer_new(struct layer *l, const struct row *r)
{
    struct ddp__conv_shape *s = &l->s;
    size_t most;

    *s = (struct ddp__conv_shape){
        .n = r->n,
        .h = r->h,
        .w = r->w,
        .c = r->c,
        .oh = outputs(r->h, r->k, r->top + r->bottom, r),
        .ow = outputs(r->w, r->l, r->left + r->right, r),
        .o = r->o,
        .conv = {r->k, r->l, r->stride, r->stride, .dh = r->dilation,
                 .dw = r->dilation, .top = r->top, .left = r->left,
                 .bottom = r->bottom, .right = r->right, .groups = 1,
                 .bias = r->bias, .act = r->act}};
    l->x = (size_t)(s->n * s->h * s->w * s->c);
    l->y = (size_t)(s->n * s->oh * s->ow * s->o);
    l->w = (size_t)(s->o * r->k * r->l * s->c);
    most = l->w + (size_t)s->o;
    most = most > l->x ? most : l->x;
    most = most > l->y ? most : l->y;
    l->in[0] = random_floats(l->x);
    l->in[1] = random_floats(l->y);
    l->weights = random_floats(l->w + (size_t)s->o);
    l->out = random_floats(most);
    l->want = new_array(most, sizeof(double));
    memset(l->want, 0, most * sizeof(double));
}

static void layer_free(struct layer *l)
{
    free(l->in[0]);
    free(l->in[1]);
    free(l->weights);
    free(l->out);
    free(l->want);
}

/* The pixel of x that output p of all sees under a tap; -1: padding. */
static int pixel_of(const struct ddp__conv_shape *s, int p, int tap)
{
    const struct ddp__conv *k = &s->conv;
    int y = p / s->ow % s->oh * k->sh - k->top + tap / k->kw * k->dh;
    int x = p % s->ow * k->sw - k->left + tap % k->kw * k->dw;

    return y < 0 || y >= s->h || x < 0 || x >= s->w
               ? -1
               : (p / (s->oh * s->ow) * s->h + y) * s->w + x;
}

/* What one output and one tap add to what is wanted of a pass. */
static void add_tap(struct layer *l, enum ddp__conv_pass pass, int p, int tap)
{
    const struct ddp__conv_shape *s = &l->s;
    int pixel = pixel_of(s, p, tap), c = s->c;

    for (int o = 0; o < s->o && pixel >= 0; o++)
        for (int i = 0; i < c; i++) {
            int x = pixel * c + i, y = p * s->o + o;
            int w = (o * s->conv.kh * s->conv.kw + tap) * c + i;

            if (pass == DDP__FWD)
                l->want[y] += (double)l->in[0][x] * l->weights[w];
            else if (pass == DDP__BWD_X)
                l->want[x] += (double)l->in[1][y] * l->weights[w];
            else
                l->want[w] += (double)l->in[0][x] * l->in[1][y];
        }
}

/* Biases, and activations of what is wanted. */
static void end_forward(struct layer *l)
{
    const struct ddp__conv_shape *s = &l->s;

    for (size_t i = 0; i < l->y; i++) {
        double *y = &l->want[i];

        *y += s->conv.bias ? l->weights[l->w + i % (size_t)s->o] : 0;
        if (s->conv.act != DDP_IDENTITY && *y < 0)
            *y = 0;
        if (s->conv.act == DDP_RELU6 && *y > 6)
            *y = 6;
    }
}

static void compute_wanted(struct layer *l, enum ddp__conv_pass pass)
{
    const struct ddp__conv_shape *s = &l->s;

    for (int p = 0; p < s->n * s->oh * s->ow; p++)
        for (int tap = 0; tap < s->conv.kh * s->conv.kw; tap++)
            add_tap(l, pass, p, tap);
    if (pass == DDP__FWD)
        end_forward(l);
}

/* Of the norm of the first values, of which `times` as much is wanted. */
static double error_of(const struct layer *l, size_t count, double times)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        double want = times * l->want[i], d = (double)l->out[i] - want;

        error += d * d;
        norm += want * want;
    }
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

static double most_of(double products)
{
    return 0x1p-23 * sqrt(products / 3) + 0x1p-24;
}

/* ---- tests -------------------------------------------------------------- */

static void test_pass(const struct row *r, enum ddp__conv_pass pass)
{
    struct layer l;
    bool forward = pass == DDP__FWD;
    double error;

    layer_new(&l, r);
    compute_wanted(&l, pass);
    if (ddp__taps_run(&l.s, pass, l.in[!forward], l.weights,
                      forward && r->bias ? l.weights + l.w : NULL, l.out) < 0)
        bail_out("%s", ddp_errmsg());
    error = error_of(&l, forward ? l.y : l.x, 1);
    ok(error <= most_of((forward ? r->c : r->o) * r->k * r->l),
       "%s of %d images of %dx%d, %d to %d channels, %dx%d of stride %d: %.1e "
       "of the norm",
       forward ? "forward" : "data gradient", r->n, r->h, r->w, r->c, r->o,
       r->k, r->l, r->stride, error);
    layer_free(&l);
}

/* Written, then added.  test_bias has gradients of biases. */
static void test_wgrad(const struct row *r)
{
    struct layer l;
    double products = r->n * (double)(r->h * r->w), error[2];

    layer_new(&l, r);
    compute_wanted(&l, DDP__BWD_W);
    for (int add = 0; add < 2; add++) {
        if (ddp__taps_wgrad(&l.s, l.in[0], l.in[1], add, l.out) < 0)
            bail_out("%s", ddp_errmsg());
        error[add] = error_of(&l, l.w, 1 + add);
    }
    ok(error[0] <= most_of(products) && error[1] <= most_of(products),
       "weight gradient of %d images of %dx%d, %d to %d channels, %dx%d of "
       "stride %d: %.1e of the norm, added %.1e",
       r->n, r->h, r->w, r->c, r->o, r->k, r->l, r->stride, error[0], error[1]);
    layer_free(&l);
}

/* Of one image, a NaN in another does not matter, and its own remains. */
static void test_nan(void)
{
    struct layer l;
    size_t image;

    layer_new(&l, &rows[2]);
    image = l.y / (size_t)l.s.n;
    l.in[0][0] = NAN;
    if (ddp__taps_run(&l.s, DDP__FWD, l.in[0], l.weights, NULL, l.out) < 0)
        bail_out("%s", ddp_errmsg());
    ok(isnan(l.out[0]) && isnan(l.out[image - 1]) && !isnan(l.out[image]),
       "a NaN passes ReLU, and only into its own image");
    layer_free(&l);
}

static bool fits(int n, int side, int c, int k, int stride,
                 enum ddp__conv_pass pass)
{
    struct row r = {n, side,  side,  c,     64,    k,     k,           stride,
                    1, k / 2, k / 2, k / 2, k / 2, false, DDP_IDENTITY};
    struct layer l;
    bool does;

    layer_new(&l, &r);
    does = ddp__taps_fits(&l.s, pass);
    layer_free(&l);
    return does;
}

static void test_choice(void)
{
    ok(fits(64, 2, 64, 3, 1, DDP__FWD) && fits(64, 2, 64, 3, 1, DDP__BWD_W),
       "2x2 pixels");
    ok(!fits(16, 2, 512, 3, 1, DDP__FWD), "few rows are others'");
    ok(!fits(64, 2, 48, 3, 1, DDP__FWD), "channels that fill no panel");
    ok(!fits(64, 2, 64, 1, 1, DDP__FWD),
       "1x1 layers have nothing to leave out");
    ok(!fits(64, 4, 64, 3, 1, DDP__FWD), "Winograd has 4x4 pixels");
    ok(fits(64, 8, 64, 3, 2, DDP__BWD_X) && !fits(64, 8, 64, 3, 2, DDP__BWD_W),
       "8x8 pixels of stride 2, but for the weight gradient");
}

int main(void)
{
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl"))
        skip_all("no AVX-512");
    for (size_t i = 0; i < ROWS; i++) {
        ddp__stream_bytes = i % 2 ? 1 : SIZE_MAX; /* of some or none */
        test_pass(&rows[i], DDP__FWD);
        test_pass(&rows[i], DDP__BWD_X);
        test_wgrad(&rows[i]);
    }
    test_nan();
    test_choice();
    return done_testing();
}
#endif
