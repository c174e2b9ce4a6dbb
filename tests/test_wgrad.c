/* test_wgrad.c - weight gradients as products over pixels, also by AMX, and of
 * depthwise layers, against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of bf16 too, products are exact: what is lost are roundings of sums in f32.
 * Those of 200 terms in a row, each of 2^-24 of the sum so far, come to
 * 2^-24 sqrt(200 / 3) = 5e-7 of its norm if they are independent; twice
 * that are allowed.  With AMX all pixels may be terms in a row.
 *
 * Of bf16 as integers, vectors of up to 400 pixels of a channel have a norm of
 * 32766, and roundings of both operands to half a unit come to
 * sqrt(pixels / 6) / 32766 of the norm; a half more is allowed.
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
#include "base/half.h"
#include "cpu/conv/gradient.h"
#include "random.h"

/* NULL: for compilers that know no tiles. */
#ifdef DDP__AMX
static const struct ddp__gradient *const amx = &ddp__amx;
static const struct ddp__gradient *const amx_taps = &ddp__amx_taps;
static const struct ddp__gradient *const amx_wgrad = &ddp__amx_wgrad;
#else
static const struct ddp__gradient *const amx, *const amx_taps, *const amx_wgrad;
#endif

/* A layer of k x k taps. */
struct row {
    int n, h, w, c, o, k, stride, pad, dilation;
};

static const struct row rows[] = {
    {2, 20, 21, 64, 80, 1, 1, 0, 1}, /* several blocks */
    {1, 7, 9, 24, 40, 1, 1, 0, 1},   /* half panels, an odd pixel */
    {3, 9, 9, 16, 8, 1, 2, 0, 1},    /* pixels left out */
    {2, 8, 7, 32, 16, 3, 2, 1, 1},   /* padding */
    {1, 12, 11, 5, 17, 3, 1, 2, 2},  /* less than a panel, dilation */
    {1, 1, 1, 33, 1, 1, 1, 0, 1},    /* one pixel */
};

/* Rows of taps together. */
static const struct row taps_rows[] = {
    {2, 23, 30, 3, 64, 7, 2, 3, 1}, /* the first layer, an odd image */
    {1, 6, 5, 5, 17, 5, 1, 2, 1},   /* more than a panel, an odd channel */
    {2, 2, 3, 3, 16, 11, 4, 5, 1},  /* wider than the image */
    {1, 9, 9, 4, 20, 4, 1, 0, 1},   /* no padding */
};

static const struct row thin_rows[] = {
    {2, 61, 43, 16, 96, 1, 1, 0, 1}, /* several groups of blocks */
    {1, 40, 33, 32, 16, 1, 1, 0, 1}, /* dy has fewer channels */
    {1, 7, 9, 24, 40, 1, 1, 0, 1},   /* half a vector, an odd pixel */
    {2, 5, 7, 150, 8, 1, 1, 0, 1},   /* several tiles, the last not whole */
    {1, 1, 1, 56, 61, 1, 1, 0, 1},   /* one pixel */
    {2, 33, 33, 3, 32, 3, 2, 1, 1},  /* the first layer, padding */
    {1, 40, 38, 3, 40, 3, 2, 1, 1},  /* of even images */
    {2, 6, 9, 3, 19, 3, 1, 1, 1},
    {1, 9, 8, 3, 8, 3, 2, 0, 1}, /* no padding, a column left out */
};

static const struct row depthwise_wgrad_rows[] = {
    {2, 31, 60, 40, 40, 3, 1, 1, 1}, /* several strips, half a vector */
    {2, 41, 50, 48, 48, 3, 2, 1, 1}, /* of even rows */
    {3, 7, 7, 33, 33, 3, 1, 1, 1},   /* an odd row, one channel more */
    {2, 9, 13, 17, 17, 3, 2, 1, 1},
    {2, 8, 9, 16, 16, 3, 1, 0, 1}, /* no padding */
    {1, 8, 8, 5, 5, 3, 2, 0, 1},   /* a row and a column left out */
    {1, 6, 5, 20, 20, 3, 1, 2, 1}, /* taps that see padding alone */
    {1, 5, 6, 20, 20, 3, 2, 2, 1},
    {2, 1, 1, 16, 16, 3, 1, 1, 1}, /* narrower than the taps */
    {2, 2, 2, 16, 16, 3, 2, 1, 1},
};

static const struct row amx_rows[] = {
    {3, 7, 9, 64, 32, 1, 1, 0, 1},   /* images that share a step */
    {2, 41, 30, 32, 64, 1, 1, 0, 1}, /* several blocks */
    {3, 8, 6, 32, 32, 1, 2, 0, 1},   /* images joined, pixels left out */
    {3, 9, 9, 32, 32, 1, 2, 0, 1},   /* a row more than the outputs need */
    {2, 4, 5, 32, 32, 1, 1, 1, 1},   /* padding of one tap */
    {2, 10, 9, 32, 64, 3, 1, 1, 1},  /* shifts of both kinds */
    {2, 10, 9, 64, 32, 2, 1, 0, 1},  /* rows of an even pitch */
    {2, 9, 8, 32, 32, 3, 2, 1, 1},   /* phases */
    {1, 60, 50, 32, 32, 3, 1, 1, 1}, /* segments of an image */
    {2, 11, 10, 3, 32, 7, 2, 3, 1},  /* columns of taps as channels */
};

static const struct row amx_taps_rows[] = {
    {65, 2, 2, 64, 32, 3, 1, 1, 1}, /* steps, the last not full */
    {33, 1, 1, 32, 64, 3, 1, 1, 1}, /* taps that see padding alone */
    {17, 3, 3, 32, 32, 3, 1, 1, 1}, {63, 4, 3, 32, 96, 3, 2, 1, 1},
    {40, 4, 4, 32, 32, 2, 1, 0, 1}, /* no padding */
    {32, 3, 4, 32, 32, 3, 1, 2, 2}, /* dilation */
};

static const struct row amx_wgrad_rows[] = {
    {2, 61, 43, 16, 96, 1, 1, 0, 1},   /* several blocks, a step not full */
    {1, 40, 33, 32, 16, 1, 1, 0, 1},   /* dy has fewer channels */
    {1, 7, 9, 24, 40, 1, 1, 0, 1},     /* one step and a half panel more */
    {2, 9, 7, 144, 8, 1, 1, 0, 1},     /* half a panel */
    {1, 33, 31, 56, 240, 1, 1, 0, 1},  /* a group of three quarters */
    {2, 14, 14, 672, 112, 1, 1, 0, 1}, /* few steps in a block */
    {1, 7, 7, 104, 104, 1, 1, 0, 1},
};

static const double MOST = 1e-6;

typedef int (*gradient)(const struct ddp__conv_shape *s, const void *x,
                        const void *dy, bool accumulate, float *dw);

struct layer {
    struct ddp__conv_shape s;
    bool b;
    void *x, *dy;
    float *dw;
    double *want;
    size_t weights;
};

/* ---- numbers ------------------------------------------------------------ */

static void *new_values(size_t count, bool b)
{
    void *p = new_array(count, b ? 2 : 4);

    for (size_t i = 0; i < count; i++)
        if (b)
            ((uint16_t *)p)[i] = ddp__to_bf16(random_float());
        else
            ((float *)p)[i] = random_float();
    return p;
}

static double value(const void *p, int i, bool b)
{
    return b ? ddp__from_bf16(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

/* ---- layers ------------------------------------------------------------- */

static int outputs(int in, const struct row *r)
{
    return (in + 2 * r->pad - r->dilation * (r->k - 1) - 1) / r->stride + 1;
}

static void layer_new(struct layer *l, const struct row *r, int groups, bool b)
{
    struct ddp__conv_shape *s = &l->s;

    *s = (struct ddp__conv_shape){.type = b ? DDP_BF16 : DDP_F32,
                                  .n = r->n,
                                  .h = r->h,
                                  .w = r->w,
                                  .c = r->c,
                                  .oh = outputs(r->h, r),
                                  .ow = outputs(r->w, r),
                                  .o = r->o,
                                  .conv = {.kh = r->k,
                                           .kw = r->k,
                                           .sh = r->stride,
                                           .sw = r->stride,
                                           .dh = r->dilation,
                                           .dw = r->dilation,
                                           .top = r->pad,
                                           .left = r->pad,
                                           .bottom = r->pad,
                                           .right = r->pad,
                                           .groups = groups}};
    l->b = b;
    l->weights = (size_t)(r->o * r->k * r->k * r->c / groups);
    l->x = new_values((size_t)(r->n * r->h * r->w * r->c), b);
    l->dy = new_values((size_t)(r->n * s->oh * s->ow * r->o), b);
    l->dw = new_values(l->weights, false);
    l->want = new_array(l->weights, sizeof(double));
    memset(l->want, 0, l->weights * sizeof(double));
}

static void layer_free(struct layer *l)
{
    free(l->x);
    free(l->dy);
    free(l->dw);
    free(l->want);
}

/* What output p of all adds. */
static void add_output(struct layer *l, int p)
{
    const struct ddp__conv_shape *s = &l->s;
    const struct ddp__conv *k = &s->conv;
    int c = s->c, taps = k->kh * k->kw, image = p / (s->oh * s->ow);
    int size = c / k->groups; /* of a group */

    for (int t = 0; t < taps; t++) {
        int y = p / s->ow % s->oh * k->sh - k->top + t / k->kw * k->dh;
        int x = p % s->ow * k->sw - k->left + t % k->kw * k->dw;

        if (y < 0 || y >= s->h || x < 0 || x >= s->w)
            continue;
        for (int o = 0; o < s->o; o++)
            for (int i = 0; i < size; i++)
                l->want[(o * taps + t) * size + i] +=
                    value(l->dy, p * s->o + o, l->b) *
                    value(l->x,
                          ((image * s->h + y) * s->w + x) * c +
                              o * k->groups / s->o * size + i,
                          l->b);
    }
}

/* Of the norm, where `times` of what is wanted were added up. */
static double error_of(const struct layer *l, double times)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < l->weights; i++) {
        double want = times * l->want[i], d = (double)l->dw[i] - want;

        error += d * d;
        norm += want * want;
    }
    return sqrt(error / norm);
}

/* Written, then added. */
static void test_gradient(gradient run, struct layer *l, const char *name,
                          double most)
{
    const struct ddp__conv_shape *s = &l->s;
    double first, both;

    for (int p = 0; p < s->n * s->oh * s->ow; p++)
        add_output(l, p);
    if (run(s, l->x, l->dy, false, l->dw) < 0)
        bail_out("%s", ddp_errmsg());
    first = error_of(l, 1);
    if (run(s, l->x, l->dy, true, l->dw) < 0)
        bail_out("%s", ddp_errmsg());
    both = error_of(l, 2);
    ok(first <= most && both <= most,
       "%s, %d to %d channels, %dx%d of stride %d: %.1e of the norm, added "
       "%.1e",
       name, s->c, s->o, s->conv.kh, s->conv.kw, s->conv.sh, first, both);
}

static void test_layer(const struct row *r, bool b)
{
    struct layer l;

    layer_new(&l, r, 1, b);
    test_gradient(ddp__wgrad.run, &l, b ? "bf16" : "f32", MOST);
    layer_free(&l);
}

static void test_integers(const struct row *r)
{
    struct layer l;
    double pixels;

    layer_new(&l, r, 1, true);
    pixels = fmin(400, (double)l.s.n * l.s.oh * l.s.ow);
    test_gradient(ddp__wgrad_i16.run, &l, "integers",
                  1.5 * sqrt(pixels / 6) / 32766);
    layer_free(&l);
}

/* In bf16 integers are the other way, or with AMX, for 1x1 layers, its own. */
static void test_thin(const struct row *r, bool b)
{
    struct layer l;
    bool few = r->k == 3 || r->c * r->o <= 24 * (r->c + r->o);
    bool takes =
        !b || (ddp__i16_here() && few) || (ddp__amx_here() && r->k == 3);

    layer_new(&l, r, 1, b);
    ok(ddp__wgrad_thin.fits(&l.s) == takes, "%d to %d channels%s are %sthin",
       r->c, r->o, b ? " in bf16" : "", takes ? "" : "not ");
    test_gradient(ddp__wgrad_thin.run, &l, b ? "thin, bf16" : "thin", MOST);
    layer_free(&l);
}

/* Not where bf16 is multiplied as such. */
static void test_thin_choice(void)
{
    struct layer l;

    setenv("DDP_BF16_INTEGERS", "0", 1);
    layer_new(&l, &thin_rows[0], 1, true);
    ok(!ddp__wgrad_thin.fits(&l.s), "16 to 96 channels are not thin if "
                                    "DDP_BF16_INTEGERS=0 says so");
    layer_free(&l);
    unsetenv("DDP_BF16_INTEGERS");
}

static bool takes(int c, int o, bool b)
{
    struct row r = {1, 1, 1, c, o, 1, 1, 0, 1};
    struct layer l;
    bool fits;

    layer_new(&l, &r, 1, b);
    fits = ddp__wgrad.fits(&l.s);
    layer_free(&l);
    return fits;
}

/* Few channels pay for panels in bf16. */
static void test_few(void)
{
    bool here = ddp__avx512_bf16_here() && !ddp__amx_here();

    ok(takes(24, 144, true) == here && takes(96, 16, true) == here,
       "products over pixels of 24 channels to 144 and 96 to 16 in bf16");
    ok(!takes(16, 32, true) && !takes(8, 512, true) && !takes(24, 144, false),
       "not of 16 to 32, 8 to 512, or in f32");
}

static void test_depthwise(const struct row *r, bool b)
{
    struct layer l;

    layer_new(&l, r, r->c, b);
    ok(ddp__depthwise_wgrad_rows.fits(&l.s),
       "depthwise %dx%d of %d channels has rows", r->h, r->w, r->c);
    test_gradient(ddp__depthwise_wgrad_rows.run, &l,
                  b ? "depthwise, bf16" : "depthwise", MOST);
    layer_free(&l);
}

static void test_amx(const struct row *r)
{
    struct layer l;
    double pixels;

    layer_new(&l, r, 1, true);
    pixels = (double)l.s.n * l.s.oh * l.s.ow;
    ok(amx->fits(&l.s), "AMX takes %d to %d channels, %dx%d", r->c, r->o, r->k,
       r->k);
    test_gradient(amx->run, &l, "AMX", 0x1p-23 * sqrt(pixels / 3));
    layer_free(&l);
}

static void test_amx_taps(const struct row *r)
{
    struct layer l;
    double pixels;

    layer_new(&l, r, 1, true);
    pixels = (double)l.s.n * l.s.oh * l.s.ow;
    ok(amx_taps->fits(&l.s), "AMX takes %d images of %dx%d pixels", r->n, r->h,
       r->w);
    test_gradient(amx_taps->run, &l, "taps on AMX", 0x1p-23 * sqrt(pixels / 3));
    layer_free(&l);
}

static void test_amx_wgrad(const struct row *r)
{
    struct layer l;
    double pixels;

    layer_new(&l, r, 1, true);
    pixels = (double)l.s.n * l.s.oh * l.s.ow;
    ok(amx_wgrad->fits(&l.s), "AMX takes any channels: %d to %d", r->c, r->o);
    test_gradient(amx_wgrad->run, &l, "any channels on AMX",
                  0x1p-23 * sqrt(pixels / 3));
    layer_free(&l);
}

int main(void)
{
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl"))
        skip_all("no AVX-512");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        test_layer(&rows[i], false);
        if (__builtin_cpu_supports("avx512bf16"))
            test_layer(&rows[i], true);
        if (ddp__avx512_vnni_here())
            test_integers(&rows[i]);
    }
    test_few();
    for (size_t i = 0; i < sizeof(taps_rows) / sizeof(taps_rows[0]); i++)
        if (ddp__avx512_vnni_here())
            test_integers(&taps_rows[i]);
    for (size_t i = 0; i < sizeof(thin_rows) / sizeof(thin_rows[0]); i++) {
        test_thin(&thin_rows[i], false);
        test_thin(&thin_rows[i], true);
    }
    test_thin_choice();
    for (size_t i = 0;
         i < sizeof(depthwise_wgrad_rows) / sizeof(depthwise_wgrad_rows[0]);
         i++) {
        test_depthwise(&depthwise_wgrad_rows[i], false);
        test_depthwise(&depthwise_wgrad_rows[i], true);
    }
    for (size_t i = 0; i < sizeof(amx_rows) / sizeof(amx_rows[0]); i++)
        if (ddp__amx_here())
            test_amx(&amx_rows[i]);
    for (size_t i = 0; i < sizeof(amx_taps_rows) / sizeof(amx_taps_rows[0]);
         i++)
        if (ddp__amx_here())
            test_amx_taps(&amx_taps_rows[i]);
    for (size_t i = 0; i < sizeof(amx_wgrad_rows) / sizeof(amx_wgrad_rows[0]);
         i++)
        if (ddp__amx_here())
            test_amx_wgrad(&amx_wgrad_rows[i]);
    return done_testing();
}
#endif
