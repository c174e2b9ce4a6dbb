/* test_skinny.c - products with few rows against sums in f64, by the loops for
 * each length of vectors that this processor has
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
#include "cpu/isa.h"
#include "cpu/product/patch.h"
#include "cpu/product/skinny.h"
#include "cpu/product/skinny_lanes.h"
#include "sums.h"

/* A layer whose taps see all rows, or some; 1 tap: a dense layer. */
struct row {
    size_t n, c, o, taps;
    bool bias;
};

static const struct row rows[] = {
    {1, 1, 1, 1, true},       /* less than a vector, and than ROWS */
    {2, 7, 5, 1, true},       /* of 8 */
    {3, 24, 9, 1, false},     /* a vector of 16 and one of 8 */
    {4, 47, 11, 1, true},     /* what is left of both */
    {7, 530, 13, 1, true},    /* two pieces of a row */
    {16, 1040, 770, 1, true}, /* gradients past the caches */
    {5, 1001, 800, 1, false}, /* not in whole lines */
    {33, 600, 21, 1, true},   /* three pieces of gradients */
    {64, 130, 37, 1, false},  /* as many rows as there may be */
    {16, 8203, 39, 1, true},  /* more of x than a cache holds */
    {9, 40, 18, 4, true},     /* taps that see some rows */
    {64, 48, 33, 9, false},   /* as many */
    {6, 400, 240, 9, true},   /* past the caches */
};

static int lanes;

int __real_ddp__skinny_lanes(void);
int __wrap_ddp__skinny_lanes(void);
int __wrap_ddp__skinny_lanes(void)
{
    return lanes;
}

/* pixels: rows of x. */
struct layer {
    struct row r;
    size_t in, pixels;
    struct ddp__skinny_tap *tap;
    float *x, *dy, *w, *y, *dx, *dw;
    char name[80];
};

/* ---- numbers ------------------------------------------------------------ */

static double *new_sums(size_t count)
{
    double *p = new_array(count, sizeof(*p));

    for (size_t i = 0; i < count; i++)
        p[i] = 0;
    return p;
}

/* The error of `count` values relative to the norm of the sums, which are
 * freed; 0 if all are 0. */
static double error_of(const float *is, double *want, size_t count)
{
    double error = 0, all = 0;

    for (size_t i = 0; i < count; i++) {
        error += (is[i] - want[i]) * (is[i] - want[i]);
        all += want[i] * want[i];
    }
    free(want);
    return error == 0 ? 0 : sqrt(error / all);
}

/* ---- layers ------------------------------------------------------------- */

/* Tap 1 of several sees nothing, the others two of three rows, each another
 * pixel. */
static void list_taps(struct layer *l)
{
    for (size_t t = 0; t < l->r.taps; t++) {
        struct ddp__skinny_tap *tap = &l->tap[t];

        tap->n = 0;
        for (size_t i = 0; i < l->r.n; i++) {
            if (l->r.taps > 1 && (t == 1 || (i + t) % 3 == 0))
                continue;
            tap->row[tap->n] = i;
            tap->at[tap->n++] = (i + t) * l->r.c;
        }
    }
}

static void layer_new(struct layer *l, const struct row *r)
{
    *l = (struct layer){.r = *r, .in = r->taps * r->c};
    l->pixels = r->n + r->taps - 1;
    l->tap = new_array(r->taps, sizeof(*l->tap));
    list_taps(l);
    l->x = new_values(l->pixels * r->c);
    l->dy = new_values(r->n * r->o);
    l->w = new_values((l->in + 1) * r->o);
    l->y = new_values(r->n * r->o);
    l->dx = new_values(l->pixels * r->c);
    l->dw = new_values((l->in + r->bias) * r->o);
    snprintf(l->name, sizeof(l->name), "%d lanes, %zu rows, %zu x %zu to %zu",
             lanes, r->n, r->taps, r->c, r->o);
}

static void layer_free(struct layer *l)
{
    free(l->tap);
    free(l->x);
    free(l->dy);
    free(l->w);
    free(l->y);
    free(l->dx);
    free(l->dw);
}

static int run(const struct layer *l, enum ddp__conv_pass pass, bool add)
{
    struct ddp__conv_shape s = {.dense = true,
                                .type = DDP_F32,
                                .n = (int)l->r.n,
                                .h = 1,
                                .w = 1,
                                .c = (int)l->in,
                                .oh = 1,
                                .ow = 1,
                                .o = (int)l->r.o,
                                .conv = {1, 1, 1, 1, 1, 1, .groups = 1,
                                         .bias = l->r.bias, .act = DDP_RELU}};
    struct ddp__skinny_x x = {l->pixels * l->r.c, l->r.taps, l->tap};
    struct ddp__task t = {.accumulate = add};

    if (pass == DDP__FWD) {
        t.data[DDP__DENSE_FWD_X] = l->x;
        t.data[DDP__DENSE_FWD_W] = l->w;
        t.data[DDP__DENSE_FWD_Y] = l->y;
    } else if (pass == DDP__BWD_X) {
        t.data[DDP__DENSE_BWD_X_DX] = l->dx;
        t.data[DDP__DENSE_BWD_X_W] = l->w;
        t.data[DDP__DENSE_BWD_X_DY] = l->dy;
    } else {
        t.data[DDP__DENSE_BWD_W_X] = l->x;
        t.data[DDP__DENSE_BWD_W_G] = l->dw;
        t.data[DDP__DENSE_BWD_W_DY] = l->dy;
    }
    return ddp__skinny_run(&t, &s, pass, &x);
}

/* ---- passes ------------------------------------------------------------- */

static void test_forward(const struct layer *l)
{
    size_t count = l->r.n * l->r.o;
    double *sum = new_sums(count), e;
    int rc = run(l, DDP__FWD, false);

    for (size_t i = 0; i < count && l->r.bias; i++)
        sum[i] = l->w[l->in * l->r.o + i % l->r.o];
    for (size_t t = 0; t < l->r.taps; t++)
        for (size_t i = 0; i < l->tap[t].n; i++)
            for (size_t o = 0; o < l->r.o; o++)
                for (size_t k = 0; k < l->r.c; k++)
                    sum[l->tap[t].row[i] * l->r.o + o] +=
                        (double)l->w[o * l->in + t * l->r.c + k] *
                        l->x[l->tap[t].at[i] + k];
    for (size_t i = 0; i < count; i++)
        sum[i] = fmax(sum[i], 0);
    e = error_of(l->y, sum, count);
    ok(rc == 0 && e <= most_error(l->in), "%s: forward, %.1e", l->name, e);
    ok(is_sealed(l->y, count), "%s: nothing after y", l->name);
}

static void test_data_gradient(const struct layer *l)
{
    size_t count = l->pixels * l->r.c;
    double *sum = new_sums(count), e;
    int rc = run(l, DDP__BWD_X, false);

    for (size_t t = 0; t < l->r.taps; t++)
        for (size_t i = 0; i < l->tap[t].n; i++)
            for (size_t o = 0; o < l->r.o; o++)
                for (size_t k = 0; k < l->r.c; k++)
                    sum[l->tap[t].at[i] + k] +=
                        (double)l->dy[l->tap[t].row[i] * l->r.o + o] *
                        l->w[o * l->in + t * l->r.c + k];
    e = error_of(l->dx, sum, count);
    ok(rc == 0 && e <= most_error(l->r.o * l->r.taps),
       "%s: data gradient, %.1e", l->name, e);
    ok(is_sealed(l->dx, count), "%s: nothing after dx", l->name);
}

/* before: what the gradients are added to, NULL: nothing. */
static double *gradient_of(const struct layer *l, const float *before)
{
    size_t weights = l->in * l->r.o, count = weights + l->r.bias * l->r.o;
    double *sum = new_sums(count);

    for (size_t i = 0; i < count && before; i++)
        sum[i] = before[i];
    for (size_t t = 0; t < l->r.taps; t++)
        for (size_t i = 0; i < l->tap[t].n; i++)
            for (size_t o = 0; o < l->r.o; o++)
                for (size_t k = 0; k < l->r.c; k++)
                    sum[o * l->in + t * l->r.c + k] +=
                        (double)l->dy[l->tap[t].row[i] * l->r.o + o] *
                        l->x[l->tap[t].at[i] + k];
    for (size_t i = 0; i < l->r.n && l->r.bias; i++)
        for (size_t o = 0; o < l->r.o; o++)
            sum[weights + o] += l->dy[i * l->r.o + o];
    return sum;
}

static void test_weight_gradient(const struct layer *l)
{
    size_t count = (l->in + l->r.bias) * l->r.o;
    float *before = new_values(count);
    int rc = run(l, DDP__BWD_W, false);
    double e = error_of(l->dw, gradient_of(l, NULL), count);

    ok(rc == 0 && e <= most_error(l->r.n), "%s: weight gradient, %.1e", l->name,
       e);
    memcpy(l->dw, before, count * sizeof(*before));
    rc = run(l, DDP__BWD_W, true);
    e = error_of(l->dw, gradient_of(l, before), count);
    ok(rc == 0 && e <= most_error(l->r.n), "%s: added, %.1e", l->name, e);
    ok(is_sealed(l->dw, count), "%s: nothing after dw", l->name);
    free(before);
}

static void test_row(const struct row *r)
{
    struct layer l;

    layer_new(&l, r);
    test_forward(&l);
    test_data_gradient(&l);
    test_weight_gradient(&l);
    layer_free(&l);
}

static void test_rows(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        test_row(&rows[i]);
}

/* Of 64 pixels and small weights, which Winograd's way would multiply. */
static void test_small_weights(void)
{
    struct ddp__conv_shape s = {.type = DDP_F32,
                                .n = 1,
                                .h = 8,
                                .w = 8,
                                .c = 64,
                                .oh = 8,
                                .ow = 8,
                                .o = 64,
                                .conv = {3, 3, 1, 1, 1, 1, .top = 1, .left = 1,
                                         .bottom = 1, .right = 1, .groups = 1}};

    lanes = 8;
    ok(ddp__patch_of(&s).is_skinny, "few pixels are few rows with AVX2");
    s.n = 2;
    ok(!ddp__patch_of(&s).is_skinny, "not those of two images");
}

int main(void)
{
    int most = __real_ddp__skinny_lanes();

    if (!most)
        skip_all("this processor lacks AVX2");
    for (lanes = 8; lanes <= most; lanes += 8)
        test_rows();
    lanes = most;
    test_small_weights();
    return done_testing();
}
#endif
