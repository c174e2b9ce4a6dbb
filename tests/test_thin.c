/* test_thin.c - 1x1 convolutions of few channels against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sum of k products in f32, one after the other, each with a rounding of at
 * most 2^-24 of the sum so far, is off by some 2^-24 sqrt(k / 6) of its norm
 * if roundings are independent, 5e-7 for 400; twice that are allowed.
 */
#include "config.h"

#include "tap.h"

#if !defined(HAVE_ONEDNN) || !defined(__x86_64__)
int main(void)
{
    skip_all("built without oneDNN, or not for x86-64");
}
#else
#include "cpu/product/pixels.h"
#include "cpu/product/thin.h"
#include "pixel_layer.h"

static const double MOST = 1e-6;

static const struct pixel_row rows[] = {
    {2, 13, 11, 16, 96, false},  /* whole lines, an odd number of pixels */
    {3, 7, 9, 24, 40, true},     /* half a panel */
    {1, 8, 7, 3, 5, true},       /* less than a vector */
    {3, 57, 57, 16, 96, true},   /* past the caches, whole lines */
    {3, 57, 57, 16, 83, false},  /* past them, and none is whole */
    {2, 14, 15, 400, 72, false}, /* many terms */
};

static void pack(const struct ddp__conv_shape *s, const float *w, bool turn,
                 void *to)
{
    for (int part = 0; part < ddp__pixels_parts(s); part++)
        ddp__pixels_pack(s, w, NULL, turn, part, to);
}

static int run(const struct ddp__conv_shape *s, const void *x,
               const void *packed, void *y)
{
    return ddp__thin_run(s, x, packed, y);
}

static const struct pixel_kernel kernel = {DDP_F32, ddp__pixels_packed_size,
                                           pack, run};

static void test_error(struct pixel_layer *l, bool turn)
{
    double e;

    pixel_test_run(l, turn);
    e = pixel_error(l, turn, NULL);
    ok(e <= MOST, "%s%s: an error of %.1e", l->name, turn ? ", transposed" : "",
       e);
}

static void test_row(const struct pixel_row *r)
{
    struct pixel_layer l;

    pixel_layer_new(&l, &kernel, r);
    test_error(&l, false);
    if (!r->bias)
        test_error(&l, true);
    pixel_test_bits(&l);
    pixel_layer_free(&l);
}

static void test_choice(void)
{
    static const struct pixel_row few = {1, 14, 14, 64, 384, false};
    static const struct pixel_row many = {1, 14, 14, 960, 128, false};
    struct ddp__conv_shape s = pixel_shape(DDP_F32, &few);

    ok(ddp__thin_fits(&s), "64 channels to 384");
    s.conv.act = DDP_RELU;
    ok(!ddp__thin_fits(&s), "not with an activation");
    s = pixel_shape(DDP_F32, &many);
    ok(!ddp__thin_fits(&s), "not 960 channels to 128");
}

int main(void)
{
    static const struct pixel_row one = {1, 1, 1, 1, 1, false};
    struct ddp__conv_shape s = pixel_shape(DDP_F32, &one);

    if (!ddp__pixels_fit(&s))
        skip_all("this processor lacks AVX-512");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_choice();
    return done_testing();
}
#endif
