/* test_aux.c - an auxiliary classifier adds its loss, and nothing else
 *
 * A trunk with a head and an auxiliary head has the loss of trunk and head
 * plus w times that of trunk and auxiliary head: two chains that can be trained
 * by themselves, whose losses and gradients are the oracle.  Sums of up to 24
 * products in f32, here in another order: off by 24 * 2^-24 = 1.5e-6.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/context.h"
#include "backends.h"
#include "defaults.h"
#include "same_bits.h"
#include "tap.h"

enum { IN = 5, MID = 4, CLASSES = 12, N = 22, SUB = 3 };
#define WEIGHT 0.3f
#define TOLERANCE 2e-6

static ddp_t *ddp;

/* ---- samples, chains ---------------------------------------------------- */

static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int k = 0; k < IN; k++)
        x[k] = sinf((float)(7 * i + 3 * k + 1));
    s->label = (int32_t)(i * 5 % CLASSES);
    return 0;
}

static ddp_dataset_t *samples(void)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = N,
                                                     .shape = {1, 1, IN},
                                                     .type = DDP_F32,
                                                     .classes = CLASSES,
                                                     .get = get});
}

static ddp_layer_t *head(const char *name, int out)
{
    return ddp_layer_set_name(ddp_dense_new(MID, out, NULL), name);
}

static ddp_layer_t *trunk(void)
{
    return ddp_layer_set_name(
        ddp_chain_new(ddp_dense_new(IN, MID, NULL), ddp_tanh_new(), DDP_END),
        "trunk");
}

static ddp_layer_t *aux(int out)
{
    return ddp_layer_set_name(ddp_aux_new(head("", out), WEIGHT), "aux");
}

/* Parameters of one name are the same in all chains. */
static ddp_chain_t *same_values(ddp_chain_t *c)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        float *w = calloc(p.len, sizeof(*w));

        for (size_t k = 0; k < p.len; k++)
            w[k] = cosf((float)k + (float)p.name[0] + (float)p.len);
        ddp_chain_set(c, p.name, w, p.len);
        free(w);
    }
    return c;
}

/* ---- a step of one of them ---------------------------------------------- */

struct step {
    ddp_chain_t *c;
    ddp_dataset_t *d;
    ddp_trainer_t *t;
    struct ddp_metrics m, eval;
};

/* Several sub-batches in a lane, one of another size. */
static struct step step_of(ddp_chain_t *c)
{
    struct step s = {.c = same_values(c), .d = samples()};

    s.t = ddp_trainer_new(ddp, s.c, s.d,
                          &(struct ddp_train_config){
                              TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
                              .label_smoothing = 0.1f, .optimizer = ddp_sgd(0),
                              .sub_batch = SUB, .batch = N, .lanes = 2,
                              .order = DDP_IN_ORDER, .keep_weights = true});
    if (!s.t || ddp_trainer_gradients(s.t, &s.m) < 0)
        bail_out("%s", ddp_errmsg());
    return s;
}

static void step_free(struct step *s)
{
    ddp_trainer_free(s->t);
    ddp_dataset_free(s->d);
    ddp_chain_free(s->c);
}

static float *gradient(struct step *s, const char *name, size_t len)
{
    float *g = calloc(len, sizeof(*g));

    if (ddp_trainer_get_gradient(s->t, name, g, len) < 0)
        diag("%s: %s", name, ddp_errmsg());
    return g;
}

/* |got - a - WEIGHT b| / |got|; NULL: 0 */
static double off(const float *got, const float *a, const float *b, size_t len)
{
    double sum = 0, norm = 0;

    for (size_t i = 0; i < len; i++) {
        double d = (double)got[i] - (a ? (double)a[i] : 0) -
                   (b ? (double)WEIGHT * (double)b[i] : 0);

        sum += d * d;
        norm += (double)got[i] * (double)got[i];
    }
    return sqrt(sum / norm);
}

/* ---- tests -------------------------------------------------------------- */

static void test_sum(const char *backend)
{
    struct step both = step_of(
        ddp_chain_new(trunk(), aux(CLASSES), head("head", CLASSES), DDP_END));
    struct step a =
        step_of(ddp_chain_new(trunk(), head("head", CLASSES), DDP_END));
    struct step b =
        step_of(ddp_chain_new(trunk(), head("aux", CLASSES), DDP_END));
    float *g[3] = {gradient(&both, "trunk.0.weight", IN * MID),
                   gradient(&a, "trunk.0.weight", IN * MID),
                   gradient(&b, "trunk.0.weight", IN * MID)};
    float *h[2] = {gradient(&both, "aux.weight", MID * CLASSES),
                   gradient(&b, "aux.weight", MID * CLASSES)};

    is_near(both.m.loss, a.m.loss + (double)WEIGHT * b.m.loss,
            TOLERANCE * both.m.loss, "%s: loss", backend);
    is_near(off(g[0], g[1], g[2], IN * MID), 0, TOLERANCE,
            "%s: gradient of the trunk", backend);
    is_near(off(h[0], NULL, h[1], MID * CLASSES), 0, TOLERANCE,
            "%s: gradient of the auxiliary head", backend);
    ok(both.m.samples == N && both.m.top1 == a.m.top1 &&
           both.m.top5 == a.m.top5 && both.m.top10 == a.m.top10,
       "%s: samples and right answers are counted once", backend);
    ok(ddp_trainer_evaluate(both.t, both.d, &both.eval) == 0 &&
           ddp_trainer_evaluate(a.t, a.d, &a.eval) == 0 &&
           both.eval.loss == a.eval.loss && both.eval.samples == N,
       "%s: evaluation has no auxiliary loss", backend);
    for (int i = 0; i < 3; i++)
        free(g[i]);
    free(h[0]);
    free(h[1]);
    step_free(&both);
    step_free(&a);
    step_free(&b);
}

/* In front of everything x needs no gradient, but the branch does. */
static void test_first(void)
{
    struct step s = step_of(ddp_chain_new(
        ddp_layer_set_name(
            ddp_aux_new(ddp_dense_new(IN, CLASSES, NULL), WEIGHT), "aux"),
        ddp_layer_set_name(ddp_dense_new(IN, CLASSES, NULL), "head"), DDP_END));
    struct step b = step_of(ddp_chain_new(
        ddp_layer_set_name(ddp_dense_new(IN, CLASSES, NULL), "aux"), DDP_END));
    float *got = gradient(&s, "aux.0.weight", IN * CLASSES);
    float *want = gradient(&b, "aux.weight", IN * CLASSES);

    is_near(off(got, NULL, want, IN * CLASSES), 0, TOLERANCE,
            "on the input itself");
    free(got);
    free(want);
    step_free(&s);
    step_free(&b);
}

/* A pullback has the gradient of the chain's output alone. */
static void test_pullback(void)
{
    ddp_chain_t *c = same_values(
        ddp_chain_new(trunk(), aux(CLASSES), head("head", CLASSES), DDP_END));
    float x[IN] = {1, 2, 3, 4, 5}, dy[CLASSES] = {1}, dx[IN] = {0}, g[48];
    ddp_pullback_t *p =
        ddp_pullback_new(ddp, c, x, (struct ddp_shape){1, 1, IN}, 1, 0, NULL);

    ok(p && ddp_pullback_backward(p, dy, dx) == 0 && dx[0] != 0, "a pullback");
    ok(p && ddp_pullback_get_gradient(p, "head.weight", g, 48) == 0,
       "has the head's gradient");
    ok(p && ddp_pullback_get_gradient(p, "aux.weight", g, 48) < 0,
       "but not the auxiliary one's: %s", ddp_errmsg());
    ddp_pullback_free(p);
    ddp_chain_free(c);
}

static void test_misfit(void)
{
    ddp_chain_t *c =
        ddp_chain_new(trunk(), aux(3), head("head", CLASSES), DDP_END);
    ddp_dataset_t *d = samples();
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0),
                                   .sub_batch = SUB});

    ok(!t && ddp_errcode() == DDP_ESHAPE && strstr(ddp_errmsg(), "auxiliary"),
       "as many outputs as classes: %s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* In training only: evaluation takes smaller images. */
static void test_small_images(void)
{
    ddp_chain_t *c = ddp_chain_new(
        ddp_layer_set_name(
            ddp_aux_new(ddp_chain_new(ddp_mean_pool_new(5, NULL), DDP_END),
                        WEIGHT),
            "head"),
        ddp_global_mean_pool_new(), DDP_END);
    struct ddp_shape in = {4, 4, CLASSES};
    float x[4 * 4 * CLASSES] = {0}, y[CLASSES];
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = 1,
                                                  .shape = in,
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d, &(struct ddp_train_config){TRAIN_DEFAULTS, .lanes = 1});

    ok(!t && ddp_errcode() == DDP_ESHAPE && strstr(ddp_errmsg(), "head") &&
           strstr(ddp_errmsg(), "larger"),
       "too small an image: %s", ddp_errmsg());
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, in, 1, 0, y) == 0,
       "but large enough for evaluation");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* Three steps on a number of workers under a scheduler, NULL for our own; the
 * weights' checksum, or 0. */
static uint32_t train(const char *ncpu, const char *scheduler)
{
    ddp_chain_t *c =
        ddp_chain_new(trunk(), aux(CLASSES), head("head", CLASSES), DDP_END);
    ddp_dataset_t *d = samples();
    ddp_trainer_t *t;

    ddp = start_under(scheduler, ncpu, NULL, NULL);
    t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .optimizer = ddp_momentum(0.1f, 0.9f),
            .sub_batch = SUB, .batch = N, .lanes = 3, .steps = 3});
    return train_and_end(ddp, t, c, d, NULL);
}

static void test_bits(void)
{
    uint32_t one = train("1", NULL);

    ok(one && train("2", NULL) == one && train("2", "lws") == one &&
           train("3", "eager") == one,
       "the same bits on any number of workers, under any scheduler");
}

int main(void)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (!(ddp = begin_backend(i)))
            continue;
        test_sum(backends[i]);
        test_first();
        test_pullback();
        test_misfit();
        test_small_images();
        ddp_finish(ddp);
    }
    test_bits();
    return done_testing();
}
