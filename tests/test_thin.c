/* test_thin.c - 1x1 convolutions of few channels against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sum of k products in f32, one after the other, each with a rounding of at
 * most 2^-24 of the sum so far, is off by some 2^-24 sqrt(k / 6) of its norm
 * if roundings are independent, 5e-7 for 400; twice that are allowed.  In bf16
 * the result is rounded, too, which comes to 1.66e-3 of the norm
 * (test_i16_conv.c); a sixth more, 2^-9, is allowed.
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

static const double MOST = 1e-6, ROUND = 0x1p-9;

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

static const struct pixel_kernel kernels[] = {
    {DDP_F32, ddp__pixels_packed_size, pack, run, false},
    {DDP_BF16, ddp__pixels_packed_size, pack, run, false},
};

static void test_error(struct pixel_layer *l, bool turn)
{
    bool b = l->k->type == DDP_BF16;
    double e;

    pixel_test_run(l, turn);
    e = pixel_error(l, turn, NULL);
    ok(e <= MOST + (b ? ROUND : 0), "%s%s%s: an error of %.1e", l->name,
       turn ? ", transposed" : "", b ? ", bf16" : "", e);
}

static void test_row(const struct pixel_row *r, const struct pixel_kernel *k)
{
    struct pixel_layer l;

    pixel_layer_new(&l, k, r);
    test_error(&l, false);
    if (!r->bias)
        test_error(&l, true);
    pixel_test_bits(&l);
    pixel_layer_free(&l);
}

/* ---- what has more than one tap ----------------------------------------- */

static const struct patch_row {
    int n, h, w, c, o, kh, kw, stride, top, left;
    bool bias;
} patch_rows[] = {
    {2, 17, 40, 3, 32, 3, 3, 2, 1, 1, true},  /* runs inside of the image */
    {1, 6, 20, 3, 16, 3, 3, 1, 1, 1, false},  /* padding after a run */
    {1, 9, 8, 3, 24, 2, 2, 1, 0, 0, true},    /* without padding */
    {3, 5, 4, 5, 40, 4, 5, 1, 3, 2, false},   /* more than a vector, and images
                                                 hardly larger than filters */
    {1, 4, 3, 7, 8, 5, 6, 3, 4, 5, false},    /* and smaller */
    {2, 9, 11, 24, 96, 1, 1, 2, 0, 0, false}, /* pixels left out */
};

static struct ddp__conv_shape patch_shape(const struct patch_row *r)
{
    return (struct ddp__conv_shape){
        .type = DDP_BF16,
        .n = r->n,
        .h = r->h,
        .w = r->w,
        .c = r->c,
        .oh = (r->h + 2 * r->top - r->kh) / r->stride + 1,
        .ow = (r->w + 2 * r->left - r->kw) / r->stride + 1,
        .o = r->o,
        .conv = {r->kh, r->kw, r->stride, r->stride, 1, 1, r->top, r->left,
                 r->top, r->left, .groups = 1, .bias = r->bias}};
}

/* Value i of the patch of output p. */
static uint16_t patch_value(const struct ddp__conv_shape *s, const uint16_t *x,
                            int p, int i)
{
    const struct ddp__conv *k = &s->conv;
    int row = p / s->ow, tap = i / s->c;
    int v = row % s->oh * k->sh - k->top + tap / k->kw;
    int u = p % s->ow * k->sw - k->left + tap % k->kw;

    if (v < 0 || v >= s->h || u < 0 || u >= s->w)
        return 0;
    return x[((row / s->oh * s->h + v) * s->w + u) * s->c + i % s->c];
}

/* What outputs see as the pixels of a 1x1 layer. */
static void test_patches(const struct patch_row *r)
{
    struct ddp__conv_shape s = patch_shape(r), one = ddp__thin_product(&s);
    int outputs = s.n * s.oh * s.ow, inputs = s.n * s.h * s.w * s.c;
    size_t mapped, len = (size_t)(outputs * s.o);
    void *map;
    uint16_t *x = new_at_edge((size_t)inputs * sizeof(*x), &map, &mapped);
    uint16_t *patches = new_array((size_t)(outputs * one.c), sizeof(*patches));
    uint16_t *y = new_array(len, sizeof(*y)),
             *want = new_array(len, sizeof(*y));
    float *w = random_floats((size_t)((one.c + 1) * s.o));
    float *packed = new_array(ddp__pixels_packed_size(&one), 1);

    for (int i = 0; i < inputs; i++)
        x[i] = ddp__to_bf16(random_float());
    for (int i = 0; i < outputs * one.c; i++)
        patches[i] = patch_value(&s, x, i / one.c, i % one.c);
    one.h = s.oh;
    one.w = s.ow;
    one.conv =
        (struct ddp__conv){1, 1, 1, 1, 1, 1, .groups = 1, .bias = r->bias};
    pack(&one, w, false, packed);
    if (ddp__thin_run(&s, x, packed, y) < 0 ||
        ddp__thin_run(&one, patches, packed, want) < 0)
        bail_out("%s", ddp_errmsg());
    ok(memcmp(y, want, len * sizeof(*y)) == 0,
       "%dx%d of stride %d, %dx%dx%d to %d: the bits of pixels", r->kh, r->kw,
       r->stride, r->h, r->w, r->c, r->o);
    munmap(map, mapped);
    free(patches);
    free(y);
    free(want);
    free(w);
    free(packed);
}

/* ---- choice ------------------------------------------------------------- */

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

/* In bf16 only where integers are the other way. */
static void test_choice_of_bf16(void)
{
    static const struct pixel_row few = {1, 28, 28, 96, 16, false};
    static const struct pixel_row many = {1, 28, 28, 32, 192, false};
    struct ddp__conv_shape s = pixel_shape(DDP_BF16, &few);
    struct ddp__conv_shape first = patch_shape(&patch_rows[0]);

    ok(ddp__thin_fits(&s) == ddp__i16_here(), "96 channels to 16 in bf16");
    ok(ddp__thin_fits(&first) == ddp__i16_here(), "3x3 of three channels");
    setenv("DDP_BF16_INTEGERS", "0", 1);
    ok(!ddp__thin_fits(&s), "not if DDP_BF16_INTEGERS=0 says so");
    unsetenv("DDP_BF16_INTEGERS");
    s = pixel_shape(DDP_BF16, &many);
    ok(!ddp__thin_fits(&s), "not 32 channels to 192 in bf16");
}

int main(void)
{
    static const struct pixel_row one = {1, 1, 1, 1, 1, false};
    struct ddp__conv_shape s = pixel_shape(DDP_F32, &one);

    if (!ddp__pixels_fit(&s))
        skip_all("this processor lacks AVX-512");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int b = 0; b < 2; b++)
            test_row(&rows[i], &kernels[b]);
    for (size_t i = 0; i < sizeof(patch_rows) / sizeof(patch_rows[0]); i++)
        test_patches(&patch_rows[i]);
    test_choice();
    test_choice_of_bf16();
    return done_testing();
}
#endif
