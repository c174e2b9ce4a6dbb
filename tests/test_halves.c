/* test_halves.c - a step in two halves: gradients, then the update
 *
 * Both halves are the step, so weights are compared to the bit with those of a
 * trainer that makes whole steps.  What a changed gradient does is worked out
 * here.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ddp.h"
#include "defaults.h"
#include "number.h"
#include "tap.h"

/* Steps of 6 samples: a divisor that does not divide every f32. */
enum { SIDE = 5, CLASSES = 3, COUNT = 14, STEP = 6, STEPS = 5 };

static ddp_t *ddp;

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        x[i] = number((uint32_t)(index * SIDE * SIDE * 3 + i));
    s->label = (int32_t)(index % CLASSES);
    return 0;
}

/* A chain with its data and trainer. */
struct run {
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
};

/* The trainer is NULL if the devices cannot run it. */
static struct run run_try(struct ddp_train_config cfg)
{
    struct run r = {
        .chain = ddp_chain_new(
            ddp_conv_new(3, 4, 3,
                         &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1}),
            ddp_batch_norm_new(4, NULL), ddp_relu_new(), ddp_dropout_new(0.2f),
            ddp_flatten_new(), ddp_dense_new(SIDE * SIDE * 4, CLASSES, NULL),
            DDP_END),
        .data =
            ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                      .shape = {SIDE, SIDE, 3},
                                                      .type = DDP_F32,
                                                      .classes = CLASSES,
                                                      .get = get}),
    };

    cfg.batch = STEP;
    cfg.sub_batch = 2;
    cfg.epochs = 3;
    r.trainer = ddp_trainer_new(ddp, r.chain, r.data, &cfg);
    return r;
}

static struct run run_new(struct ddp_train_config cfg)
{
    struct run r = run_try(cfg);

    if (!r.trainer)
        bail_out("%s", ddp_errmsg());
    return r;
}

static void run_free(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_dataset_free(r->data);
    ddp_chain_free(r->chain);
}

static uint32_t checksum(const struct run *r)
{
    uint32_t crc = 0;

    if (ddp_chain_checksum(r->chain, &crc) < 0)
        diag("%s", ddp_errmsg());
    return crc;
}

/* ---- the same step ------------------------------------------------------ */

/* Set every gradient to what it is, times a factor. */
static bool scale_gradients(const struct run *r, float factor)
{
    struct ddp_param_info p;
    bool good = true;

    for (int i = 0; ddp_chain_param(r->chain, i, &p) == 0; i++) {
        float *g = malloc(p.len * sizeof(*g));

        if (p.role != DDP_RUNNING) {
            good = good &&
                   ddp_trainer_get_gradient(r->trainer, p.name, g, p.len) == 0;
            for (size_t k = 0; good && k < p.len; k++)
                g[k] *= factor;
            good = good &&
                   ddp_trainer_set_gradient(r->trainer, p.name, g, p.len) == 0;
        }
        free(g);
    }
    return good;
}

static void test_same(const char *what, struct ddp_train_config cfg)
{
    struct run whole = run_new(cfg), half = run_new(cfg), set = run_new(cfg);
    bool done = true, same = true, same_set = true;
    uint32_t crc, before = checksum(&whole);
    struct ddp_metrics m, h;

    for (int i = 0; i < STEPS; i++) {
        done = done && ddp_trainer_step(whole.trainer, &m) == 0 &&
               ddp_trainer_gradients(half.trainer, &h) == 0 &&
               ddp_trainer_update(half.trainer) == 0 &&
               ddp_trainer_gradients(set.trainer, NULL) == 0 &&
               scale_gradients(&set, 1) && ddp_trainer_update(set.trainer) == 0;
        crc = checksum(&whole);
        same = same && crc == checksum(&half) && m.loss == h.loss;
        same_set = same_set && crc == checksum(&set);
    }
    ok(done && same && crc != before,
       "%s: gradients and update make ddp_trainer_step(): %s", what,
       done ? "same bits" : ddp_errmsg());
    ok(done && same_set, "%s: also when all gradients are set as they are",
       what);
    ok(done && ddp_trainer_steps(half.trainer) == STEPS,
       "%s: both halves are one step", what);
    done = done && ddp_trainer_step(whole.trainer, &m) == 0 &&
           ddp_trainer_step(half.trainer, &h) == 0;
    ok(done && checksum(&whole) == checksum(&half),
       "%s: a whole step comes after halves", what);
    run_free(&whole);
    run_free(&half);
    run_free(&set);
}

static struct ddp_train_config adam_in(enum ddp_dtype type)
{
    return (struct ddp_train_config){
        TRAIN_DEFAULTS, .optimizer = ddp_adam(0.01f), .dtype = type};
}

/* Only some processors have bf16 arithmetic.  The description of the devices
 * names it, so a trainer may be refused only where that does not. */
static void test_bf16(void)
{
    struct run r = run_try(adam_in(DDP_BF16));
    bool can = r.trainer;

    if (!can) {
        ok(ddp_errcode() == DDP_ENODEV && !strstr(ddp_describe(ddp), "bf16") &&
               strstr(ddp_errmsg(), "no bf16 arithmetic"),
           "bf16 is refused: %s", ddp_errmsg());
        skip(4, "bf16: %s", ddp_errmsg());
    }
    run_free(&r);
    if (can)
        test_same("bf16", adam_in(DDP_BF16));
}

/* Plain C computes in every type on every processor. */
static void test_ref(void)
{
    ddp = ddp_init(
        &(struct ddp_config){START_DEFAULTS, .backend = "ref", .gpus = 0});
    if (!ddp)
        bail_out("%s", ddp_errmsg());
    diag("%s", ddp_describe(ddp));
    test_same("ref, f32", adam_in(DDP_F32));
    test_same("ref, bf16", adam_in(DDP_BF16));
    test_same("ref, f16", adam_in(DDP_F16));
    ddp_finish(ddp);
}

static void test_average(void)
{
    struct ddp_train_config cfg = {TRAIN_DEFAULTS,
                                   .optimizer = ddp_momentum(0.1f, 0.9f),
                                   .ema_decay = 0.5};
    struct run whole = run_new(cfg), half = run_new(cfg);
    float a[CLASSES], b[CLASSES] = {0};
    bool good = true;

    for (int i = 0; i < STEPS; i++)
        good = good && ddp_trainer_step(whole.trainer, NULL) == 0 &&
               ddp_trainer_gradients(half.trainer, NULL) == 0 &&
               ddp_trainer_update(half.trainer) == 0;
    ok(good && ddp_trainer_ema_get(whole.trainer, "5.bias", a, CLASSES) == 0 &&
           ddp_trainer_ema_get(half.trainer, "5.bias", b, CLASSES) == 0 &&
           memcmp(a, b, sizeof(a)) == 0,
       "the averages of the weights follow");
    run_free(&whole);
    run_free(&half);
}

/* ---- another gradient --------------------------------------------------- */

/* w - lr g, both rounded to f32: g times the divisor and back is off by 2^-24
 * twice, which lr 0.5 halves. */
static void test_set(void)
{
    struct run r = run_new(
        (struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.5f)});
    size_t len = SIDE * SIDE * 4 * CLASSES;
    float *w = malloc(3 * len * sizeof(*w)), *g = w + len, *v = g + len;
    float worst = 0, mean[4], moved[4];
    bool good;

    for (size_t i = 0; i < len; i++)
        g[i] = number((uint32_t)i);
    good = ddp_chain_get(r.chain, "5.weight", w, len) == 0 &&
           ddp_chain_get(r.chain, "1.running_mean", mean, 4) == 0 &&
           ddp_trainer_gradients(r.trainer, NULL) == 0 &&
           scale_gradients(&r, 0) &&
           ddp_trainer_set_gradient(r.trainer, "5.weight", g, len) == 0 &&
           ddp_trainer_update(r.trainer) == 0 &&
           ddp_chain_get(r.chain, "5.weight", v, len) == 0 &&
           ddp_chain_get(r.chain, "1.running_mean", moved, 4) == 0;
    for (size_t i = 0; good && i < len; i++)
        worst = fmaxf(worst, fabsf(v[i] - (w[i] - 0.5f * g[i])));
    ok(good && worst <= 0x1p-23f, "a gradient that was set is applied, in "
                                  "PyTorch's order of elements");
    ok(good && memcmp(mean, moved, sizeof(mean)) != 0,
       "running statistics are updated too");
    good = ddp_chain_get(r.chain, "0.weight", w, 108) == 0 &&
           ddp_trainer_gradients(r.trainer, NULL) == 0 &&
           scale_gradients(&r, 0) && ddp_trainer_update(r.trainer) == 0 &&
           ddp_chain_get(r.chain, "0.weight", v, 108) == 0;
    ok(good && memcmp(w, v, 108 * sizeof(*w)) == 0,
       "weights whose gradients were set to 0 remain");
    run_free(&r);
    free(w);
}

static void test_clip(void)
{
    struct ddp_optimizer o = ddp_sgd(1);
    float w[CLASSES], v[CLASSES], g[CLASSES] = {3, 0, 4};
    struct run r;
    bool good;

    o.clip_norm = 1;
    r = run_new((struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = o});
    good = ddp_chain_get(r.chain, "5.bias", w, CLASSES) == 0 &&
           ddp_trainer_gradients(r.trainer, NULL) == 0 &&
           scale_gradients(&r, 0) &&
           ddp_trainer_set_gradient(r.trainer, "5.bias", g, CLASSES) == 0 &&
           ddp_trainer_update(r.trainer) == 0 &&
           ddp_chain_get(r.chain, "5.bias", v, CLASSES) == 0;
    /* The norm is 5; PyTorch's clipping adds 1e-6 to it. */
    ok(good && fabsf(w[0] - v[0] - 0.6f) < 1e-5f && w[1] == v[1] &&
           fabsf(w[2] - v[2] - 0.8f) < 1e-5f,
       "clip_norm looks at what was set");
    run_free(&r);
}

static void test_skip(void)
{
    struct run r = run_new(
        (struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_adam(0.1f)});
    float g[CLASSES] = {0, NAN, 0};
    uint32_t crc = checksum(&r);
    struct ddp_skips s = {0};
    bool good =
        ddp_trainer_gradients(r.trainer, NULL) == 0 &&
        ddp_trainer_set_gradient(r.trainer, "5.bias", g, CLASSES) == 0 &&
        ddp_trainer_update(r.trainer) == 0 &&
        ddp_trainer_skips(r.trainer, &s) == 0;

    ok(good && s.steps == 1 && s.last == 0 && strstr(s.why, "5.bias"),
       "an update that is not finite is skipped: %s", s.why);
    ok(good && checksum(&r) == crc, "and changes no weight");
    ok(ddp_trainer_gradients(r.trainer, NULL) == 0 &&
           ddp_trainer_update(r.trainer) == 0 &&
           ddp_trainer_skips(r.trainer, &s) == 0 && s.steps == 1 &&
           s.in_a_row == 0 && checksum(&r) != crc,
       "the next one is not");
    run_free(&r);
}

/* ---- errors ------------------------------------------------------------- */

static void test_errors(void)
{
    struct run r = run_new(
        (struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(1)});
    float g[4] = {0};

    ok(ddp_trainer_update(r.trainer) == DDP_EINVAL &&
           ddp_trainer_set_gradient(r.trainer, "5.bias", g, CLASSES) ==
               DDP_EINVAL,
       "before any step: %s", ddp_errmsg());
    ok(ddp_trainer_gradients(r.trainer, NULL) == 0 &&
           ddp_trainer_set_gradient(r.trainer, "5.bias", g, 4) == DDP_ESHAPE,
       "%s", ddp_errmsg());
    ok(ddp_trainer_set_gradient(r.trainer, "5.beta", g, 3) == DDP_EINVAL, "%s",
       ddp_errmsg());
    ok(ddp_trainer_set_gradient(r.trainer, "1.running_mean", g, 4) ==
           DDP_EINVAL,
       "%s", ddp_errmsg());
    ok(ddp_trainer_update(r.trainer) == 0 &&
           ddp_trainer_update(r.trainer) == DDP_EINVAL,
       "an update is made once");
    ok(ddp_trainer_get_gradient(r.trainer, "5.bias", g, CLASSES) == DDP_EINVAL,
       "gradients are gone then");
    ok(ddp_trainer_gradients(r.trainer, NULL) == 0 &&
           ddp_trainer_step(r.trainer, NULL) == 0 &&
           ddp_trainer_update(r.trainer) == DDP_EINVAL,
       "and after another step");
    ok(ddp_trainer_update(NULL) == DDP_EINVAL &&
           ddp_trainer_set_gradient(NULL, "5.bias", g, CLASSES) == DDP_EINVAL,
       "no trainer");
    run_free(&r);
}

/* ---- kept gradients ------------------------------------------------------ */

static bool same_gradients(const struct run *a, const struct run *b)
{
    struct ddp_param_info p;
    bool same = true;

    for (int i = 0; ddp_chain_param(a->chain, i, &p) == 0; i++) {
        float *g = calloc(2 * p.len, sizeof(*g)), *h = g + p.len;

        if (p.role != DDP_RUNNING)
            same =
                same &&
                ddp_trainer_get_gradient(a->trainer, p.name, g, p.len) == 0 &&
                ddp_trainer_get_gradient(b->trainer, p.name, h, p.len) == 0 &&
                !memcmp(g, h, p.len * sizeof(*g));
        free(g);
    }
    return same;
}

/* Between steps of a run; the other one has come as far and has gradients. */
static int compare_kept(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    (void)p;
    while (ddp_trainer_steps(r[1].trainer) < p->step)
        if (ddp_trainer_gradients(r[1].trainer, NULL) < 0 ||
            (ddp_trainer_steps(r[1].trainer) < p->step &&
             ddp_trainer_update(r[1].trainer) < 0))
            return 1;
    return !same_gradients(&r[0], &r[1]) || ddp_trainer_update(r[1].trainer);
}

static void test_kept(void)
{
    struct run r[2];
    struct ddp_train_config cfg = {TRAIN_DEFAULTS,
                                   .optimizer = ddp_adam(0.01f)};
    uint32_t crc;
    float g;

    cfg.optimizer.clip_norm = 0.1f;
    r[1] = run_new(cfg);
    cfg.keep_gradients = true;
    cfg.on_epoch = compare_kept;
    cfg.arg = r;
    r[0] = run_new(cfg);
    ok(ddp_trainer_get_gradient(r[0].trainer, "5.bias", &g, 1) == DDP_EINVAL,
       "no gradients before the first step: %s", ddp_errmsg());
    ok(ddp_trainer_train(r[0].trainer) == 0,
       "in on_epoch there are those of ddp_trainer_gradients(), to the bit");
    crc = checksum(&r[0]);
    ok(crc == checksum(&r[1]), "and to keep them changes no weight");
    ok(ddp_trainer_set_gradient(r[0].trainer, "5.bias", &g, 1) == DDP_EINVAL,
       "they cannot be set: %s", ddp_errmsg());
    run_free(&r[0]);
    run_free(&r[1]);
}

int main(void)
{
    struct ddp_optimizer clipped = ddp_adamw(0.01f, 0.1f);

    clipped.clip_norm = 0.5f;
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    diag("%s", ddp_describe(ddp));
    test_same("sgd", (struct ddp_train_config){TRAIN_DEFAULTS,
                                               .optimizer = ddp_sgd(0.1f)});
    test_same("momentum, one lane",
              (struct ddp_train_config){TRAIN_DEFAULTS,
                                        .optimizer = ddp_momentum(0.1f, 0.9f),
                                        .lanes = 1});
    test_same("adamw, clipped, a schedule",
              (struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = clipped,
                                        .schedule = {.kind = DDP_COSINE}});
    test_bf16();
    test_average();
    test_set();
    test_clip();
    test_skip();
    test_errors();
    test_kept();
    ddp_finish(ddp);
    test_ref();
    return done_testing();
}
