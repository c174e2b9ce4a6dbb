/* test_amx_pixels.c - 1x1 convolutions on AMX tiles against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Products of two bf16 are exact in f32.  A sum of k of them has k roundings of
 * at most 2^-24 of the sum of their sizes, and its own to bf16, 2^-8 of itself:
 * each output must be as close.
 */
#include "config.h"

#include "tap.h"

#if !defined(HAVE_ONEDNN) || !defined(__x86_64__)
int main(void)
{
    skip_all("built without oneDNN, or not for x86-64");
}
#else
#include "cpu/amx/amx_pixels.h"
#include "cpu/amx/amx_weight.h"
#include "cpu/isa.h"
#include "pixel_layer.h"

static const struct pixel_row rows[] = {
    {1, 8, 8, 32, 32, false},   /* whole tiles alone */
    {1, 7, 7, 16, 96, false},   /* half a step, 17 pixels left */
    {1, 5, 5, 24, 40, true},    /* fewer pixels than two tiles have */
    {2, 13, 11, 40, 24, false}, /* two equal steps, half a panel left */
    {1, 9, 7, 80, 112, true},     {3, 7, 9, 112, 80, false},
    {2, 8, 8, 8, 5, true},        /* less than a panel */
    {1, 14, 14, 192, 320, true},  /* weights for several blocks */
    {1, 7, 7, 320, 192, false},   /* many terms */
    {4, 65, 65, 16, 96, false},   /* past the caches, whole lines */
    {4, 65, 65, 24, 104, true},   /* past them, and not all are whole */
    {5, 65, 65, 144, 240, false}, /* so, in several blocks */
};

static int run(const struct ddp__conv_shape *s, const void *x,
               const void *packed, void *y)
{
    return ddp__amx_pixels_run(s, x, packed, y);
}

static const struct pixel_kernel kernel = {DDP_BF16, ddp__amx_weight_size,
                                           ddp__amx_weight_pack, run, true};

/* The largest error, in shares of what is allowed. */
static double error_of(const struct pixel_layer *l, bool turn)
{
    size_t o = (size_t)l->s.o, all = (size_t)l->s.n * l->pixels;
    double most = 0;

    for (size_t p = 0; p < all; p++)
        for (size_t j = 0; j < o; j++) {
            struct pixel_sum s = pixel_output(l, p, j, turn);
            double sum = (l->s.c + 1) * 0x1p-24 * (s.sizes + fabs(s.of));
            double allowed = sum + 0x1p-8 * (fabs(s.of) + sum);
            double e = fabs(pixel_value(l, l->y, p * o + j) - s.of);

            most = fmax(most, isnan(e) ? INFINITY : e / allowed);
        }
    return most;
}

static void test_error(struct pixel_layer *l, bool turn)
{
    double e;

    pixel_test_run(l, turn);
    e = error_of(l, turn);
    ok(e <= 1, "%s%s: %.2f of the error that is allowed", l->name,
       turn ? ", transposed" : "", e);
}

/* What one pixel has is seen by no other one. */
static void test_neighbours(struct pixel_layer *l)
{
    size_t c = (size_t)l->s.c, row = (size_t)l->s.o * l->size;
    size_t all = (size_t)l->s.n * l->pixels, p = all / 2, same = 0;
    char *other = new_array(all, row);

    for (size_t i = 0; i < c; i++)
        pixel_set(l, p * c + i, INFINITY);
    pixel_run(l, l->x, other);
    for (size_t i = 0; i < all; i++)
        same += memcmp((char *)l->y + i * row, other + i * row, row) == 0;
    ok(same == all - 1 && !isfinite(pixel_value(l, other, p * (size_t)l->s.o)),
       "%s: infinite values of a pixel change no other", l->name);
    free(other);
}

static void test_row(const struct pixel_row *r)
{
    struct pixel_layer l;

    pixel_layer_new(&l, &kernel, r);
    test_error(&l, false);
    if (!r->bias)
        test_error(&l, true);
    pixel_test_bits(&l);
    test_neighbours(&l);
    pixel_layer_free(&l);
}

/* Where it was measured, and was faster. */
static void test_choice(void)
{
    static const struct pixel_row row = {1, 14, 14, 64, 384, false};
    struct ddp__conv_shape s = pixel_shape(DDP_BF16, &row);

    ok(ddp__amx_pixels_fits(&s), "64 channels to 384");
    s.conv.act = DDP_RELU;
    ok(!ddp__amx_pixels_fits(&s), "not with an activation");
    s.conv.act = DDP_IDENTITY;
    s.type = DDP_F32;
    ok(!ddp__amx_pixels_fits(&s), "not in f32");
    s.type = DDP_BF16;
    s.c = 68;
    ok(!ddp__amx_pixels_fits(&s), "not where tiles would be nearly empty");
    s.c = 64;
    s.h = s.w = s.oh = s.ow = 6;
    ok(!ddp__amx_pixels_fits(&s), "not for small images");
}

int main(void)
{
    if (!ddp__amx_here())
        skip_all("this processor lacks AMX");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_choice();
    return done_testing();
}
#endif
