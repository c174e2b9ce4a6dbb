/* test_dropout.c - dropout and stochastic depth: masks, their share, their keys
 *
 * All follows from what the two layers promise: a value is 0 or x / (1 - p),
 * backward has the mask of forward, and evaluation leaves x alone.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/context.h"
#include "backends.h"
#include "defaults.h"
#include "tap.h"

enum { N = 50, H = 6, W = 7, C = 10, SAMPLE = H * W * C, LEN = N * SAMPLE };
static const struct ddp_shape in = {H, W, C};

static ddp_t *ddp;
static const char *backend;
static float x[LEN], y[LEN], dy[LEN], dx[LEN], again[LEN];

/* Numbers that are never 0, so that a 0 is a dropped one. */
static void fill(void)
{
    for (int i = 0; i < LEN; i++) {
        x[i] = (i % 2 ? -1.f : 1.f) * (1 + (float)(i % 97) / 31);
        dy[i] = (i % 3 ? -1.f : 1.f) * (1 + (float)(i % 89) / 17);
    }
}

static bool pull(ddp_chain_t *c, int sub)
{
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, x, in, N, sub, y);
    bool good = p && ddp_pullback_backward(p, dy, dx) == 0;

    if (!good)
        diag("%s", ddp_errmsg());
    ddp_pullback_free(p);
    return good;
}

/* Is got 0, or v / (1 - p)?  Dividing by 1 - p or multiplying by the rounded
 * 1 / (1 - p) may differ by one unit in the last place, 1.2e-7, or two; where
 * 1 - p is a power of two they do not. */
static bool is_kept(float got, float v, float p)
{
    float want = v / (1 - p);

    if (p == 0.5f || p == 0.75f)
        return got == want;
    return fabsf(got - want) <= 2.4e-7f * fabsf(want);
}

static bool masks_agree(float p)
{
    for (int i = 0; i < LEN; i++) {
        if (y[i] == 0 ? dx[i] == 0
                      : is_kept(y[i], x[i], p) && is_kept(dx[i], dy[i], p))
            continue;
        diag("element %d: %g to %g, gradient %g to %g", i, (double)x[i],
             (double)y[i], (double)dy[i], (double)dx[i]);
        return false;
    }
    return true;
}

/* Of n draws the number of dropped ones is within 5 standard deviations of
 * n p, which chance leaves once in 1.7 million.  The masks are fixed: either
 * this always holds or never. */
static void is_share(int dropped, int n, double p, const char *what)
{
    double sd = sqrt(n * p * (1 - p));

    ok(fabs(dropped - n * p) <= 5 * sd, "%s %s: %d of %d dropped at p = %g",
       backend, what, dropped, n, p);
}

static int zeros(const float *v, int len)
{
    int n = 0;

    for (int i = 0; i < len; i++)
        n += v[i] == 0;
    return n;
}

/* ---- dropout ------------------------------------------------------------ */

static void test_values(float p)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dropout_new(p), DDP_END);

    ok(pull(c, 0) && masks_agree(p),
       "%s dropout %g: 0 or x / (1 - p), backward too", backend, (double)p);
    is_share(zeros(y, LEN), LEN, (double)p, "dropout");
    memcpy(again, y, sizeof(y));
    ok(pull(c, 7) && memcmp(again, y, sizeof(y)) == 0,
       "%s dropout %g: the same mask in sub-batches of 7", backend, (double)p);
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, in, N, 8, y) == 0 &&
           memcmp(x, y, sizeof(x)) == 0,
       "%s dropout %g: evaluation is the identity", backend, (double)p);
    ddp_chain_free(c);
}

/* What two masks of p = 1/2 have in common is a quarter: of neighbours in one
 * sample, of one element in two samples, of one element in two layers. */
static void test_independence(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dropout_new(0.5f), DDP_END);
    ddp_chain_t *two =
        ddp_chain_new(ddp_dropout_new(0.5f), ddp_dropout_new(0.5f), DDP_END);
    int next = 0, other = 0;

    ok(pull(c, 0), "%s dropout: runs", backend);
    for (int i = 0; i < LEN; i += 2)
        next += y[i] == 0 && y[i + 1] == 0;
    for (int i = 0; i < LEN / 2; i++)
        other += y[i] == 0 && y[i + LEN / 2] == 0;
    is_share(next, LEN / 2, 0.25, "dropout: neighbours");
    is_share(other, LEN / 2, 0.25, "dropout: samples");
    ok(pull(two, 0), "%s two dropouts: run", backend);
    is_share(LEN - zeros(y, LEN), LEN, 0.25, "two dropouts: kept by both");
    ddp_chain_free(c);
    ddp_chain_free(two);
}

static void test_nothing_dropped(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dropout_new(0), DDP_END);

    ok(pull(c, 0) && memcmp(x, y, sizeof(x)) == 0 &&
           memcmp(dy, dx, sizeof(dy)) == 0,
       "%s dropout 0: the identity", backend);
    ddp_chain_free(c);
}

/* ---- stochastic depth --------------------------------------------------- */

static void test_depth(float p)
{
    ddp_chain_t *c = ddp_chain_new(ddp_stochastic_depth_new(p), DDP_END);
    int dropped = 0;
    bool whole = true;

    ok(pull(c, 0) && masks_agree(p),
       "%s stochastic depth %g: 0 or x / (1 - p), backward too", backend,
       (double)p);
    for (int i = 0; i < N; i++) {
        int n = zeros(y + i * SAMPLE, SAMPLE);

        whole = whole && (n == 0 || n == SAMPLE);
        dropped += n == SAMPLE;
    }
    ok(whole, "%s stochastic depth %g: whole samples", backend, (double)p);
    is_share(dropped, N, (double)p, "stochastic depth");
    memcpy(again, y, sizeof(y));
    ok(pull(c, 7) && memcmp(again, y, sizeof(y)) == 0,
       "%s stochastic depth %g: the same samples in sub-batches of 7", backend,
       (double)p);
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, in, N, 8, y) == 0 &&
           memcmp(x, y, sizeof(x)) == 0,
       "%s stochastic depth %g: evaluation is the identity", backend,
       (double)p);
    ddp_chain_free(c);
}

/* ---- in training -------------------------------------------------------- */

/* What the loss sees, by sample. */
struct seen {
    float y[2 * LEN];
    int epoch;
};

static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    memcpy(s->x, x + i * SAMPLE, SAMPLE * sizeof(float));
    s->target[0] = (float)i;
    return 0;
}

static double look(const float *v, const void *target, const float *weight,
                   int n, int len, float *grad, void *arg)
{
    struct seen *seen = arg;

    (void)weight;
    for (int i = 0; i < n; i++) {
        int sample = (int)((const float *)target)[i];

        memcpy(seen->y + seen->epoch * LEN + sample * SAMPLE, v + i * len,
               (size_t)len * sizeof(float));
    }
    if (grad)
        memset(grad, 0, (size_t)n * (size_t)len * sizeof(float));
    return 0;
}

static int next_epoch(const struct ddp_progress *p, void *arg)
{
    (void)p;
    ((struct seen *)arg)->epoch++;
    return 0;
}

/* The masks of two epochs. */
static bool masks_of(struct seen *seen, int sub, int lanes, uint64_t seed)
{
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = N, .shape = in, .type = DDP_F32, .target_len = 1, .get = get});
    ddp_chain_t *c = ddp_chain_new(ddp_dropout_new(0.5f), DDP_END);
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = DDP_CUSTOM_LOSS, .loss_fn = look,
            .loss_arg = seen, .optimizer = {.kind = DDP_SGD}, .sub_batch = sub,
            .batch = 25, .lanes = lanes, .epochs = 2, .seed = seed,
            .on_epoch = next_epoch, .arg = seen});
    bool good;

    memset(seen, 0, sizeof(*seen));
    good = t && ddp_trainer_train(t) == 0 && seen->epoch == 2;
    if (!good)
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    return good;
}

static int both(const float *a, const float *b)
{
    int n = 0;

    for (int i = 0; i < LEN; i++)
        n += a[i] == 0 && b[i] == 0;
    return n;
}

static void test_training(void)
{
    struct seen *a = malloc(sizeof(*a)), *b = malloc(sizeof(*b));

    ok(masks_of(a, 5, 4, 1), "%s training with dropout", backend);
    is_share(both(a->y, a->y + LEN), LEN, 0.25, "dropout: two epochs");
    ok(masks_of(b, 25, 1, 1) && memcmp(a->y, b->y, sizeof(a->y)) == 0,
       "%s dropout: the same masks in one sub-batch as in five", backend);
    ok(masks_of(b, 5, 4, 2), "%s training with another seed", backend);
    is_share(both(a->y, b->y), LEN, 0.25, "dropout: two seeds");
    free(a);
    free(b);
}

int main(void)
{
    fill();
    for (int i = 0; i < BACKENDS; i++) {
        backend = backends[i];
        if (!(ddp = begin_backend(i)))
            continue;
        test_values(0.2f);
        test_values(0.5f);
        test_values(0.75f);
        test_nothing_dropped();
        test_independence();
        test_depth(0.3f);
        test_depth(0.5f);
        test_training();
        ddp_finish(ddp);
    }
    return done_testing();
}
