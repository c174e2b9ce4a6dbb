/* test_optim.c - optimizers and losses against PyTorch's in f64
 *
 * Every optimizer makes fifty steps, and momentum with every loss.
 * Compared are the ways the parameters have gone, |w - w'| / |w' - w0|: f32
 * rounds a weight at 2^-25 of it at every step, and the ways are about as long
 * as a tenth of the weights: 50 * 3e-8 / 0.1 = 2e-5 at most.  Gradients are off
 * by 1e-6 of their norm, and by more of a single small one, to which Adam and
 * RMSProp give the same weight as to a large one: 2e-5 covers that.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backends.h"
#include "defaults.h"
#include "hand.h"
#include "oracle.h"
#include "train/trainer.h"

enum { STEPS = 50, BATCH = 6 };
#define TOLERANCE 2e-5

static const struct oracle *o;

/* What becomes of the learning rate. */
enum course {
    LEVEL,
    FALLS, /* lr / 1, lr / 2, lr / 3, ... */
    CYCLES /* PyTorch's OneCycleLR, of momentum too */
};

/* Every option other than the defaults is torch.optim's as oracle_optim.py has
 * it. beta2 0.99 is what PyTorch calls alpha. */
static const struct {
    const char *name;
    struct ddp_optimizer o;
    enum course course;
} optimizers[] = {
    {"sgd", {.kind = DDP_SGD, .lr = 0.1f}, LEVEL},
    {"sgd_decay", {.kind = DDP_SGD, .lr = 0.1f, .weight_decay = 0.1f}, LEVEL},
    {"sgd_clip", {.kind = DDP_SGD, .lr = 0.1f, .clip_norm = 0.5f}, LEVEL},
    {"sgd_limit",
     {.kind = DDP_SGD, .lr = 0.1f, .weight_decay = 0.1f, .clip_value = 0.05f},
     LEVEL},
    {"momentum", {.kind = DDP_MOMENTUM, .lr = 0.05f, .momentum = 0.9f}, LEVEL},
    {"momentum_decay",
     {.kind = DDP_MOMENTUM,
      .lr = 0.05f,
      .momentum = 0.9f,
      .weight_decay = 0.1f},
     LEVEL},
    {"momentum_decay_all",
     {.kind = DDP_MOMENTUM,
      .lr = 0.05f,
      .momentum = 0.9f,
      .weight_decay = 0.1f,
      .decay_all = true},
     LEVEL},
    {"momentum_falls",
     {.kind = DDP_MOMENTUM, .lr = 0.1f, .momentum = 0.9f},
     FALLS},
    {"momentum_flux_falls",
     {.kind = DDP_MOMENTUM_FLUX, .lr = 0.1f, .momentum = 0.9f},
     FALLS},
    {"nesterov",
     {.kind = DDP_NESTEROV,
      .lr = 0.05f,
      .momentum = 0.9f,
      .weight_decay = 0.1f},
     LEVEL},
    {"adam", {.kind = DDP_ADAM, .lr = 0.01f}, LEVEL},
    {"adam_decay",
     {.kind = DDP_ADAM, .lr = 0.01f, .weight_decay = 0.1f},
     LEVEL},
    {"adam_clip", {.kind = DDP_ADAM, .lr = 0.01f, .clip_norm = 0.5f}, LEVEL},
    {"adamw", {.kind = DDP_ADAMW, .lr = 0.01f, .weight_decay = 0.1f}, LEVEL},
    {"adamw_all",
     {.kind = DDP_ADAMW, .lr = 0.01f, .weight_decay = 0.1f, .decay_all = true},
     LEVEL},
    {"rmsprop", {.kind = DDP_RMSPROP, .lr = 0.01f}, LEVEL},
    {"rmsprop_decay",
     {.kind = DDP_RMSPROP, .lr = 0.01f, .weight_decay = 0.1f},
     LEVEL},
    {"rmsprop_momentum",
     {.kind = DDP_RMSPROP,
      .lr = 0.001f,
      .momentum = 0.9f}, /* ten times as far */
     LEVEL},
    {"rmsprop_momentum_falls",
     {.kind = DDP_RMSPROP, .lr = 0.002f, .momentum = 0.9f},
     FALLS},
    {"rmsprop_eps", {.kind = DDP_RMSPROP, .lr = 0.01f, .eps = 1e-3f}, LEVEL},
    {"adam_eps", {.kind = DDP_ADAM, .lr = 0.01f, .eps = 1e-3f}, LEVEL},
    {"amsgrad",
     {.kind = DDP_AMSGRAD, .lr = 0.01f, .weight_decay = 0.1f},
     LEVEL},
    {"nadam", {.kind = DDP_NADAM, .lr = 0.01f}, LEVEL},
    {"nadam_decay",
     {.kind = DDP_NADAM, .lr = 0.01f, .weight_decay = 0.1f},
     LEVEL},
    {"radam", {.kind = DDP_RADAM, .lr = 0.01f}, LEVEL},
    {"radam_decay",
     {.kind = DDP_RADAM, .lr = 0.1f, .weight_decay = 0.1f},
     FALLS},
    {"adabelief", {.kind = DDP_ADABELIEF, .lr = 0.003f}, LEVEL},
    {"adabelief_decay",
     {.kind = DDP_ADABELIEF, .lr = 0.003f, .weight_decay = 0.1f},
     LEVEL},
    {"lion", {.kind = DDP_LION, .lr = 0.003f}, LEVEL},
    {"lion_decay",
     {.kind = DDP_LION, .lr = 0.003f, .weight_decay = 0.1f, .clip_norm = 0.5f},
     LEVEL},
    {"adagrad", {.kind = DDP_ADAGRAD, .lr = 0.05f}, LEVEL},
    {"adagrad_decay",
     {.kind = DDP_ADAGRAD, .lr = 0.05f, .weight_decay = 0.1f},
     FALLS},
    {"adadelta", {.kind = DDP_ADADELTA, .lr = 1}, LEVEL},
    {"adadelta_decay",
     {.kind = DDP_ADADELTA, .lr = 1, .weight_decay = 0.1f},
     LEVEL},
    {"lamb", {.kind = DDP_LAMB, .lr = 0.01f}, LEVEL},
    {"lamb_decay",
     {.kind = DDP_LAMB, .lr = 0.01f, .weight_decay = 0.1f},
     LEVEL},
    {"lamb_clip",
     {.kind = DDP_LAMB,
      .lr = 0.01f,
      .weight_decay = 0.1f,
      .decay_all = true,
      .clip_norm = 0.5f},
     LEVEL},
    {"lars", {.kind = DDP_LARS, .lr = 0.05f, .momentum = 0.9f}, LEVEL},
    {"lars_decay",
     {.kind = DDP_LARS, .lr = 1, .momentum = 0.9f, .weight_decay = 0.1f},
     LEVEL},
    {"lars_falls",
     {.kind = DDP_LARS,
      .lr = 4,
      .momentum = 0.9f,
      .weight_decay = 0.1f,
      .decay_all = true},
     FALLS},
    {"nadamw", {.kind = DDP_NADAMW, .lr = 0.01f}, LEVEL},
    {"nadamw_decay",
     {.kind = DDP_NADAMW, .lr = 0.02f, .weight_decay = 0.1f},
     FALLS},
    {"adamp", {.kind = DDP_ADAMP, .lr = 0.01f, .weight_decay = 0.1f}, LEVEL},
    {"adamp_falls", {.kind = DDP_ADAMP, .lr = 0.03f, .clip_norm = 0.5f}, FALLS},
    {"rmsproptf", {.kind = DDP_RMSPROP_TF, .lr = 0.05f}, LEVEL},
    {"rmsproptf_momentum",
     {.kind = DDP_RMSPROP_TF,
      .lr = 0.01f,
      .momentum = 0.9f,
      .eps = 1e-3f,
      .weight_decay = 0.1f},
     LEVEL},
    {"rmsproptf_falls",
     {.kind = DDP_RMSPROP_TF, .lr = 0.02f, .momentum = 0.9f},
     FALLS},
    {"momentum_unit",
     {.kind = DDP_MOMENTUM,
      .lr = 0.05f,
      .momentum = 0.9f,
      .weight_decay = 0.1f,
      .clip_unit = 0.2f},
     LEVEL},
    {"nadamw_unit",
     {.kind = DDP_NADAMW,
      .lr = 0.01f,
      .weight_decay = 0.1f,
      .clip_norm = 0.5f,
      .clip_unit = 0.2f},
     LEVEL},
    {"sgd_ahead",
     {.kind = DDP_SGD, .lr = 0.1f, .weight_decay = 0.1f, .lookahead = 6},
     LEVEL},
    {"adamw_ahead",
     {.kind = DDP_ADAMW, .lr = 0.01f, .weight_decay = 0.1f, .lookahead = 6},
     FALLS},
    {"nesterov_cycles",
     {.kind = DDP_NESTEROV, .lr = 0.1f, .momentum = 0.9f},
     CYCLES},
    {"adamw_cycles",
     {.kind = DDP_ADAMW, .lr = 0.02f, .weight_decay = 0.1f},
     CYCLES},
};

/* What the constructors fill in. */
static struct ddp_optimizer with_defaults(struct ddp_optimizer p)
{
    struct ddp_optimizer d = ddp_optimizer_info(p.kind)->defaults;

    p.beta1 = d.beta1;
    p.beta2 = d.beta2;
    p.eps = p.eps > 0 ? p.eps : d.eps;
    return p;
}

static double falling(int64_t step, double epoch, double epochs, void *arg)
{
    (void)epoch;
    (void)epochs;
    (void)arg;
    return 1 / (1 + (double)step);
}

static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    const struct oracle_tensor *x = oracle_find(o, "x");
    size_t len = x->len / (size_t)x->dim[0];

    (void)arg;
    (void)key;
    memcpy(s->x, x->data + (size_t)i * len, len * sizeof(float));
    s->label = (int32_t)oracle_find(o, "label")->data[i];
    return 0;
}

static ddp_chain_t *net(void)
{
    ddp_chain_t *c =
        ddp_chain_new(ddp_conv_new(2, 4, 3,
                                   &(struct ddp_conv_options){CONV_DEFAULTS,
                                                              .no_bias = true}),
                      ddp_batch_norm_new(4, NULL), ddp_tanh_new(),
                      ddp_flatten_new(), ddp_dense_new(48, 5, NULL), DDP_END);
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *t = oracle_find(o, "p/%s", p.name);

        if (!t || ddp_chain_set(c, p.name, t->data, t->len) < 0)
            bail_out("%s: %s", p.name, ddp_errmsg());
    }
    return c;
}

/* |w - want| / |want - w0| */
static double way_off(const float *w, const float *want, const float *from,
                      size_t len)
{
    double off = 0, way = 0;

    for (size_t i = 0; i < len; i++) {
        off += ((double)w[i] - want[i]) * ((double)w[i] - want[i]);
        way += ((double)want[i] - from[i]) * ((double)want[i] - from[i]);
    }
    return sqrt(off / way);
}

/* Of the parameters, or with a trainer of their averages. */
static bool ways_agree(ddp_chain_t *c, ddp_trainer_t *t, const char *name)
{
    struct ddp_param_info p;
    bool good = true;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *want =
            oracle_find(o, "%s/%s/%s", name, t ? "e" : "p", p.name);
        float w[256];
        double d;

        if (!want || p.len > 256 ||
            (t ? ddp_trainer_ema_get(t, p.name, w, p.len)
               : ddp_chain_get(c, p.name, w, p.len)) < 0)
            return false;
        d = way_off(w, want->data, oracle_find(o, "p/%s", p.name)->data, p.len);
        if (!(d <= TOLERANCE)) {
            diag("%s: %s%s is off by %.3g of its way", name, p.name,
                 t ? ", averaged," : "", d);
            good = false;
        }
    }
    return good;
}

/* Fifty steps: the largest difference of their losses. */
static double run_steps(ddp_trainer_t *t, const char *name)
{
    const struct oracle_tensor *loss = oracle_find(o, "%s/loss", name);
    struct ddp_metrics m;
    double off = 0;

    for (int i = 0; i < STEPS; i++) {
        if (!t || ddp_trainer_step(t, &m) < 0)
            return HUGE_VAL;
        off = fmax(off, fabs(m.loss - (double)loss->data[i]));
    }
    return off;
}

static void test_optimizer(ddp_t *ddp, ddp_dataset_t *d, int k)
{
    const char *name = optimizers[k].name;
    struct ddp_train_config cfg = {TRAIN_DEFAULTS,
                                   .loss = DDP_LOGIT_CROSS_ENTROPY,
                                   .optimizer = with_defaults(optimizers[k].o),
                                   .sub_batch = BATCH,
                                   .batch = BATCH,
                                   .ema_decay = 0.9,
                                   .order = DDP_IN_ORDER,
                                   .keep_weights = true};
    ddp_chain_t *c = net();
    ddp_trainer_t *t;
    double off;

    if (optimizers[k].course == FALLS)
        cfg.schedule =
            (struct ddp_schedule){.kind = DDP_CUSTOM_SCHEDULE, .fn = falling};
    if (optimizers[k].course == CYCLES)
        ddp_schedule_init(&cfg.schedule, DDP_ONE_CYCLE, 1);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    off = run_steps(t, name);
    ok(off < 2e-6, "%s: losses of %d steps, off by %.2g", name, STEPS, off);
    ok(t && ways_agree(c, NULL, name), "%s: where parameters have gone", name);
    ok(t && ways_agree(c, t, name), "%s: and their averages", name);
    ddp_trainer_free(t);
    ddp_chain_free(c);
}

/* ---- losses ------------------------------------------------------------- */

/* As oracle_optim.py has them, of shares. */
static const struct {
    const char *name;
    struct ddp__loss loss;
} losses[] = {
    {"soft", {.kind = DDP_LOGIT_CROSS_ENTROPY, .smoothing = 0.1f}},
    {"binary", {.kind = DDP_BINARY_CROSS_ENTROPY}},
    {"hard",
     {.kind = DDP_BINARY_CROSS_ENTROPY, .smoothing = 0.1f, .threshold = 0.2f}},
    {"focal", {.kind = DDP_FOCAL, .gamma = 2, .alpha = 0.25f}},
    {"focal_plain", {.kind = DDP_FOCAL, .gamma = 1.5f, .alpha = -1}},
};

/* ref computes in f64 from values in f32; test_ops compares others with it.
 * Gradients are rounded to f32. */
static void test_loss(const char *name, const struct ddp__loss *loss)
{
    const struct oracle_tensor *x = oracle_find(o, "loss/x");
    const struct oracle_tensor *want = oracle_find(o, "loss/%s", name);
    int n = x->dim[0], len = x->dim[1];
    struct ddp__view row = image(1, 1, len);
    struct ddp__call c = {
        .cap = n,
        .buf = {row, row, vector(n + 1), vector(DDP__STATS), row},
        .loss = *loss};
    float weight[16], dx[256];
    double stats[DDP__STATS];

    for (int i = 0; i < n; i++)
        weight[i] = 1;
    weight[n] = (float)n;
    RUN(LOSS, &c, n, (float *)(uintptr_t)x->data,
        (float *)(uintptr_t)oracle_find(o, "loss/shares")->data, weight, stats,
        dx);
    is_near(stats[DDP__STAT_LOSS] / n, (double)*want->data,
            1e-6 * (double)*want->data, "loss %s", name);
    for (size_t i = 0; i < x->len; i++)
        dx[i] /= (float)n;
    is_near(
        oracle_distance(dx, oracle_find(o, "loss/%s/dx", name)->data, x->len),
        0, 2e-7, "loss %s: its gradient", name);
}

/* ---- fifty steps with each loss ----------------------------------------- */

/* Sample i of the batches, with a target of what `arg` names. */
static int get_target(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    const struct oracle_tensor *target =
        oracle_find(o, "steps/%s", (const char *)arg);
    size_t len = (size_t)target->dim[1];

    memcpy(s->target, target->data + (size_t)i * len, len * sizeof(float));
    return get(NULL, i, key, s);
}

/* (1 - a) cross entropy + a t^2 KL divergence from the teacher's. */
static double distilled(const float *x, const void *target, const float *weight,
                        int n, int len, float *dx, void *arg)
{
    const float *taught = target;
    double sum = 0;

    (void)arg;
    for (int i = 0; i < n; i++, x += len, taught += len + 1) {
        const double a = 0.7, t = 3;
        double hard = 0, soft = 0, wise = 0;

        for (int k = 0; k < len; k++) {
            hard += exp((double)x[k]);
            soft += exp(x[k] / t);
            wise += exp(taught[k] / t);
        }
        for (int k = 0; k < len; k++) {
            double own = k == (int)taught[len];
            double p = exp(x[k] / t) / soft, q = exp(taught[k] / t) / wise;

            sum += weight[i] * (a * t * t * q * log(q / p) -
                                (1 - a) * own * (x[k] - log(hard)));
            if (dx)
                dx[i * len + k] =
                    (float)(weight[i] *
                            ((1 - a) * (exp((double)x[k]) / hard - own) +
                             a * t * (p - q)));
        }
    }
    return sum;
}

static const float weights_of_5[] = {1, 0.5f, 2, 0.25f, 3};

/* As oracle_optim.py has them; NULL: the target is a class. */
static const struct {
    const char *name, *target;
    struct ddp_train_config cfg;
} steps[] = {
    {"soft", "shares", {TRAIN_DEFAULTS, .label_smoothing = 0.1f}},
    {"binary", "shares", {TRAIN_DEFAULTS, .loss = DDP_BINARY_CROSS_ENTROPY}},
    {"hard",
     "shares",
     {TRAIN_DEFAULTS, .loss = DDP_BINARY_CROSS_ENTROPY, .label_smoothing = 0.1f,
      .target_threshold = 0.2f}},
    {"focal", "shares", {TRAIN_DEFAULTS, .loss = DDP_FOCAL}},
    {"several", "several", {TRAIN_DEFAULTS, .loss = DDP_BINARY_CROSS_ENTROPY}},
    {"positive",
     "several",
     {TRAIN_DEFAULTS, .loss = DDP_BINARY_CROSS_ENTROPY,
      .pos_weight = weights_of_5, .pos_weight_count = 5}},
    {"distilled",
     "teacher",
     {TRAIN_DEFAULTS, .loss = DDP_CUSTOM_LOSS, .loss_fn = distilled}},
    {"weighted",
     NULL,
     {TRAIN_DEFAULTS, .class_weights = weights_of_5, .class_weight_count = 5}},
};

static void test_steps(ddp_t *ddp, int k)
{
    const char *target = steps[k].target;
    struct ddp_train_config cfg = steps[k].cfg;
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = STEPS * BATCH,
        .shape = {6, 5, 2},
        .type = DDP_F32,
        .classes = target ? 0 : 5,
        .target_len = target ? oracle_find(o, "steps/%s", target)->dim[1] : 0,
        .get = target ? get_target : get,
        .arg = (void *)(uintptr_t)target});
    ddp_chain_t *c = net();
    ddp_trainer_t *t;
    char name[32];
    double off;

    cfg.optimizer = ddp_momentum(0.05f, 0.9f);
    cfg.sub_batch = cfg.batch = BATCH;
    cfg.order = DDP_IN_ORDER;
    cfg.keep_weights = true;
    snprintf(name, sizeof(name), "steps/%s", steps[k].name);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    off = run_steps(t, name);
    ok(off < 2e-6, "loss %s: losses of %d steps, off by %.2g", steps[k].name,
       STEPS, off);
    ok(t && ways_agree(c, NULL, name), "loss %s: where parameters have gone",
       steps[k].name);
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

/* ---- weights of classes ------------------------------------------------- */

static int get_row(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    const struct oracle_tensor *x = oracle_find(o, "loss/x");
    size_t len = (size_t)x->dim[1];

    (void)arg;
    (void)key;
    memcpy(s->x, x->data + (size_t)i * len, len * sizeof(float));
    if (s->target)
        memcpy(s->target, oracle_find(o, "loss/shares")->data + (size_t)i * len,
               len * sizeof(float));
    else
        s->label = (int32_t)oracle_find(o, "weighted/label")->data[i];
    return 0;
}

/* The whole way, from labels or shares to the gradient of a step of three
 * sub-batches. */
static void test_weighted(ddp_t *ddp, const char *name, bool shares,
                          float smoothing)
{
    const struct oracle_tensor *x = oracle_find(o, "loss/x");
    const struct oracle_tensor *weight = oracle_find(o, "weighted/weight");
    const struct oracle_tensor *want = oracle_find(o, "weighted/%s", name);
    int n = x->dim[0], len = x->dim[1];
    ddp_dataset_t *d = ddp_dataset_callback(
        &(struct ddp_source){.count = n,
                             .shape = {1, 1, len},
                             .type = DDP_F32,
                             .classes = shares ? 0 : len,
                             .target_len = shares ? len : 0,
                             .get = get_row});
    ddp_chain_t *c =
        ddp_chain_new(ddp_dense_new(len, len,
                                    &(struct ddp_dense_options){
                                        DENSE_DEFAULTS, .no_bias = true}),
                      DDP_END);
    struct ddp_train_config cfg = {TRAIN_DEFAULTS,
                                   .optimizer = ddp_sgd(0.1f),
                                   .label_smoothing = smoothing,
                                   .class_weights = weight->data,
                                   .class_weight_count = len,
                                   .batch = n,
                                   .sub_batch = 3,
                                   .lanes = 2};
    float w[81] = {0}, dw[81] = {0};
    struct ddp_metrics m = {0};
    ddp_trainer_t *t;

    for (int i = 0; i < len; i++)
        w[i * len + i] = 1;
    ddp_chain_set(c, "0.weight", w, 81);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    if (ddp_trainer_gradients(t, &m) < 0 ||
        ddp_trainer_get_gradient(t, "0.weight", dw, 81) < 0)
        diag("%s", ddp_errmsg());
    is_near(m.loss, (double)*want->data, 1e-6 * (double)*want->data,
            "weights of classes, %s: the loss is PyTorch's", name);
    is_near(
        oracle_distance(dw, oracle_find(o, "weighted/%s/dw", name)->data, 81),
        0, 1e-6, "weights of classes, %s: its gradient", name);
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
}

int main(void)
{
    struct oracle *read;
    ddp_dataset_t *d;
    ddp_t *ddp;

    if (oracle_missing())
        skip_all("%s", oracle_missing());
    if (!(o = read = oracle_new("oracle_optim.py", NULL)))
        bail_out("oracle_optim.py failed");
    d = ddp_dataset_callback(&(struct ddp_source){.count = STEPS * BATCH,
                                                  .shape = {6, 5, 2},
                                                  .type = DDP_F32,
                                                  .classes = 5,
                                                  .get = get});
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
        test_loss(losses[i].name, &losses[i].loss);
    for (int i = 0; i < BACKENDS; i++) {
        if (!(ddp = begin_backend(i)))
            continue;
        test_weighted(ddp, "plain", false, 0);
        test_weighted(ddp, "smoothed", false, 0.1f);
        test_weighted(ddp, "shares", true, 0.1f);
        for (size_t k = 0; k < sizeof(optimizers) / sizeof(optimizers[0]); k++)
            test_optimizer(ddp, d, (int)k);
        for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
            test_steps(ddp, (int)k);
        ddp_finish(ddp);
    }
    ddp_dataset_free(d);
    oracle_free(read);
    return done_testing();
}
