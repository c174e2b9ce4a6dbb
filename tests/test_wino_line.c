/* test_wino_line.c - Winograd's convolutions in f32, and sums, by the kernels
 * for each length of vectors that this processor has SPDX-License-Identifier:
 * LGPL-2.1-or-later
 *
 * Against sums in f64, errors are relative to the norm.  Images and weights of
 * spread 1 give F(3, 7) 1.1e-6 to 1.3e-6, three times what a sum in f32 loses,
 * F(4, 3) 3.5e-7 and F(4x4, 3x3) 6.8e-7 (codelets/cpu/wino/wino.h); gradients
 * of weights less.
 * They grow with the root of the number of channels, and are allowed twice as
 * much as that of 64.  Vectors of both lengths add in the same order, so that
 * their results have the same bits.
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
#include <pthread.h>

#include "base/team.h"
#include "cpu/store.h"
#include "cpu/wino/wino.h"
#include "cpu/wino/wino_kind.h"
#include "cpu/wino/wino_lanes.h"
#include "random.h"

/* A layer: sizes, and how much padding there is before and behind. */
struct layer {
    const char *name;
    int n, h, w, c, o, kh, kw, top, bottom, left, right;
};

static const struct layer layers[] = {
    {"1x7 of 17 pixels", 2, 3, 17, 48, 32, 1, 7, 0, 0, 3, 3},
    {"7x1 of 17 pixels", 2, 17, 3, 32, 80, 7, 1, 3, 3, 0, 0},
    {"1x7, more padding behind", 1, 5, 16, 32, 48, 1, 7, 0, 0, 1, 6},
    {"7x1, more padding before", 3, 13, 2, 48, 32, 7, 1, 6, 2, 0, 0},
    {"1x7 without padding", 1, 4, 15, 64, 32, 1, 7, 0, 0, 0, 0},
    {"7x1 of many channels", 1, 12, 4, 192, 160, 7, 1, 3, 3, 0, 0},
    {"1x7 of 6 pixels", 4, 6, 6, 32, 32, 1, 7, 0, 0, 3, 3},
    {"1x3 of 8 pixels", 2, 5, 8, 32, 80, 1, 3, 0, 0, 1, 1},
    {"3x1 of 8 pixels", 2, 8, 3, 80, 32, 3, 1, 1, 1, 0, 0},
    {"3x1, more padding before", 2, 10, 3, 64, 64, 3, 1, 2, 0, 0, 0},
    {"1x3 of 4 pixels", 3, 4, 4, 48, 32, 1, 3, 0, 0, 1, 1},
    {"3x3 of 7 pixels", 3, 7, 7, 48, 80, 3, 3, 1, 1, 1, 1},
    {"3x3 of several groups of tiles", 4, 15, 17, 32, 48, 3, 3, 1, 1, 1, 1},
    {"3x3 without padding before", 5, 11, 10, 32, 32, 3, 3, 0, 2, 0, 2},
    {"3x3 of many channels", 3, 4, 4, 368, 336, 3, 3, 1, 1, 1, 1},
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

static int lanes;

int __real_ddp__wino_lanes(void);
int __wrap_ddp__wino_lanes(void);
int __wrap_ddp__wino_lanes(void)
{
    return lanes;
}

/* What is added to, and what a layer computes. */
struct data {
    struct ddp__conv_shape s;
    size_t x_len, y_len, w_len;
    float *x, *w, *dy, *bias, *start, *y, *packed, *start_w, *dw;
    double *want, *want_dw;
};

/* ---- numbers ------------------------------------------------------------ */

static float *new_floats(size_t count)
{
    float *p = new_array(count, sizeof(*p));

    for (size_t i = 0; i < count; i++)
        p[i] = (float)(random_uniform() + random_uniform() + random_uniform());
    return p;
}

/* ---- a layer ------------------------------------------------------------ */

static struct ddp__conv_shape shape_of(const struct layer *l)
{
    struct ddp__conv_shape s = {.type = DDP_F32,
                                .n = l->n,
                                .h = l->h,
                                .w = l->w,
                                .c = l->c,
                                .oh = l->h + l->top + l->bottom - l->kh + 1,
                                .ow = l->w + l->left + l->right - l->kw + 1,
                                .o = l->o,
                                .conv = {.kh = l->kh,
                                         .kw = l->kw,
                                         .sh = 1,
                                         .sw = 1,
                                         .dh = 1,
                                         .dw = 1,
                                         .top = l->top,
                                         .bottom = l->bottom,
                                         .left = l->left,
                                         .right = l->right,
                                         .groups = 1}};

    return s;
}

static void data_new(struct data *d, const struct layer *l)
{
    struct ddp__conv_shape *s = &d->s;

    *s = shape_of(l);
    d->x_len = (size_t)(s->n * s->h * s->w * s->c);
    d->y_len = (size_t)(s->n * s->oh * s->ow * s->o);
    d->w_len = (size_t)(l->kh * l->kw * s->c * s->o);
    d->x = new_floats(d->x_len);
    d->w = new_floats(d->w_len);
    d->dy = new_floats(d->y_len);
    d->bias = new_floats((size_t)s->o);
    d->start = new_floats(d->y_len);
    d->y = new_floats(d->y_len);
    d->start_w = new_floats(d->w_len);
    d->dw = new_floats(d->w_len);
    d->packed = new_array(ddp__wino_packed_size(s), 1);
    d->want = new_array(d->y_len, sizeof(double));
    d->want_dw = new_array(d->w_len, sizeof(double));
}

static void data_free(struct data *d)
{
    free(d->x);
    free(d->w);
    free(d->dy);
    free(d->bias);
    free(d->start);
    free(d->y);
    free(d->start_w);
    free(d->dw);
    free(d->packed);
    free(d->want);
    free(d->want_dw);
}

/* ---- direct sums -------------------------------------------------------- */

/* The weights of filter o and tap k, and how far those of channels are apart:
 * turned, w is (c, taps, o). */
static const float *weights(const struct data *d, bool turn, int o, int k,
                            size_t *step)
{
    int taps = d->s.conv.kh * d->s.conv.kw, c = d->s.c;

    *step = turn ? (size_t)(taps * d->s.o) : 1;
    return turn ? d->w + (taps - 1 - k) * d->s.o + o
                : d->w + (size_t)((o * taps + k) * c);
}

/* The pixel that tap k of output (n, y, x) sees; NULL: padding. */
static const float *pixel(const struct data *d, int n, int y, int x, int k)
{
    const struct ddp__conv_shape *s = &d->s;

    y += k / s->conv.kw - s->conv.top;
    x += k % s->conv.kw - s->conv.left;
    return y < 0 || y >= s->h || x < 0 || x >= s->w
               ? NULL
               : d->x + (size_t)(((n * s->h + y) * s->w + x) * s->c);
}

static void sum_pixel(struct data *d, bool turn, int at, int k)
{
    const struct ddp__conv_shape *s = &d->s;
    int taps = s->conv.kh * s->conv.kw;
    const float *x =
        pixel(d, at / s->ow / s->oh, at / s->ow % s->oh, at % s->ow, k);

    for (int o = 0; x && o < s->o; o++) {
        size_t i = (size_t)(at * s->o + o), step;
        const float *w = weights(d, turn, o, k, &step);

        for (int c = 0; c < s->c; c++) {
            d->want[i] += (double)w[(size_t)c * step] * x[c];
            d->want_dw[(o * taps + k) * s->c + c] += (double)d->dy[i] * x[c];
        }
    }
}

/* Without what is added: bias and what was there. */
static void sum_directly(struct data *d, bool turn)
{
    const struct ddp__conv_shape *s = &d->s;

    memset(d->want, 0, d->y_len * sizeof(*d->want));
    memset(d->want_dw, 0, d->w_len * sizeof(*d->want_dw));
    for (int at = 0; at < s->n * s->oh * s->ow; at++)
        for (int k = 0; k < s->conv.kh * s->conv.kw; k++)
            sum_pixel(d, turn, at, k);
}

/* ---- runs --------------------------------------------------------------- */

static double error_of(const float *got, const double *want, size_t len)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < len; i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(error / norm);
}

static void run_forward(struct data *d, bool turn, const float *bias)
{
    for (int i = 0; i < ddp__wino_parts(&d->s); i++)
        if (ddp__wino_pack(&d->s, d->w, NULL, turn, i, d->packed) < 0)
            bail_out("%s", ddp_errmsg());
    memcpy(d->y, d->start, d->y_len * sizeof(*d->y));
    if (ddp__wino_run(&d->s, d->x, d->packed, bias, d->y) < 0)
        bail_out("%s", ddp_errmsg());
}

static void run_gradient(struct data *d, bool accumulate)
{
    memcpy(d->dw, d->start_w, d->w_len * sizeof(*d->dw));
    if (ddp__wino_bwd_w(&d->s, d->x, d->dy, accumulate, d->dw) < 0)
        bail_out("%s", ddp_errmsg());
}

/* Twice 1.3e-6 for 64 channels and seven taps, 4e-7 for three, 7e-7 for nine.
 */
static double allowed(const struct data *d, double sums)
{
    int taps = d->s.conv.kh * d->s.conv.kw;
    double of_64 = taps == 7 ? 1.3e-6 : taps == 3 ? 4e-7 : 7e-7;

    return 2 * of_64 * fmax(1, sqrt(sums / 64));
}

static void test_sums(struct data *d, const char *name)
{
    double most = allowed(d, d->s.c), e;

    for (int turn = 1; turn >= 0; turn--) {
        sum_directly(d, turn);
        run_forward(d, turn, NULL);
        e = error_of(d->y, d->want, d->y_len);
        ok(e <= most, "%d lanes, %s, %s: %.1e of the norm, allowed %.1e", lanes,
           name, turn ? "turned" : "forward", e, most);
    }
    run_gradient(d, false);
    e = error_of(d->dw, d->want_dw, d->w_len);
    most = allowed(d, 64);
    ok(e <= most, "... gradient of weights: %.1e, allowed %.1e", e, most);
}

/* With bias, ReLU and what was there; gradients added. */
static void test_added(struct data *d)
{
    double e;

    for (size_t i = 0; i < d->y_len; i++)
        d->want[i] =
            fmax(0, d->want[i] + d->bias[i % (size_t)d->s.o] + d->start[i]);
    for (size_t i = 0; i < d->w_len; i++)
        d->want_dw[i] += d->start_w[i];
    d->s.sum = true;
    d->s.conv.act = DDP_RELU;
    run_forward(d, false, d->bias);
    e = error_of(d->y, d->want, d->y_len);
    ok(e <= 2 * allowed(d, d->s.c), "... with bias, sum and ReLU: %.1e", e);
    run_gradient(d, true);
    e = error_of(d->dw, d->want_dw, d->w_len);
    ok(e <= allowed(d, 64), "... gradient added: %.1e", e);
}

/* Past the caches, with bias and ReLU6; want: as test_sums() leaves it. */
static void test_past(struct data *d)
{
    size_t usual = ddp__stream_bytes, size = d->y_len * sizeof(float);
    float *y = d->y, *aligned = aligned_alloc(64, (size + 63) & ~(size_t)63);
    double e, error = 0, norm = 0;

    if (!aligned)
        bail_out("out of memory");
    d->s.conv.act = DDP_RELU6;
    d->y = aligned;
    ddp__stream_bytes = 1;
    run_forward(d, false, d->bias);
    ddp__stream_bytes = usual;
    d->y = y;
    d->s.conv.act = DDP_IDENTITY;
    for (size_t i = 0; i < d->y_len; i++) {
        double want = d->want[i] + d->bias[i % (size_t)d->s.o];

        want = fmin(6, fmax(0, want));
        error += (aligned[i] - want) * (aligned[i] - want);
        norm += d->want[i] * d->want[i];
    }
    e = sqrt(error / norm);
    ok(e <= allowed(d, d->s.c), "... past the caches, with ReLU6: %.1e", e);
    free(aligned);
}

/* ---- teams -------------------------------------------------------------- */

static void *help(void *team)
{
    ddp__team_help(team);
    return NULL;
}

/* The same bits with the help of three threads. */
static void test_team(struct data *d)
{
    struct ddp__team team = {0};
    pthread_t thread[3];
    float *alone = new_array(d->y_len, sizeof(*alone));

    run_forward(d, false, d->bias);
    memcpy(alone, d->y, d->y_len * sizeof(*alone));
    ddp__team_enter(&team);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, help, &team))
            bail_out("no thread");
    for (int i = 0; i < 20; i++)
        run_forward(d, false, d->bias);
    ddp__team_leave();
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    ok(memcmp(alone, d->y, d->y_len * sizeof(*alone)) == 0,
       "... the same bits with a team");
    free(alone);
}

/* ---- lengths of vectors ------------------------------------------------- */

/* As those of `lanes`, with bias; dw is overwritten. */
static void test_other_lanes(struct data *d, int other)
{
    int usual = lanes;
    float *y = new_array(d->y_len, sizeof(*y));
    float *dw = new_array(d->w_len, sizeof(*dw));

    for (int turn = 0; turn < 2; turn++) {
        lanes = usual;
        run_forward(d, turn, d->bias);
        run_gradient(d, turn);
        memcpy(y, d->y, d->y_len * sizeof(*y));
        memcpy(dw, d->dw, d->w_len * sizeof(*dw));
        lanes = other;
        run_forward(d, turn, d->bias);
        run_gradient(d, turn);
        ok(memcmp(y, d->y, d->y_len * sizeof(*y)) == 0 &&
               memcmp(dw, d->dw, d->w_len * sizeof(*dw)) == 0,
           "... the same bits with %d lanes%s", other, turn ? ", turned" : "");
    }
    lanes = usual;
    free(y);
    free(dw);
}

static void test_layer(const struct layer *l, int most)
{
    struct data d;

    data_new(&d, l);
    test_sums(&d, l->name);
    test_past(&d);
    test_added(&d);
    test_team(&d);
    if (lanes < most)
        test_other_lanes(&d, most);
    data_free(&d);
}

/* ---- what is left to oneDNN --------------------------------------------- */

static void test_fits(void)
{
    struct layer l = {"", 8, 17, 17, 32, 32, 1, 7, 0, 0, 3, 3};
    struct ddp__conv_shape s = shape_of(&l);

    ok(ddp__wino_fits(&s), "1x7 of 17 pixels");
    s.c = 16;
    ok(!ddp__wino_fits(&s), "not with 16 channels");
    l.w = 5;
    s = shape_of(&l);
    ok(!ddp__wino_fits(&s), "not of 5 pixels, most of which see padding");
    l.w = 17;
    s = shape_of(&l);
    s.type = DDP_BF16;
    ok(!ddp__wino_fits(&s), "not in bf16");
    s.type = DDP_F32;
    s.conv.sw = 2;
    ok(!ddp__wino_fits(&s), "not with a stride");
    s.conv.sw = 1;
    setenv("DDP_WINOGRAD", "0", 1);
    ok(!ddp__wino_fits(&s), "not with DDP_WINOGRAD=0");
    unsetenv("DDP_WINOGRAD");
}

int main(void)
{
    int most = __real_ddp__wino_lanes();

    if (most == 0)
        skip_all("this processor lacks AVX2");
    for (lanes = 8; lanes <= most; lanes += 8) {
        for (int i = 0; i < LAYERS; i++)
            test_layer(&layers[i], most);
        test_fits();
    }
    return done_testing();
}
#endif
