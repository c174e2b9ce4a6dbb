/* test_thin.c - 1x1 convolutions of few channels against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A sum of k products in f32, one after the other, each with a rounding of at
 * most 2^-24 of the sum so far, is off by some 2^-24 sqrt(k / 6) of its norm
 * if roundings are independent, 5e-7 for 400; twice that are allowed.
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
#include "cpu/amx.h"
#include "cpu/pixels.h"
#include "cpu/thin.h"

static const double MOST = 1e-6;

static const struct row {
    int n, h, w, c, o;
    bool bias;
} rows[] = {
    {2, 13, 11, 16, 96, false},  /* whole lines, an odd number of pixels */
    {3, 7, 9, 24, 40, true},     /* half a panel */
    {1, 8, 7, 3, 5, true},       /* less than a vector */
    {3, 57, 57, 16, 96, true},   /* past the caches, whole lines */
    {3, 57, 57, 16, 83, false},  /* past them, and none is whole */
    {2, 14, 15, 400, 72, false}, /* many terms */
};

struct layer {
    struct ddp__dnn_shape s;
    float *x, *w, *packed, *y;
    size_t pixels; /* of an image */
};

/* ---- numbers ------------------------------------------------------------ */

static uint64_t state = 1;

/* Between -1 and 1. */
static float draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(int64_t)(state >> 11 << 11) / 0x1p63);
}

/* With room for `more` values after the count. */
static float *new_values(size_t count, size_t more)
{
    size_t size = ((count + more) * sizeof(float) + 63) / 64 * 64;
    float *p = aligned_alloc(64, size);

    if (!p)
        bail_out("out of memory");
    for (size_t i = 0; i < size / sizeof(*p); i++)
        p[i] = draw();
    return p;
}

/* ---- layers ------------------------------------------------------------- */

enum { GUARD = 64 }; /* values after y, which nobody may write */

static void layer_new(struct layer *l, const struct row *r)
{
    struct ddp__dnn_shape *s = &l->s;
    size_t c = (size_t)r->c, o = (size_t)r->o;

    *s = (struct ddp__dnn_shape){.type = DDP_F32,
                                 .n = r->n,
                                 .h = r->h,
                                 .w = r->w,
                                 .c = r->c,
                                 .oh = r->h,
                                 .ow = r->w,
                                 .o = r->o,
                                 .conv = {.kh = 1,
                                          .kw = 1,
                                          .sh = 1,
                                          .sw = 1,
                                          .dh = 1,
                                          .dw = 1,
                                          .groups = 1,
                                          .bias = r->bias}};
    l->pixels = (size_t)(r->h * r->w);
    l->x = new_values((size_t)r->n * l->pixels * c, 0);
    l->y = new_values((size_t)r->n * l->pixels * o, GUARD);
    l->w = new_values((c + 1) * o, 0);
    l->packed = new_values(ddp__pixels_packed_size(s) / sizeof(float), 0);
}

static void layer_free(struct layer *l)
{
    free(l->x);
    free(l->y);
    free(l->w);
    free(l->packed);
}

/* Output j of pixel p; turn: of the transposed weights. */
static double output(const struct layer *l, size_t p, size_t j, bool turn)
{
    size_t c = (size_t)l->s.c, o = (size_t)l->s.o;
    double sum = l->s.conv.bias ? l->w[c * o + j] : 0;

    for (size_t i = 0; i < c; i++)
        sum += (double)l->x[p * c + i] *
               (double)l->w[turn ? i * o + j : j * c + i];
    return sum;
}

static double error_of(const struct layer *l, bool turn)
{
    size_t o = (size_t)l->s.o, all = (size_t)l->s.n * l->pixels;
    double error = 0, norm = 0;

    for (size_t p = 0; p < all; p++)
        for (size_t j = 0; j < o; j++) {
            double want = output(l, p, j, turn),
                   d = (double)l->y[p * o + j] - want;

            error += d * d;
            norm += want * want;
        }
    return sqrt(error / norm);
}

static void run(struct layer *l, const float *x, float *y)
{
    if (ddp__thin_run(&l->s, x, l->packed, y) < 0)
        bail_out("%s", ddp_errmsg());
}

/* ---- tests -------------------------------------------------------------- */

static void test_error(struct layer *l, const char *name, bool turn)
{
    size_t end = (size_t)l->s.n * l->pixels * (size_t)l->s.o;
    float guard[GUARD];
    double e;

    memcpy(guard, l->y + end, sizeof(guard));
    ddp__pixels_pack(&l->s, l->w, turn, l->packed);
    run(l, l->x, l->y);
    e = error_of(l, turn);
    ok(e <= MOST, "%s%s: an error of %.1e", name, turn ? ", transposed" : "",
       e);
    ok(memcmp(guard, l->y + end, sizeof(guard)) == 0,
       "%s: nothing after the output is written", name);
}

/* Each image by itself, and where lines begin elsewhere. */
static void test_bits(struct layer *l, const char *name)
{
    size_t x = l->pixels * (size_t)l->s.c, y = l->pixels * (size_t)l->s.o;
    size_t images = (size_t)l->s.n, size = images * y * sizeof(float);
    float *other = new_values(images * y, GUARD);

    ddp__pixels_pack(&l->s, l->w, false, l->packed);
    run(l, l->x, l->y);
    run(l, l->x, other + 1);
    ok(memcmp(l->y, other + 1, size) == 0, "%s: the same bits at any address",
       name);
    l->s.n = 1;
    for (size_t i = 0; i < images; i++)
        run(l, l->x + i * x, other + i * y);
    ok(memcmp(l->y, other, size) == 0, "%s: the same bits in any sub-batch",
       name);
    free(other);
}

static void test_row(const struct row *r)
{
    struct layer l;
    char name[80];

    layer_new(&l, r);
    snprintf(name, sizeof(name), "%dx%dx%dx%d to %d%s", r->n, r->h, r->w, r->c,
             r->o, r->bias ? ", bias" : "");
    test_error(&l, name, false);
    if (!r->bias)
        test_error(&l, name, true);
    test_bits(&l, name);
    layer_free(&l);
}

/* Where it was measured, and was faster. */
static void test_choice(void)
{
    static const struct row few = {1, 14, 14, 64, 384, false};
    static const struct row many = {1, 14, 14, 960, 128, false};
    struct layer l;

    layer_new(&l, &few);
    is_int(ddp__thin_fits(&l.s), ddp__amx_here(), "64 channels to 384");
    l.s.conv.act = DDP_RELU;
    ok(!ddp__thin_fits(&l.s), "not with an activation");
    layer_free(&l);
    layer_new(&l, &many);
    ok(!ddp__thin_fits(&l.s), "not 960 channels to 128");
    layer_free(&l);
}

int main(void)
{
    struct ddp__dnn_shape s = {.type = DDP_F32,
                               .n = 1,
                               .h = 1,
                               .w = 1,
                               .c = 1,
                               .oh = 1,
                               .ow = 1,
                               .o = 1,
                               .conv = {1, 1, 1, 1, 1, 1, .groups = 1}};

    if (!ddp__pixels_fit(&s))
        skip_all("this processor lacks AVX-512");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_choice();
    return done_testing();
}
#endif
