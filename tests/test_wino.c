/* test_wino.c - Winograd's convolutions against sums in f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * bf16 is multiplied in 16-bit integers (codelets/cpu/product/i16_round.h). The
 * yardstick is what a direct convolution with products and sums in f64 loses by
 * rounding weights and results to bf16: Winograd's, whose weights are not
 * rounded to bf16, may lose as much, and a tenth more, since errors of integers
 * grow with the root of the channels.  Gradients of weights stay f32, so that a
 * direct convolution loses nothing: 2e-3 of the norm is half of what
 * tests/judge.c allows.
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
#include "cpu/wino/wino.h"
#include "cpu/wino/wino_kind.h"
#include "cpu/product/i16_round.h"
#include "cpu/wino/wino_square.h"
#include "cpu/wino/wino_weight.h"
#include "random.h"

enum { TAPS = 9 };

/* What images are like: evenly spread, without negative values, or of sizes
 * that differ by factors of thousands. */
enum kind { EVEN, RELU, UNEVEN, KINDS };
static const char *const kind_names[] = {"even", "relu", "uneven"};

struct layer {
    struct ddp__conv_shape s;
    uint16_t *x, *y, *dy;
    float *w, *dw, *packed;
    double *want, *direct, *want_dw; /* results in f64 */
};

/* ---- numbers ------------------------------------------------------------ */

static float draw(enum kind k)
{
    double v = random_uniform() + random_uniform() + random_uniform();

    return (float)(k == RELU ? fmax(v, 0)
                   : k == UNEVEN
                       ? v * exp(3 * random_uniform() + 2 * random_uniform())
                       : v);
}

/* ---- layers ------------------------------------------------------------- */

static size_t pixels(const struct ddp__conv_shape *s)
{
    return (size_t)s->n * (size_t)s->h * (size_t)s->w;
}

static struct ddp__conv_shape shape_of(int size, int c, int o)
{
    struct ddp__conv_shape s = {.type = DDP_BF16,
                                .n = 2,
                                .h = size,
                                .w = size,
                                .c = c,
                                .oh = size,
                                .ow = size,
                                .o = o,
                                .conv = {.kh = 3,
                                         .kw = 3,
                                         .sh = 1,
                                         .sw = 1,
                                         .dh = 1,
                                         .dw = 1,
                                         .top = 1,
                                         .left = 1,
                                         .bottom = 1,
                                         .right = 1,
                                         .groups = 1}};

    return s;
}

static void layer_new(struct layer *l, int size, int c, int o, enum kind k,
                      double scale)
{
    struct ddp__conv_shape *s = &l->s;
    size_t weights = (size_t)TAPS * (size_t)c * (size_t)o, len;

    *s = shape_of(size, c, o);
    len = pixels(s) * (size_t)c;
    l->x = new_array(len, sizeof(*l->x));
    for (size_t i = 0; i < len; i++)
        l->x[i] = ddp__to_bf16((float)(scale * draw(k)));
    len = pixels(s) * (size_t)o;
    l->y = new_array(len, sizeof(*l->y));
    l->dy = new_array(len, sizeof(*l->dy));
    for (size_t i = 0; i < len; i++)
        l->dy[i] = ddp__to_bf16(draw(k == RELU ? EVEN : k));
    l->w = new_array(weights, sizeof(*l->w));
    for (size_t i = 0; i < weights; i++)
        l->w[i] = draw(EVEN);
    l->dw = new_array(weights, sizeof(*l->dw));
    l->packed = new_array(ddp__wino_packed_size(s), 1);
    l->want = new_array(len, sizeof(double));
    l->direct = new_array(len, sizeof(double));
    l->want_dw = new_array(weights, sizeof(double));
}

static void layer_free(struct layer *l)
{
    free(l->x);
    free(l->y);
    free(l->dy);
    free(l->w);
    free(l->dw);
    free(l->packed);
    free(l->want);
    free(l->direct);
    free(l->want_dw);
}

/* ---- direct sums -------------------------------------------------------- */

/* Weight of filter o, tap k and channel c; turned, w is (c, 3, 3, o). */
static float weight(const struct layer *l, bool turn, size_t o, size_t k,
                    size_t c)
{
    size_t at = turn ? (c * TAPS + TAPS - 1 - k) * (size_t)l->s.o + o
                     : (o * TAPS + k) * (size_t)l->s.c + c;

    return l->w[at];
}

/* The pixel that tap k of output p sees; NULL: padding. */
static const uint16_t *pixel(const struct layer *l, size_t p, size_t k)
{
    int h = l->s.h, w = l->s.w, at = (int)p;
    int y = at / w % h + (int)k / 3 - 1, x = at % w + (int)k % 3 - 1;

    if (y < 0 || y >= h || x < 0 || x >= w)
        return NULL;
    return l->x + (size_t)((at / (w * h) * h + y) * w + x) * (size_t)l->s.c;
}

static void sum_directly(struct layer *l, bool turn)
{
    size_t o = (size_t)l->s.o, c = (size_t)l->s.c, n = pixels(&l->s);

    memset(l->want, 0, n * o * sizeof(double));
    memset(l->direct, 0, n * o * sizeof(double));
    memset(l->want_dw, 0, TAPS * c * o * sizeof(double));
    for (size_t i = 0; i < o; i++)
        for (size_t k = 0; k < TAPS; k++)
            for (size_t j = 0; j < c; j++) {
                double w = weight(l, turn, i, k, j), dw = 0;
                double rounded = ddp__from_bf16(ddp__to_bf16((float)w));

                for (size_t p = 0; p < n; p++) {
                    const uint16_t *q = pixel(l, p, k);
                    double x = q ? ddp__from_bf16(q[j]) : 0;

                    l->want[p * o + i] += w * x;
                    l->direct[p * o + i] += rounded * x;
                    dw += x * ddp__from_bf16(l->dy[p * o + i]);
                }
                l->want_dw[(i * TAPS + k) * c + j] = dw;
            }
}

/* ---- errors ------------------------------------------------------------- */

static double relative(double error, double norm)
{
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

static double error_of_y(const struct layer *l, bool direct)
{
    size_t len = pixels(&l->s) * (size_t)l->s.o;
    double error = 0, norm = 0;

    for (size_t i = 0; i < len; i++) {
        uint16_t got = direct ? ddp__to_bf16((float)l->direct[i]) : l->y[i];
        double d = ddp__from_bf16(got) - l->want[i];

        error += d * d;
        norm += l->want[i] * l->want[i];
    }
    return relative(error, norm);
}

static double error_of_dw(const struct layer *l)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < (size_t)(TAPS * l->s.c * l->s.o); i++) {
        double d = l->dw[i] - l->want_dw[i];

        error += d * d;
        norm += l->want_dw[i] * l->want_dw[i];
    }
    return relative(error, norm);
}

static void run_forward(struct layer *l, bool turn)
{
    for (int i = 0; i < ddp__wino_parts(&l->s); i++)
        if (ddp__wino_pack(&l->s, l->w, NULL, turn, i, l->packed) < 0)
            bail_out("%s", ddp_errmsg());
    if (ddp__wino_run(&l->s, l->x, l->packed, NULL, l->y) < 0)
        bail_out("%s", ddp_errmsg());
}

static void test_layer(int size, int c, int o, enum kind k, double scale)
{
    struct layer l;
    double loss;

    layer_new(&l, size, c, o, k, scale);
    for (int turn = 0; turn < 2; turn++) {
        sum_directly(&l, turn);
        run_forward(&l, turn);
        loss = error_of_y(&l, true);
        ok(error_of_y(&l, false) <= 1.1 * loss,
           "%d pixels, %d to %d channels, %s times %g, %s: %.2e of the norm, "
           "directly %.2e",
           size, c, o, kind_names[k], scale, turn ? "turned" : "forward",
           error_of_y(&l, false), loss);
    }
    if (ddp__wino_bwd_w(&l.s, l.x, l.dy, false, l.dw) < 0)
        bail_out("%s", ddp_errmsg());
    loss = error_of_dw(&l);
    ok(loss <= 2e-3, "... gradient of weights: %.2e of the norm", loss);
    layer_free(&l);
}

/* ---- what integers do not have ------------------------------------------ */

static void test_not_finite(uint16_t value, const char *name)
{
    struct layer l;
    int finite = 0;

    layer_new(&l, 4, 32, 16, EVEN, 1);
    l.x[5] = value; /* of the first pixel, which the first outputs see */
    run_forward(&l, false);
    if (ddp__wino_bwd_w(&l.s, l.x, l.dy, false, l.dw) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < l.s.o; i++) {
        finite += isfinite(ddp__from_bf16(l.y[i]));
        finite += isfinite(l.dw[(i * TAPS + 4) * l.s.c + 5]);
    }
    is_int(finite, 0, "%s in an image is not lost", name);
    layer_free(&l);
}

/* ---- filters ------------------------------------------------------------- */

/* Those of one panel: as their transform in f32, rounded. */
static void test_filters(bool turn, double scale)
{
    enum { ROWS = 48, COLUMNS = 32, POS = DDP__WINO_POS };
    size_t len = ROWS * COLUMNS / 2, wrong = 0;
    struct layer l;
    float *u, *unit;

    layer_new(&l, 4, ROWS, COLUMNS, EVEN, 1);
    for (size_t i = 0; i < (size_t)TAPS * ROWS * COLUMNS; i++)
        l.w[i] *= (float)scale;
    u = new_array((size_t)POS * ROWS * COLUMNS, sizeof(*u));
    unit = new_array((size_t)POS * COLUMNS, sizeof(*unit));
    if (ddp__wino_pack(&l.s, l.w, NULL, turn, 0, l.packed) < 0)
        bail_out("%s", ddp_errmsg());
    ddp__wino_weights(ddp__wino_square,
                      &(struct ddp__wino_filters){
                          .w = l.w,
                          .rows = ROWS,
                          .c = turn ? COLUMNS : ROWS,
                          .turn = turn,
                      },
                      COLUMNS, 0, (size_t)ROWS * COLUMNS, u);
    for (size_t i = 0; i < POS; i++) {
        float *at = u + i * ROWS * COLUMNS;

        ddp__i16_round_columns(ROWS, COLUMNS, at, COLUMNS, at, COLUMNS,
                               unit + i * COLUMNS);
        wrong += memcmp(at, l.packed + i * len, len * sizeof(*at)) != 0;
    }
    wrong += memcmp(unit, l.packed + POS * len,
                    (size_t)POS * COLUMNS * sizeof(*unit)) != 0;
    ok(wrong == 0, "filters times %g%s: integers of rounded floats", scale,
       turn ? ", turned" : "");
    free(u);
    free(unit);
    layer_free(&l);
}

/* Large layers are packed past the caches: as panels of their own are, which
 * are not. */
static void test_large(bool turn)
{
    enum { C = 512, O = 240, WIDE = DDP__GEMM_PANEL, POS = DDP__WINO_POS };
    struct layer l;
    size_t rows = turn ? O : C, columns = turn ? C : O, wrong = 0, step, width;
    float *u = new_array((size_t)POS * C * WIDE, sizeof(*u));

    layer_new(&l, 4, (int)rows, (int)columns, EVEN, 1);
    l.s.type = DDP_F32;
    free(l.packed);
    l.packed = new_array(ddp__wino_packed_size(&l.s), 1);
    step = ddp__wino_packed_size(&l.s) / sizeof(*u) / POS;
    for (int i = 0; i < ddp__wino_parts(&l.s); i++)
        ddp__wino_pack(&l.s, l.w, NULL, turn, i, l.packed);
    for (size_t first = 0; first < columns; first += width) {
        width = ddp__wino_panel(ddp__wino_square, columns, first);
        ddp__wino_weights(ddp__wino_square,
                          &(struct ddp__wino_filters){
                              .w = l.w, .rows = rows, .c = C, .turn = turn},
                          columns, first, rows * width, u);
        for (size_t i = 0; i < POS; i++)
            wrong +=
                memcmp(u + i * rows * width, l.packed + i * step + first * rows,
                       rows * width * sizeof(*u)) != 0;
    }
    ok(wrong == 0, "filters of a large layer%s", turn ? ", turned" : "");
    free(u);
    layer_free(&l);
}

static void test_zeros(void)
{
    struct layer l;
    double sum = 0;

    layer_new(&l, 6, 16, 32, EVEN, 0);
    run_forward(&l, false);
    if (ddp__wino_bwd_w(&l.s, l.x, l.dy, false, l.dw) < 0)
        bail_out("%s", ddp_errmsg());
    for (size_t i = 0; i < pixels(&l.s) * 32; i++)
        sum += fabs(ddp__from_bf16(l.y[i]));
    for (size_t i = 0; i < TAPS * 16 * 32; i++)
        sum += fabsf(l.dw[i]);
    ok(sum == 0, "zeros remain zeros");
    layer_free(&l);
}

int main(void)
{
    struct ddp__conv_shape s = shape_of(8, 16, 16);

    if (!ddp__wino_fits(&s))
        skip_all("this processor has AMX, or no AVX512_VNNI");
    for (enum kind k = 0; k < KINDS; k++) {
        test_layer(9, 48, 32, k, 1);
        test_layer(4, 512, 48, k, 1);
    }
    test_layer(7, 32, 16, EVEN, 1e-28);
    test_layer(7, 32, 16, EVEN, 1e+17);
    test_not_finite(0x7fc0, "a NaN");
    test_not_finite(0x7f80, "an infinity");
    test_zeros();
    for (int turn = 0; turn < 2; turn++) {
        test_filters(turn, 1);
        test_filters(turn, 1e-25);
        test_filters(turn, 0);
        test_large(turn);
    }
    return done_testing();
}
#endif
