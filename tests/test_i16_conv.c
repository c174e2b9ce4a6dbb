/* test_i16_conv.c - convolutions by products of 16-bit integers against sums
 * in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A vector of k values becomes integers whose norm is 32766, so each is off by
 * at most half a unit, and a sum of products by at most sqrt(k) / 32766 of both
 * norms; the result is then rounded to bf16, by 2^-8 of itself.  That holds for
 * each output.  Roundings are independent of each other: all outputs together
 * are off by sqrt(k / 6) / 32766 of their norm, and by 1.66e-3 for bf16 (2^-8 /
 * sqrt(3) for numbers just above a power of two, half of that just below); a
 * fifth more is allowed.
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
#include "cpu/product/i16_conv.h"
#include "cpu/product/i16_rows.h"
#include "cpu/product/i16_weight.h"
#include "random.h"

/* What integers' norms are, and how far off bf16 is. */
static const double NORM = 32766, ROUND = 1.66e-3;

enum { GUARD = 64 }; /* values after y, which nobody may write */

struct row {
    int n, h, w, c, o, k, stride, pad;
    enum ddp_act act;
    bool bias;
    float scale; /* of x */
};

static const struct row rows[] = {
    {2, 13, 11, 64, 96, 1, 1, 0, DDP_IDENTITY, false, 1},
    {3, 7, 9, 24, 40, 1, 1, 0, DDP_RELU, true, 1}, /* half a panel */
    {1, 5, 7, 3, 5, 1, 1, 0, DDP_RELU6, true, 9},  /* an odd value is left */
    {2, 5, 3, 32, 50, 1, 1, 0, DDP_IDENTITY, false, 1},  /* part of a panel */
    {2, 5, 3, 32, 40, 1, 1, 0, DDP_IDENTITY, false, 1},  /* of half of one */
    {2, 9, 8, 32, 64, 1, 2, 0, DDP_IDENTITY, false, 1},  /* pixels left out */
    {2, 9, 10, 33, 50, 3, 2, 1, DDP_RELU, true, 1},      /* padding */
    {2, 30, 23, 3, 64, 7, 2, 3, DDP_IDENTITY, false, 1}, /* a first layer */
    {1, 3, 2, 16, 16, 5, 1, 2, DDP_IDENTITY, true, 1},   /* wider than images */
    {1, 57, 64, 16, 512, 1, 1, 0, DDP_IDENTITY, false, 1}, /* past caches */
    {1, 9, 9, 512, 512, 3, 2, 1, DDP_IDENTITY, false, 1},  /* many weights */
    {2, 6, 5, 48, 32, 1, 1, 0, DDP_IDENTITY, false, 1e-30F},
    {2, 6, 5, 48, 32, 1, 1, 0, DDP_IDENTITY, false, 1e30F},
};

struct layer {
    struct ddp__conv_shape s;
    struct ddp__i16_filters f;
    uint16_t *x, *y;
    void *map, *bias_map;
    float *w, *bias;
    uint32_t *packed;
    size_t pixels, mapped, bias_mapped; /* pixels: of an output */
};

/* ---- layers ------------------------------------------------------------- */

static struct ddp__conv_shape shape_of(const struct row *r)
{
    int up = 2 * r->pad - r->k;

    return (struct ddp__conv_shape){.type = DDP_BF16,
                                    .n = r->n,
                                    .h = r->h,
                                    .w = r->w,
                                    .c = r->c,
                                    .oh = (r->h + up) / r->stride + 1,
                                    .ow = (r->w + up) / r->stride + 1,
                                    .o = r->o,
                                    .conv = {.kh = r->k,
                                             .kw = r->k,
                                             .sh = r->stride,
                                             .sw = r->stride,
                                             .dh = 1,
                                             .dw = 1,
                                             .top = r->pad,
                                             .left = r->pad,
                                             .bottom = r->pad,
                                             .right = r->pad,
                                             .groups = 1,
                                             .bias = r->bias,
                                             .act = r->act}};
}

/* turn: the filters are those of a layer with two more taps, in another
 * order. */
static void choose_filters(struct layer *l, bool turn)
{
    size_t taps = (size_t)(l->s.conv.kh * l->s.conv.kw);

    l->f = (struct ddp__i16_filters){
        .w = l->w, .turn = turn, .taps = turn ? taps + 2 : taps};
    for (size_t i = 0; turn && i < taps; i++)
        l->f.tap[i] = taps - i;
}

static void pack(struct layer *l)
{
    for (int i = 0; i < ddp__i16_weight_parts(&l->s); i++)
        if (ddp__i16_weight_pack(&l->s, &l->f, i, l->packed) < 0)
            bail_out("%s", ddp_errmsg());
}

static void layer_new(struct layer *l, const struct row *r, bool turn)
{
    size_t values = (size_t)(r->n * r->h * r->w * r->c);
    size_t outputs;

    l->s = shape_of(r);
    l->pixels = (size_t)(l->s.oh * l->s.ow);
    outputs = (size_t)r->n * l->pixels * (size_t)r->o;
    l->x = new_at_edge(values * sizeof(*l->x), &l->map, &l->mapped);
    for (size_t i = 0; i < values; i++)
        l->x[i] = ddp__to_bf16(r->scale * random_float());
    l->y = new_array(outputs + GUARD, sizeof(*l->y));
    l->w = random_floats((size_t)((r->k * r->k + 2) * r->c * r->o));
    l->bias = new_at_edge((size_t)r->o * sizeof(*l->bias), &l->bias_map,
                          &l->bias_mapped);
    for (int i = 0; i < r->o; i++)
        l->bias[i] = random_float();
    l->packed = new_array(ddp__i16_weight_size(&l->s), 1);
    choose_filters(l, turn);
    pack(l);
}

static void layer_free(struct layer *l)
{
    munmap(l->map, l->mapped);
    free(l->y);
    free(l->w);
    munmap(l->bias_map, l->bias_mapped);
    free(l->packed);
}

static void run(const struct layer *l, const struct ddp__conv_shape *s,
                const uint16_t *x, uint16_t *y)
{
    struct ddp__i16_target to = ddp__i16_target(s, y);

    if (ddp__i16_conv_run(s, x, l->packed, s->conv.bias ? l->bias : NULL, &to) <
        0)
        bail_out("%s", ddp_errmsg());
}

/* ---- oracle ------------------------------------------------------------- */

static double weight(const struct layer *l, size_t o, int tap, size_t c)
{
    size_t all = (size_t)l->s.o, channels = (size_t)l->s.c;

    if (l->f.turn)
        return l->w[(c * l->f.taps + l->f.tap[tap]) * all + o];
    return l->w[(o * l->f.taps + (size_t)tap) * channels + c];
}

/* A sum of products, and squares of the norms of what is multiplied. */
struct sum {
    double of, xx, ww;
};

static void add_tap(const struct layer *l, const uint16_t *x, size_t o, int tap,
                    struct sum *sum)
{
    for (size_t c = 0; c < (size_t)l->s.c; c++) {
        double v = x ? ddp__from_bf16(x[c]) : 0, w = weight(l, o, tap, c);

        sum->of += v * w;
        sum->xx += v * v;
        sum->ww += w * w;
    }
}

static struct sum sum_of(const struct layer *l, size_t pixel, size_t o)
{
    const struct ddp__conv_shape *s = &l->s;
    const struct ddp__conv *k = &s->conv;
    int p = (int)(pixel % l->pixels), image = (int)(pixel / l->pixels);
    struct sum sum = {0, 0, 0};

    for (int i = 0; i < k->kh * k->kw; i++) {
        int y = p / s->ow * k->sh - k->top + i / k->kw;
        int x = p % s->ow * k->sw - k->left + i % k->kw;
        bool inside = y >= 0 && y < s->h && x >= 0 && x < s->w;
        size_t at = (size_t)((image * s->h + y) * s->w + x) * (size_t)s->c;

        add_tap(l, inside ? l->x + at : NULL, o, i, &sum);
    }
    return sum;
}

static double act(double v, enum ddp_act a)
{
    v = a == DDP_IDENTITY ? v : fmax(v, 0);
    return a == DDP_RELU6 ? fmin(v, 6) : v;
}

/* ---- tests -------------------------------------------------------------- */

static void test_errors(const struct layer *l, const char *name)
{
    double k = (double)(l->s.conv.kh * l->s.conv.kw * l->s.c);
    double error = 0, norm = 0, worst = 0, most;

    for (size_t p = 0; p < (size_t)l->s.n * l->pixels; p++)
        for (size_t o = 0; o < (size_t)l->s.o; o++) {
            struct sum sum = sum_of(l, p, o);
            double want = sum.of + (l->s.conv.bias ? (double)l->bias[o] : 0);
            double is = ddp__from_bf16(l->y[p * (size_t)l->s.o + o]), d;

            d = is - act(want, l->s.conv.act);
            most = fabs(want) * 0x1p-8 + sqrt(k * sum.xx * sum.ww) / NORM;
            worst = fmax(worst, fabs(d) / (most + 1e-38));
            error += d * d;
            norm += act(want, l->s.conv.act) * act(want, l->s.conv.act);
        }
    most = sqrt(k / 6 / NORM / NORM + ROUND * ROUND) * 1.2;
    error = sqrt(error / norm);
    ok(worst <= 1, "%s: no output is off by more than %.2f of the bound", name,
       worst);
    ok(error <= most, "%s: %.2e of the norm, at most %.2e", name, error, most);
}

/* Each image by itself, and where lines begin elsewhere. */
static void test_bits(const struct layer *l, const char *name)
{
    struct ddp__conv_shape one = l->s;
    size_t x = (size_t)(one.h * one.w * one.c), y = l->pixels * (size_t)one.o;
    size_t images = (size_t)one.n;
    uint16_t *other = new_array(images * y + GUARD, sizeof(*other));

    run(l, &l->s, l->x, other + 1);
    ok(memcmp(l->y, other + 1, images * y * sizeof(*other)) == 0,
       "%s: the same bits at any address", name);
    one.n = 1;
    for (size_t i = 0; i < images; i++)
        run(l, &one, l->x + i * x, other + i * y);
    ok(memcmp(l->y, other, images * y * sizeof(*other)) == 0,
       "%s: the same bits in any sub-batch", name);
    free(other);
}

/* Outputs that are two pixels of a row, and of a column, apart. */
static void test_target(const struct layer *l, const char *name)
{
    size_t o = (size_t)l->s.o, row = 2 * (size_t)l->s.ow * o;
    size_t all = (size_t)(l->s.n * l->s.oh) * 2 * row, wrong = 0;
    uint16_t *wide = new_array(all, sizeof(*wide));
    struct ddp__i16_target to = {wide, 2 * o, 2 * row,
                                 2 * (size_t)l->s.oh * row};

    if (ddp__i16_conv_run(&l->s, l->x, l->packed,
                          l->s.conv.bias ? l->bias : NULL, &to) < 0)
        bail_out("%s", ddp_errmsg());
    for (size_t i = 0; i < all; i++) {
        size_t y = i / row, x = i % row / o;
        size_t at = (y / 2 * (size_t)l->s.ow + x / 2) * o + i % o;

        wrong += wide[i] != (y % 2 || x % 2 ? 0x5a5a : l->y[at]);
    }
    ok(wrong == 0, "%s: outputs apart, and nothing between them", name);
    free(wide);
}

static void test_row(const struct row *r, bool turn)
{
    struct layer l;
    char name[100];
    uint16_t guard[GUARD];
    size_t len;

    snprintf(name, sizeof(name), "%dx%dx%dx%d to %d, %dx%d of stride %d%s%s",
             r->n, r->h, r->w, r->c, r->o, r->k, r->k, r->stride,
             r->bias ? ", bias" : "", turn ? ", turned" : "");
    layer_new(&l, r, turn);
    len = (size_t)r->n * l.pixels * (size_t)r->o;
    memcpy(guard, l.y + len, sizeof(guard));
    run(&l, &l.s, l.x, l.y);
    ok(memcmp(guard, l.y + len, sizeof(guard)) == 0,
       "%s: nothing after the output is written", name);
    test_errors(&l, name);
    test_bits(&l, name);
    test_target(&l, name);
    layer_free(&l);
}

/* What y was is added before the activation. */
static void test_sum(enum ddp_act act)
{
    struct row r = rows[6];
    struct layer l;
    size_t len, wrong = 0;
    uint16_t *before;

    r.act = DDP_IDENTITY;
    layer_new(&l, &r, false);
    len = (size_t)r.n * l.pixels * (size_t)r.o;
    before = new_array(len, sizeof(*before));
    for (size_t i = 0; i < len; i++)
        before[i] = ddp__to_bf16(random_float());
    memcpy(l.y, before, len * sizeof(*before));
    l.s.sum = true;
    l.s.conv.act = act;
    run(&l, &l.s, l.x, l.y);
    for (size_t i = 0; i < len; i++) {
        double v = sum_of(&l, i / (size_t)r.o, i % (size_t)r.o).of +
                   (double)l.bias[i % (size_t)r.o] + ddp__from_bf16(before[i]);
        double want = act == DDP_SILU ? v / (1 + exp(-v)) : fmax(v, 0);

        wrong += fabs(ddp__from_bf16(l.y[i]) - want) > 0.02 * (1 + fabs(want));
    }
    ok(wrong == 0, "%s of a sum with what was there",
       act == DDP_SILU ? "SiLU" : "ReLU");
    free(before);
    layer_free(&l);
}

/* Factors of filters. */
static void test_factors(void)
{
    struct layer l;
    float *by;

    layer_new(&l, &rows[6], false);
    by = random_floats((size_t)l.s.o);
    l.f.by = by;
    pack(&l);
    run(&l, &l.s, l.x, l.y);
    for (size_t o = 0, k = 9 * (size_t)l.s.c; o < (size_t)l.s.o; o++)
        for (size_t i = 0; i < k; i++)
            l.w[o * k + i] *= by[o];
    test_errors(&l, "with factors");
    free(by);
    layer_free(&l);
}

/* Squares of weights that are 0 or infinite in f32. */
static void test_range(bool turn, float scale)
{
    struct layer l;
    char name[40];

    layer_new(&l, &rows[0], turn);
    for (size_t i = 0; i < (size_t)(3 * l.s.c * l.s.o); i++)
        l.w[i] *= scale;
    pack(&l);
    run(&l, &l.s, l.x, l.y);
    snprintf(name, sizeof(name), "weights of %g%s", (double)scale,
             turn ? ", turned" : "");
    test_errors(&l, name);
    layer_free(&l);
}

/* A NaN concerns the outputs that see it, and vectors of zeros are zero. */
static void test_special(void)
{
    struct layer l;
    size_t o, nan = 0;

    layer_new(&l, &rows[0], false);
    o = (size_t)l.s.o;
    memset(l.x, 0, (size_t)l.s.c * sizeof(*l.x));
    l.x[(size_t)l.s.c + 5] = ddp__to_bf16(NAN);
    run(&l, &l.s, l.x, l.y);
    for (size_t i = 0; i < (size_t)l.s.n * l.pixels * o; i++)
        nan += isnan(ddp__from_bf16(l.y[i]));
    ok(l.y[0] == 0 && l.y[o - 1] == 0, "zeros give zeros");
    ok(nan == o && isnan(ddp__from_bf16(l.y[o])),
       "a NaN makes all outputs of its pixel NaN, and no other");
    layer_free(&l);
}

static bool fits(const struct row *r, enum ddp_dtype type)
{
    struct ddp__conv_shape s = shape_of(r);

    s.type = type;
    return ddp__i16_conv_fits(&s);
}

static void test_choice(void)
{
    bool here = !ddp__amx_here();

    setenv("DDP_BF16_INTEGERS", "1", 1);
    ok(fits(&rows[0], DDP_BF16) == here && fits(&rows[7], DDP_BF16) == here,
       "layers in bf16 are multiplied as integers, but with AMX");
    ok(!fits(&rows[0], DDP_F32), "not in f32");
    setenv("DDP_BF16_INTEGERS", "0", 1);
    ok(!fits(&rows[0], DDP_BF16), "nor if DDP_BF16_INTEGERS=0 says so");
    unsetenv("DDP_BF16_INTEGERS");
}

int main(void)
{
    if (!ddp__avx512_vnni_here() || !ddp__avx512_bf16_here())
        skip_all("this processor lacks AVX512_VNNI or AVX512_BF16");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        test_row(&rows[i], false);
        test_row(&rows[i], true);
    }
    test_factors();
    test_sum(DDP_RELU);
    test_sum(DDP_SILU);
    for (int turn = 0; turn < 2; turn++) {
        test_range(turn, 1e-25F);
        test_range(turn, 1e25F);
    }
    test_special();
    test_choice();
    return done_testing();
}
#endif
