/* test_batch.c - a batch is its samples: however they are cut, the gradient of
 * a sum is the sum of gradients, and a step is the same step
 *
 * f32 sums in another order are off by a few 2^-24 of the terms' norm; 1e-5 of
 * the result leaves room for terms that cancel to a tenth.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/context.h"
#include "backends.h"
#include "defaults.h"
#include "number.h"
#include "tap.h"

#define TOLERANCE 1e-5

static ddp_t *ddp;

static size_t size_of(struct ddp_shape s)
{
    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

/* ---- sums of gradients -------------------------------------------------- */

enum { SINGLES = 3 };

/* What a chain gives for the sum of all its outputs: gradients of n samples
 * from `first` on, one parameter after another, times sign added to sum. */
static bool add_gradients(ddp_chain_t *c, struct ddp_shape in, size_t out,
                          const float *x, int first, int n, double sign,
                          double *sum)
{
    float *dy = malloc((size_t)n * out * sizeof(*dy)), *g;
    ddp_pullback_t *p = ddp_pullback_new(
        ddp, c, x + (size_t)first * size_of(in), in, n, 0, NULL);
    struct ddp_param_info info;
    bool good;

    for (size_t i = 0; i < (size_t)n * out; i++)
        dy[i] = 1;
    good = p && ddp_pullback_backward(p, dy, NULL) == 0;
    for (int i = 0; good && ddp_chain_param(c, i, &info) == 0; i++) {
        if (info.role == DDP_RUNNING)
            continue;
        g = malloc(info.len * sizeof(*g));
        good = ddp_pullback_get_gradient(p, info.name, g, info.len) == 0;
        for (size_t k = 0; k < info.len; k++)
            *sum++ += sign * (double)g[k];
        free(g);
    }
    if (!good)
        diag("%s", ddp_errmsg());
    ddp_pullback_free(p);
    free(dy);
    return good;
}

static double norm(const double *v, size_t len)
{
    double sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

/* The gradient of three samples less those of each of them.  floor: what is
 * nothing, where gradients cancel. */
static void test_sum(const char *what, ddp_chain_t *c, struct ddp_shape in,
                     size_t out, double floor)
{
    size_t len = 0, xs = SINGLES * size_of(in);
    float *x = malloc(xs * sizeof(*x));
    struct ddp_param_info info;
    double *sum, whole;
    bool good;

    for (size_t i = 0; i < xs; i++)
        x[i] = number((uint32_t)i);
    ddp_chain_init(c, 11);
    for (int i = 0; ddp_chain_param(c, i, &info) == 0; i++)
        len += info.len;
    sum = calloc(len + 1, sizeof(*sum));
    good = add_gradients(c, in, out, x, 0, SINGLES, 1, sum);
    whole = norm(sum, len);
    for (int i = 0; i < SINGLES; i++)
        good = good && add_gradients(c, in, out, x, i, 1, -1, sum);
    ok(good && norm(sum, len) <= TOLERANCE * whole + floor,
       "%s: gradients of samples add up to the batch's", what);
    free(sum);
    free(x);
    ddp_chain_free(c);
}

static void test_sums(bool large)
{
    int size = large ? 224 : 32, left = size - 6;

    test_sum("convolution", ddp_chain_new(ddp_conv_new(3, 4, 7, NULL), DDP_END),
             (struct ddp_shape){size, size, 3}, (size_t)(left * left) * 4, 0);
    test_sum("dense", ddp_chain_new(ddp_dense_new(10, 3, NULL), DDP_END),
             (struct ddp_shape){1, 1, 10}, 3, 0);
    test_sum("two dense",
             ddp_chain_new(ddp_dense_new(10, 5, NULL),
                           ddp_dense_new(5, 3, NULL), DDP_END),
             (struct ddp_shape){1, 1, 10}, 3, 0);
    test_sum("max pool, no parameters",
             ddp_chain_new(ddp_max_pool_new(3, NULL), DDP_END),
             (struct ddp_shape){9, 9, 3}, 27, 0);
    /* That of the scale is the sum of normalised values, which is 0: what is
     * left are the roundings of 27 values around 1 (times 4 sums). */
    test_sum("batch norm", ddp_chain_new(ddp_batch_norm_new(3, NULL), DDP_END),
             (struct ddp_shape){3, 3, 3}, 27, 1e-5);
}

/* ---- steps -------------------------------------------------------------- */

enum { SIDE = 32, CLASSES = 10 };

static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int k = 0; k < SIDE * SIDE * 3; k++)
        x[k] = number((uint32_t)(i * SIDE * SIDE * 3 + k));
    s->label = (int32_t)(i * 7 % CLASSES);
    return 0;
}

static ddp_chain_t *classifier(void)
{
    ddp_chain_t *c =
        ddp_chain_new(ddp_conv_new(3, 3, 7, NULL), ddp_flatten_new(),
                      ddp_dense_new(26 * 26 * 3, CLASSES, NULL), DDP_END);

    ddp_chain_init(c, 12);
    return c;
}

/* A way to cut a batch. */
struct cut {
    const char *what;
    int sub_batch, lanes;
};

static ddp_trainer_t *trainer(ddp_chain_t *c, ddp_dataset_t *d, struct cut cut)
{
    return ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
            .optimizer = ddp_momentum(0.01f, 0.9f), .sub_batch = cut.sub_batch,
            .batch = (int)ddp_dataset_count(d), .lanes = cut.lanes,
            .order = DDP_IN_ORDER, .keep_weights = true});
}

/* |a - b| / |b| over all parameters, or all gradients where there are
 * trainers. */
static double difference(ddp_chain_t *a, ddp_chain_t *b, ddp_trainer_t *ta,
                         ddp_trainer_t *tb)
{
    struct ddp_param_info p;
    double off = 0, size = 0;

    for (int i = 0; ddp_chain_param(a, i, &p) == 0; i++) {
        float *va = calloc(2 * p.len, sizeof(*va)), *vb = va + p.len;
        int rc = ta ? ddp_trainer_get_gradient(ta, p.name, va, p.len)
                    : ddp_chain_get(a, p.name, va, p.len);

        rc |= tb ? ddp_trainer_get_gradient(tb, p.name, vb, p.len)
                 : ddp_chain_get(b, p.name, vb, p.len);
        for (size_t k = 0; k < p.len; k++) {
            off += ((double)va[k] - vb[k]) * ((double)va[k] - vb[k]);
            size += (double)vb[k] * vb[k];
        }
        free(va);
        if (rc != 0)
            return INFINITY;
    }
    return sqrt(off / size);
}

/* The whole batch at once against another cut: loss, gradients, and weights
 * after a step of momentum and after the next, which shows its state. */
static void test_cut(int count, struct cut cut)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = count,
                                                  .shape = {SIDE, SIDE, 3},
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get});
    ddp_chain_t *a = classifier(), *b = classifier();
    ddp_trainer_t *ta = trainer(a, d, cut);
    ddp_trainer_t *tb = trainer(b, d, (struct cut){NULL, count, 1});
    struct ddp_metrics ma = {0}, mb = {0};
    bool done = ta && tb && ddp_trainer_gradients(ta, &ma) == 0 &&
                ddp_trainer_gradients(tb, &mb) == 0;

    ok(done && ma.samples == count && mb.samples == count, "%s: %s", cut.what,
       done ? "gradients" : ddp_errmsg());
    is_near(ma.loss, mb.loss, 1e-6, "%s: the loss of the batch", cut.what);
    is_near(done ? difference(a, b, ta, tb) : INFINITY, 0, TOLERANCE,
            "%s: its gradients", cut.what);
    for (int k = 0; k < 2; k++)
        ok(done && ddp_trainer_step(ta, &ma) == 0 &&
               ddp_trainer_step(tb, &mb) == 0 &&
               difference(a, b, NULL, NULL) <= TOLERANCE,
           "%s: the weights after step %d", cut.what, k + 1);
    ddp_trainer_free(ta);
    ddp_trainer_free(tb);
    ddp_chain_free(a);
    ddp_chain_free(b);
    ddp_dataset_free(d);
}

/* ---- any number of samples, any number of lanes ------------------------- */

static int get_number(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    *(float *)s->x = (float)(i + 1);
    *s->target = 0;
    return 0;
}

static double value(const float *x, const void *target, const float *weight,
                    int n, int len, float *dx, void *arg)
{
    double sum = 0;

    (void)target;
    (void)arg;
    (void)len;
    for (int i = 0; i < n; i++) {
        sum += (double)x[i] * weight[i];
        if (dx)
            dx[i] = weight[i];
    }
    return sum;
}

/* The loss is w x, its gradient the mean of x = 1 .. count: exactly
 * (count + 1) / 2 when each sample is used once.  The update may multiply by
 * 1 / count, which rounds. */
static bool mean_is_right(int count, int lanes, int sub)
{
    float one = 1, g = 0, w = 0;
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = count,
                                                  .shape = {1, 1, 1},
                                                  .type = DDP_F32,
                                                  .target_len = 1,
                                                  .get = get_number});
    ddp_chain_t *c = ddp_chain_new(
        ddp_dense_new(
            1, 1, &(struct ddp_dense_options){DENSE_DEFAULTS, .no_bias = true}),
        DDP_END);
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .loss = DDP_CUSTOM_LOSS,
                                   .loss_fn = value, .optimizer = ddp_sgd(2),
                                   .sub_batch = sub, .batch = count,
                                   .lanes = lanes, .keep_weights = true});
    struct ddp_metrics m;
    float mean = (float)(count + 1) / 2;
    bool good = t && ddp_chain_set(c, "0.weight", &one, 1) == 0 &&
                ddp_trainer_gradients(t, &m) == 0 && m.samples == count &&
                m.loss == (double)mean &&
                ddp_trainer_get_gradient(t, "0.weight", &g, 1) == 0 &&
                g == mean && ddp_trainer_step(t, &m) == 0 &&
                m.samples == count &&
                ddp_chain_get(c, "0.weight", &w, 1) == 0 &&
                fabsf(w - (1 - 2 * mean)) <= 1e-6f * mean;

    if (!good)
        diag("%d samples, %d lanes of %d: loss %g, gradient %g, weight %g",
             count, lanes, sub, m.loss, (double)g, (double)w);
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    return good;
}

static void test_counts(void)
{
    static const int lanes[] = {2, 3, 4, 8};

    for (int l = 0; l < 4; l++) {
        bool good = true;

        for (int n = 1; n <= 64; n++)
            good = mean_is_right(n, lanes[l], 1 + n % 5) && good;
        ok(good, "1 to 64 samples in %d lanes: each is used once", lanes[l]);
    }
}

int main(void)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (!(ddp = begin_backend(i)))
            continue;
        test_sums(i == 0);
        test_cut(3, (struct cut){"3 lanes of one", 1, 3});
        test_cut(3, (struct cut){"3 of one in 2 lanes", 1, 2});
        test_cut(64, (struct cut){"2 lanes of 32", 32, 2});
        test_cut(10, (struct cut){"10 in lanes of 4", 4, 3});
        test_counts();
        ddp_finish(ddp);
    }
    return done_testing();
}
