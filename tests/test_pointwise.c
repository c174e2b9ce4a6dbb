/* test_pointwise.c - 1x1 convolutions of inference against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sum of k products in f32, one after the other, each with a rounding of at
 * most 2^-24 of the sum so far, is off by some 2^-24 sqrt(k / 6) of its norm
 * if roundings are independent, 8e-7 for 1024; twice that are allowed.
 */
#include "config.h"

#include "tap.h"

#include "cpu/vector/v16.h"

#if !defined(HAVE_ONEDNN) || !defined(DDP__X86)
int main(void)
{
    skip_all("built without oneDNN, or not for AVX-512");
}
#else
#include "cpu/conv/infer.h"
#include "cpu/product/pixels.h"
#include "pixel_layer.h"

static const double MOST = 1.6e-6;

static const struct pixel_row rows[] = {
    {2, 13, 11, 24, 40, true},    /* half a panel, one block after another */
    {3, 57, 57, 96, 40, true},    /* pixels from memory */
    {3, 57, 57, 96, 96, true},    /* and results that go there */
    {2, 13, 13, 1024, 272, true}, /* two tall blocks */
};

static void pack(const struct ddp__conv_shape *s, const float *w, bool turn,
                 void *to)
{
    (void)turn;
    for (int part = 0; part < ddp__pointwise.parts(s); part++)
        ddp__pointwise.pack(s, w, NULL, part, to);
}

static int run(const struct ddp__conv_shape *s, const void *x,
               const void *packed, void *y)
{
    const float *w = packed;

    return ddp__pointwise.run(s, x, w,
                              w + ddp__pixels_columns(s) * (size_t)s->c, y);
}

static const struct pixel_kernel kernel = {DDP_F32, ddp__pixels_packed_size,
                                           pack, run, false};

/* y = max(w x + b + y, 0) */
static void test_sum(struct pixel_layer *l)
{
    size_t len = (size_t)l->s.n * l->pixels * (size_t)l->s.o;
    float *before = new_array(len, sizeof(*before));
    double e;

    for (size_t i = 0; i < len; i++)
        before[i] = 4 * random_float();
    memcpy(l->y, before, len * sizeof(*before));
    l->s.sum = true;
    l->s.conv.act = DDP_RELU;
    pixel_test_run(l, false);
    e = pixel_error(l, false, before);
    ok(e <= MOST, "%s, added, relu: an error of %.1e", l->name, e);
    free(before);
}

/* As the weights of channels that were multiplied before. */
static void test_factors(const struct pixel_layer *l)
{
    size_t c = (size_t)l->s.c, o = (size_t)l->s.o;
    size_t size = ddp__pixels_columns(&l->s) * c * sizeof(float);
    float *by = random_floats(o), *w = random_floats((c + 1) * o);
    float *packed = new_array(ddp__pixels_packed_size(&l->s), 1);

    for (size_t i = 0; i < o * c; i++)
        w[i] = by[i / c] * l->w[i];
    pack(&l->s, w, false, l->packed);
    for (int part = 0; part < ddp__pointwise.parts(&l->s); part++)
        ddp__pointwise.pack(&l->s, l->w, by, part, packed);
    ok(memcmp(packed, l->packed, size) == 0, "%s, packed with factors",
       l->name);
    free(packed);
    free(by);
    free(w);
}

static void test_row(const struct pixel_row *r)
{
    struct pixel_layer l;
    double e;

    pixel_layer_new(&l, &kernel, r);
    pixel_test_run(&l, false);
    e = pixel_error(&l, false, NULL);
    ok(e <= MOST, "%s: an error of %.1e", l.name, e);
    pixel_test_bits(&l);
    test_factors(&l);
    test_sum(&l);
    pixel_layer_free(&l);
}

static void test_choice(void)
{
    static const struct pixel_row large = {1, 56, 56, 64, 256, true};
    static const struct pixel_row small = {1, 14, 14, 256, 1024, true};
    struct ddp__conv_shape s = pixel_shape(DDP_F32, &large);

    ok(ddp__pointwise.fits(&s), "56x56, 64 to 256");
    s = pixel_shape(DDP_F32, &small);
    ok(ddp__pointwise.fits(&s), "14x14, 256 to 1024");
}

int main(void)
{
    static const struct pixel_row one = {1, 1, 1, 1, 1, true};
    struct ddp__conv_shape s = pixel_shape(DDP_F32, &one);

    if (!ddp__pixels_fit(&s))
        skip_all("this processor lacks AVX-512");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_choice();
    return done_testing();
}
#endif
