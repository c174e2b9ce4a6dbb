/* test_dense.c - dense layers of many samples against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
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
#include "cpu/product/dense.h"
#include "cpu/product/dense_panel.h"
#include "cpu/product/dense_wgrad.h"
#include "cpu/product/skinny_lanes.h"
#include "sums.h"

struct row {
    int n, c, o;
    bool bias;
    enum ddp_act act;
};

static const struct row rows[] = {
    {17, 33, 37, false, DDP_IDENTITY},   /* a value more than whole vectors */
    {18, 31, 49, true, DDP_IDENTITY},    /* a panel and a vector */
    {40, 1, 5, true, DDP_RELU},          /* one input */
    {29, 7, 1, true, DDP_IDENTITY},      /* one output */
    {63, 530, 47, true, DDP_RELU},       /* two blocks of sums */
    {65, 1029, 130, false, DDP_RELU6},   /* three, and three groups */
    {64, 48, 4130, true, DDP_IDENTITY},  /* sums that fill the caches */
    {64, 4130, 24, false, DDP_IDENTITY}, /* those of the data gradient */
    {33, 1600, 560, true, DDP_RELU},     /* gradients past the caches */
    {19, 1601, 520, true, DDP_IDENTITY}, /* not in whole lines */
    {1000, 129, 1061, true, DDP_RELU},   /* several blocks of rows */
};

struct layer {
    struct ddp__conv_shape s;
    size_t n, c, o;
    float *x, *dy, *w, *y, *dx, *dw;
};

/* ---- numbers ------------------------------------------------------------ */

/* Of errors and results. */
struct norms {
    double error, all;
};

static void add_error(struct norms *e, float is, double want)
{
    e->error += (is - want) * (is - want);
    e->all += want * want;
}

static double relative(const struct norms *e)
{
    return sqrt(e->error / e->all);
}

/* ---- layers ------------------------------------------------------------- */

static struct ddp__conv_shape shape_of(const struct row *r)
{
    return (struct ddp__conv_shape){.dense = true,
                                    .type = DDP_F32,
                                    .n = r->n,
                                    .h = 1,
                                    .w = 1,
                                    .c = r->c,
                                    .oh = 1,
                                    .ow = 1,
                                    .o = r->o,
                                    .conv = {1, 1, 1, 1, 1, 1, .groups = 1,
                                             .bias = r->bias, .act = r->act}};
}

static void layer_new(struct layer *l, const struct row *r)
{
    *l =
        (struct layer){.n = (size_t)r->n, .c = (size_t)r->c, .o = (size_t)r->o};
    l->s = shape_of(r);
    l->x = new_values(l->n * l->c);
    l->dy = new_values(l->n * l->o);
    l->w = new_values((l->c + 1) * l->o);
    l->y = new_values(l->n * l->o);
    l->dx = new_values(l->n * l->c);
    l->dw = new_values(l->c * l->o);
}

static void layer_free(struct layer *l)
{
    free(l->x);
    free(l->dy);
    free(l->w);
    free(l->y);
    free(l->dx);
    free(l->dw);
}

static double activate(const struct layer *l, double v)
{
    double low = l->s.conv.act == DDP_IDENTITY ? v : 0;

    v = v < low ? low : v;
    return l->s.conv.act == DDP_RELU6 && v > 6 ? 6 : v;
}

static double want_of_y(const struct layer *l, size_t i, size_t o)
{
    double sum = l->s.conv.bias ? l->w[l->c * l->o + o] : 0;

    for (size_t k = 0; k < l->c; k++)
        sum += (double)l->x[i * l->c + k] * l->w[o * l->c + k];
    return activate(l, sum);
}

/* Some columns of all rows, and the last ones. */
static bool is_looked_at(size_t column, size_t columns)
{
    return column % 7 == 0 || column + 35 > columns;
}

static void test_forward(const struct layer *l, const char *name)
{
    struct norms e = {0, 0};
    int rc = ddp__dense_fwd(&l->s, l->x, l->w, l->y);

    for (size_t i = 0; i < l->n; i++)
        for (size_t o = 0; o < l->o; o++)
            if (is_looked_at(o, l->o))
                add_error(&e, l->y[i * l->o + o], want_of_y(l, i, o));
    ok(rc == 0 && relative(&e) <= most_error(l->c), "%s: forward, %.1e", name,
       relative(&e));
    ok(is_sealed(l->y, l->n * l->o), "%s: nothing after y", name);
}

static void test_data_gradient(const struct layer *l, const char *name)
{
    struct norms e = {0, 0};
    int rc = ddp__dense_bwd_x(&l->s, l->dy, l->w, l->dx);

    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->c; k++) {
            double sum = 0;

            for (size_t o = 0; o < l->o && is_looked_at(k, l->c); o++)
                sum += (double)l->dy[i * l->o + o] * l->w[o * l->c + k];
            if (is_looked_at(k, l->c))
                add_error(&e, l->dx[i * l->c + k], sum);
        }
    ok(rc == 0 && relative(&e) <= most_error(l->o), "%s: data gradient, %.1e",
       name, relative(&e));
    ok(is_sealed(l->dx, l->n * l->c), "%s: nothing after dx", name);
}

/* ---- weight gradients --------------------------------------------------- */

/* Of weight k of output o. */
static double want_of_dw(const struct layer *l, size_t o, size_t k)
{
    double sum = 0;

    for (size_t i = 0; i < l->n; i++)
        sum += (double)l->dy[i * l->o + o] * (double)l->x[i * l->c + k];
    return sum;
}

/* before: what there was, or NULL. */
static double error_of_dw(const struct layer *l, const float *before)
{
    struct norms e = {0, 0};

    for (size_t o = 0; o < l->o; o++)
        for (size_t k = 0; k < l->c; k++) {
            size_t at = o * l->c + k;

            if (is_looked_at(k, l->c))
                add_error(&e, l->dw[at],
                          want_of_dw(l, o, k) + (before ? before[at] : 0.0));
        }
    return relative(&e);
}

static void test_weight_gradient(const struct layer *l, const char *name)
{
    size_t count = l->c * l->o;
    float *before = new_values(count);
    double e;
    int rc = ddp__dense_wgrad_run(&l->s, l->x, l->dy, false, l->dw);

    e = error_of_dw(l, NULL);
    ok(rc == 0 && e <= most_error(l->n), "%s: weight gradient, %.1e", name, e);
    memcpy(l->dw, before, count * sizeof(*before));
    rc = ddp__dense_wgrad_run(&l->s, l->x, l->dy, true, l->dw);
    e = error_of_dw(l, before);
    ok(rc == 0 && e <= most_error(l->n), "%s: added, %.1e", name, e);
    ok(is_sealed(l->dw, count), "%s: nothing after dw", name);
    free(before);
}

static void test_row(const struct row *r)
{
    struct layer l;
    char name[80];

    snprintf(name, sizeof(name), "%d samples, %d to %d", r->n, r->c, r->o);
    layer_new(&l, r);
    test_forward(&l, name);
    test_data_gradient(&l, name);
    test_weight_gradient(&l, name);
    layer_free(&l);
}

/* Weights may be the last of the memory. */
static void test_edge(void)
{
    enum { WIDE = 24, HIGH = 3 };
    void *map;
    size_t mapped;
    float *from = new_at_edge(sizeof(float) * WIDE * HIGH, &map, &mapped);
    float *to = new_array(32 * HIGH, sizeof(*to));
    bool same = true;

    for (size_t i = 0; i < WIDE * HIGH; i++)
        from[i] = random_float();
    ddp__dense_copy(from, WIDE, HIGH, WIDE, to);
    for (size_t i = 0; i < HIGH; i++)
        for (size_t j = 0; j < WIDE; j++)
            same = same && to[i * 32 + j] == from[i * WIDE + j];
    ok(same, "a panel of rows at the end of the memory");
    munmap(map, mapped);
    free(to);
}

/* ---- choice ------------------------------------------------------------- */

/* Where it was measured, and was faster. */
static void test_convolutions(void)
{
    struct row one = {128, 512, 2048, false, DDP_IDENTITY};
    struct ddp__conv_shape s = shape_of(&one);

    s.dense = false;
    ok(ddp__dense_fits(&s, DDP__FWD), "a 1x1 convolution of one pixel");
    s.conv.sh = s.conv.sw = 2;
    ok(ddp__dense_fits(&s, DDP__BWD_X), "of stride 2 too");
    s.h = 2;
    ok(!ddp__dense_fits(&s, DDP__FWD), "not where pixels are left out");
    s.w = 2;
    s.conv.sh = s.conv.sw = 1;
    s.oh = s.ow = 2;
    ok(ddp__dense_fits(&s, DDP__FWD), "four pixels");
    s.h = s.w = s.oh = s.ow = 7;
    ok(ddp__dense_fits(&s, DDP__BWD_X), "49 pixels of many weights");
    s.c = 256;
    ok(!ddp__dense_fits(&s, DDP__BWD_X), "but not of fewer");
    s.c = 512;
    s.h = s.w = s.oh = s.ow = 14;
    ok(!ddp__dense_fits(&s, DDP__FWD), "not many pixels");
}

static void test_choice(void)
{
    struct row many = {64, 4096, 4096, true, DDP_RELU};
    struct ddp__conv_shape s = shape_of(&many);

    ok(ddp__dense_fits(&s, DDP__FWD), "64 samples");
    ok(ddp__dense_fits(&s, DDP__BWD_X), "their data gradient");
    ok(ddp__dense_fits(&s, DDP__BWD_W), "their weight gradient");
    s.n = 16;
    ok(!ddp__dense_fits(&s, DDP__FWD), "not 16 samples");
    s.n = 64;
    s.conv.act = DDP_TANH;
    ok(!ddp__dense_fits(&s, DDP__FWD), "not with tanh");
    s.type = DDP_BF16;
    ok(!ddp__dense_fits(&s, DDP__BWD_X), "not bf16");
}

int main(void)
{
    if (ddp__skinny_lanes() < 16)
        skip_all("this processor lacks AVX-512");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
    test_choice();
    test_edge();
    test_convolutions();
    return done_testing();
}
#endif
