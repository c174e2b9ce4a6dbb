/* test_finetune.c - frozen layers, groups of parameters, rates by layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The oracles: for frozen layers a network without them, trained on what they
 * make of the data; for rates and decays the rule of SGD in double.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "defaults.h"
#include "tap.h"

enum { SIZE = 6, LEN = SIZE * SIZE * 2, CLASSES = 4, COUNT = 32, STEPS = 6 };
enum { INNER = 4 * 4 * 4, MOST = 512 };

static ddp_t *ddp;

/* ---- data and networks -------------------------------------------------- */

static int image(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < LEN; i++)
        x[i] = ddp__uniform(ddp__philox(3, (uint64_t)index, (uint64_t)i).v[0]) +
               (float)(i % CLASSES == s->label);
    return 0;
}

/* What the front of a network makes of the images. */
static int feature(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    memcpy(s->x, (const float *)arg + index * INNER, INNER * sizeof(float));
    return 0;
}

static ddp_dataset_t *images(void)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {SIZE, SIZE, 2},
                                                     .type = DDP_F32,
                                                     .classes = CLASSES,
                                                     .get = image});
}

static ddp_layer_t *named(const char *name, ddp_layer_t *l)
{
    return ddp_layer_set_name(l, name);
}

static ddp_chain_t *front(void)
{
    return ddp_chain_new(named("conv1", ddp_conv_new(2, 4, 3, NULL)),
                         named("bn1", ddp_batch_norm_new(4, NULL)),
                         named("act", ddp_relu_new()), DDP_END);
}

static void add_layers(ddp_chain_t *c, ddp_layer_t *norm)
{
    ddp_chain_add(c, named("conv2", ddp_conv_new(4, 3, 3, NULL)));
    ddp_chain_add(c, named("bn2", norm));
    ddp_chain_add(c, named("relu", ddp_relu_new()));
    ddp_chain_add(c, named("flat", ddp_flatten_new()));
    ddp_chain_add(c, named("fc", ddp_dense_new(12, CLASSES, NULL)));
}

static void add_back(ddp_chain_t *c)
{
    add_layers(c, ddp_batch_norm_new(3, NULL));
}

static ddp_chain_t *whole(void)
{
    ddp_chain_t *c = front();

    add_back(c);
    return c;
}

static struct ddp_train_config config(void)
{
    return (struct ddp_train_config){
        TRAIN_DEFAULTS, .optimizer = ddp_momentum(0.1f, 0.9f),
        .sub_batch = 4, .batch = 16,
        .lanes = 2,     .steps = STEPS,
        .seed = 7};
}

static size_t values(ddp_chain_t *c, const char *name, float *out)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        if (!strcmp(p.name, name) && p.len <= MOST &&
            ddp_chain_get(c, name, out, p.len) == 0)
            return p.len;
    bail_out("%s: %s", name, ddp_errmsg());
    return 0;
}

/* The largest difference of a parameter in two networks. */
static double distance(ddp_chain_t *a, ddp_chain_t *b, const char *name)
{
    float x[MOST], y[MOST];
    size_t n = values(a, name, x);
    double most = 0;

    values(b, name, y);
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i] - y[i]));
    return most;
}

/* All parameters that both have. */
static void copy_values(ddp_chain_t *to, ddp_chain_t *from)
{
    struct ddp_param_info p;
    float x[MOST];

    for (int i = 0; ddp_chain_param(to, i, &p) == 0; i++) {
        values(from, p.name, x);
        ddp_chain_set(to, p.name, x, p.len);
    }
}

/* ---- frozen layers ------------------------------------------------------ */

static int64_t train(ddp_chain_t *c, ddp_dataset_t *d,
                     const struct ddp_train_config *cfg)
{
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, cfg);
    struct ddp_stats s = {0};

    if (ddp_trainer_train(t) < 0 || ddp_trainer_stats(t, &s) < 0)
        bail_out("%s", ddp_errmsg());
    ddp_trainer_free(t);
    return s.tasks;
}

/* The front's weights and statistics are those that it begins with; so it is
 * a function of the images, which a network of the back alone can be given. */
static void test_frozen(void)
{
    static float x[COUNT * LEN], y[COUNT * INNER];
    const struct ddp_param_group group[] = {
        {"conv1", 0, -1}, {"bn*", 1, -1}, {"bn1.*", 0, -1}};
    struct ddp_train_config cfg = config();
    ddp_chain_t *all = whole(), *same = whole(), *first = front();
    ddp_chain_t *back = ddp_chain_new(DDP_END);
    ddp_dataset_t *d = images(), *features;
    struct ddp_sample s;
    int64_t frozen, free_tasks;

    add_back(back);
    ddp_chain_init(all, 5);
    copy_values(same, all);
    copy_values(first, all);
    copy_values(back, all);
    for (int i = 0; i < COUNT; i++) {
        s.x = x + i * LEN;
        image(NULL, i, 0, &s);
    }
    if (ddp_chain_forward(ddp, first, x, DDP_F32,
                          (struct ddp_shape){SIZE, SIZE, 2}, COUNT, 4, y) < 0)
        bail_out("%s", ddp_errmsg());
    features = ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                         .shape = {4, 4, 4},
                                                         .type = DDP_F32,
                                                         .classes = CLASSES,
                                                         .get = feature,
                                                         .arg = y});
    cfg.keep_weights = true;
    train(back, features, &cfg);
    free_tasks = train(same, d, &cfg);
    cfg.groups = group;
    cfg.group_count = 3;
    frozen = train(all, d, &cfg);

    is_near(distance(all, first, "conv1.weight"), 0, 0,
            "a frozen weight is not changed");
    is_near(distance(all, first, "bn1.bias"), 0, 0, "so does a norm");
    is_near(distance(all, first, "bn1.running_mean"), 0, 0,
            "and its running statistics");
    /* The same operations in f32, but perhaps in another order. */
    is_near(distance(all, back, "conv2.weight"), 0, 1e-5,
            "the others are those of a network that is given its output");
    is_near(distance(all, back, "bn2.running_var"), 0, 1e-5,
            "their statistics too");
    is_near(distance(all, back, "fc.bias"), 0, 1e-5, "up to the last layer");
    ok(distance(all, first, "conv1.weight") <
           distance(same, first, "conv1.weight"),
       "without groups, all move");
    ok(frozen < free_tasks, "there are fewer tasks: %d instead of %d",
       (int)frozen, (int)free_tasks);
    ddp_dataset_free(features);
    ddp_dataset_free(d);
    ddp_chain_free(back);
    ddp_chain_free(first);
    ddp_chain_free(same);
    ddp_chain_free(all);
}

/* A frozen norm is y = a x + b, as is a convolution of one pixel and one
 * channel: the network with that in its place trains the same way. */
static void test_frozen_norm(void)
{
    const float scale[] = {0.5f, 2, -1}, shift[] = {0.25f, 0, 0.5f};
    const float mean[] = {0.5f, -1, 0}, var[] = {0.25f, 1, 4};
    const struct ddp_param_group frozen[] = {{"bn2", 0, -1}};
    struct ddp_train_config cfg = config();
    ddp_chain_t *norm = whole(), *like = front();
    ddp_dataset_t *d = images();
    float a[3], b[3], now[3];

    add_layers(like, ddp_conv_new(3, 3, 1,
                                  &(struct ddp_conv_options){CONV_DEFAULTS,
                                                             .groups = 3}));
    ddp_chain_init(norm, 5);
    copy_values(like, norm);
    for (int i = 0; i < 3; i++) {
        a[i] = scale[i] / sqrtf(var[i] + 1e-5f);
        b[i] = shift[i] - mean[i] * a[i];
    }
    ddp_chain_set(norm, "bn2.weight", scale, 3);
    ddp_chain_set(norm, "bn2.bias", shift, 3);
    ddp_chain_set(norm, "bn2.running_mean", mean, 3);
    ddp_chain_set(norm, "bn2.running_var", var, 3);
    ddp_chain_set(like, "bn2.weight", a, 3);
    ddp_chain_set(like, "bn2.bias", b, 3);
    cfg.keep_weights = true;
    cfg.groups = frozen;
    cfg.group_count = 1;
    train(norm, d, &cfg);
    train(like, d, &cfg);
    values(norm, "bn2.running_mean", now);
    ok(memcmp(now, mean, sizeof(mean)) == 0,
       "a frozen norm's mean is not changed");
    values(norm, "bn2.weight", now);
    ok(memcmp(now, scale, sizeof(scale)) == 0, "and its scale");
    /* f32 in another order, STEPS times. */
    is_near(distance(norm, like, "conv1.weight"), 0, 1e-5,
            "layers before it train as before a linear layer");
    is_near(distance(norm, like, "conv2.weight"), 0, 1e-5, "the last of them");
    is_near(distance(norm, like, "fc.weight"), 0, 1e-5, "and those after it");
    ddp_dataset_free(d);
    ddp_chain_free(like);
    ddp_chain_free(norm);
}

/* ---- rates and decays --------------------------------------------------- */

/* One step of SGD: w - lr (g + decay w), in f32. */
static double off(ddp_trainer_t *t, ddp_chain_t *before, ddp_chain_t *now,
                  const char *name, double lr, double decay)
{
    float w[MOST], g[MOST], x[MOST];
    size_t n = values(before, name, w);
    double most = 0;

    values(now, name, x);
    if (ddp_trainer_get_gradient(t, name, g, n) < 0)
        bail_out("%s: %s", name, ddp_errmsg());
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i] - (w[i] - lr * (g[i] + decay * w[i]))));
    return most;
}

struct expected {
    const char *name;
    double lr, decay;
};

static void check_step(struct ddp_train_config *cfg,
                       const struct expected *want, int n, const char *what)
{
    ddp_chain_t *now = whole(), *before = whole();
    ddp_dataset_t *d = images();
    ddp_trainer_t *t;

    cfg->optimizer = ddp_sgd(0.5f);
    cfg->optimizer.weight_decay = 0.01f;
    ddp_chain_init(now, 5);
    copy_values(before, now);
    cfg->keep_weights = true;
    t = ddp_trainer_new(ddp, now, d, cfg);
    if (ddp_trainer_gradients(t, NULL) < 0)
        bail_out("%s", ddp_errmsg());
    for (int i = 0; i < n; i++) {
        ddp_chain_t *after = whole();
        ddp_trainer_t *u;

        copy_values(after, before);
        u = ddp_trainer_new(ddp, after, d, cfg);
        if (ddp_trainer_step(u, NULL) < 0 || ddp_trainer_wait(u) < 0)
            bail_out("%s", ddp_errmsg());
        /* Roundings of values up to 1. */
        is_near(off(t, before, after, want[i].name, want[i].lr, want[i].decay),
                0, 1e-6, "%s: %s has rate %g, decay %g", what, want[i].name,
                want[i].lr, want[i].decay);
        ddp_trainer_free(u);
        ddp_chain_free(after);
    }
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(before);
    ddp_chain_free(now);
}

static void test_rates(void)
{
    const struct ddp_param_group group[] = {
        {"fc", 2, -1}, {"*.bias", 1, 0.1f}, {"conv?.*", 0.5f, 0}};
    const struct expected want[] = {{"fc.weight", 1, 0.01},
                                    {"fc.bias", 0.5, 0.1},
                                    {"bn1.weight", 0.5, 0},
                                    {"bn2.bias", 0.5, 0.1},
                                    {"conv1.weight", 0.25, 0}};
    struct ddp_train_config cfg = config();

    cfg.groups = group;
    cfg.group_count = 3;
    check_step(&cfg, want, 5, "groups");
}

/* A group leaves to others what it says nothing of. */
static void test_combined(void)
{
    const struct ddp_param_group group[] = {{"fc", 2, -1},
                                            {"fc.bias", -1, 0.1f},
                                            {"fc", -1, -1},
                                            {"bn?", 0.5f, 1},
                                            {"bn1", -1, 0}};
    const struct expected want[] = {{"fc.weight", 1, 0.01},
                                    {"fc.bias", 1, 0.1},
                                    {"bn1.weight", 0.25, 0},
                                    {"bn2.weight", 0.25, 1},
                                    {"conv1.weight", 0.5, 0.01}};
    struct ddp_train_config cfg = config();

    cfg.groups = group;
    cfg.group_count = 5;
    check_step(&cfg, want, 5, "groups that combine");
}

static void test_layers(void)
{
    const struct expected want[] = {{"conv1.weight", 0.125, 0.01},
                                    {"bn1.bias", 0.125, 0},
                                    {"bn2.weight", 0.25, 0},
                                    {"conv2.weight", 0.25, 0.01},
                                    {"fc.weight", 0.5, 0.01}};
    struct ddp_train_config cfg = config();

    cfg.layer_decay = 0.5f;
    check_step(&cfg, want, 5, "layer_decay");
}

/* ---- errors ------------------------------------------------------------- */

static void refuse(const struct ddp_param_group *g, int n, const char *why)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = whole();
    ddp_dataset_t *d = images();

    cfg.groups = g;
    cfg.group_count = n;
    ok(!ddp_trainer_new(ddp, c, d, &cfg) && strstr(ddp_errmsg(), why),
       "refused: %s", ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

static void test_errors(void)
{
    refuse((const struct ddp_param_group[]){{"layer9", 0, -1}}, 1,
           "matches 'layer9'");
    refuse((const struct ddp_param_group[]){{"*", 0, -1}}, 1, "all layers");
    refuse((const struct ddp_param_group[]){{"fc", NAN, -1}}, 1, "lr nan");
    refuse((const struct ddp_param_group[]){{NULL, 1, -1}}, 1, "matches NULL");
    refuse(NULL, 1, "groups is NULL");
}

/* ---- averages ----------------------------------------------------------- */

/* timm's ModelEmaV3 with use_warmup: decay after s + 1 updates is at most
 * 1 - (1 + s)^(-2/3).  Rounded to f32 in each of 6 steps. */
static void test_averages(void)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = whole();
    ddp_dataset_t *d = images();
    float w[MOST], e[MOST];
    double want[MOST] = {0}, most = 0;
    ddp_trainer_t *t;
    size_t n = 0;

    cfg.ema_decay = 0.6;
    cfg.ema_warmup = true;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    for (int k = 0; k < STEPS; k++) {
        double decay = fmin(0.6, 1 - pow(1 + k, -2.0 / 3));

        if (ddp_trainer_step(t, NULL) < 0 || ddp_trainer_wait(t) < 0)
            bail_out("%s", ddp_errmsg());
        n = values(c, "conv2.weight", w);
        for (size_t i = 0; i < n; i++)
            want[i] = decay * want[i] + (1 - decay) * w[i];
    }
    if (ddp_trainer_ema_get(t, "conv2.weight", e, n) < 0)
        bail_out("%s", ddp_errmsg());
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(e[i] - want[i]));
    is_near(most, 0, 1e-6, "averages begin as timm's do");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- evaluations that decide -------------------------------------------- */

struct run {
    ddp_trainer_t *t;
    ddp_dataset_t *data;
    int stop, pauses; /* after so many steps; calls of on_steps */
    double lr;        /* of the last step */
};

static int after_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    r->lr = p->lr;
    return p->step == r->stop;
}

static int pause_run(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    (void)p;
    r->pauses++;
    return ddp_trainer_evaluate(r->t, r->data, NULL);
}

/* All that depends on evaluations, and groups. */
static struct ddp_train_config deciding(struct run *r)
{
    static const struct ddp_param_group group[] = {{"conv1", 0, -1},
                                                   {"bn1", 0, -1}};
    struct ddp_train_config cfg = config();

    ddp_schedule_init(&cfg.schedule, DDP_PLATEAU, 6);
    cfg.schedule.patience = 0;
    cfg.schedule.gamma = 0.5;
    cfg.schedule.threshold = 0.5;
    cfg.ema_decay = 0.9;
    cfg.ema_warmup = true;
    cfg.groups = group;
    cfg.group_count = 2;
    cfg.layer_decay = 0.75f;
    cfg.every_steps = 3;
    cfg.on_steps = pause_run;
    cfg.on_step = after_step;
    cfg.arg = r;
    cfg.steps = 24;
    return cfg;
}

static uint32_t checksum(ddp_chain_t *c)
{
    uint32_t crc = 0;

    if (ddp_chain_checksum(c, &crc) < 0)
        bail_out("%s", ddp_errmsg());
    return crc;
}

/* Train to the end, or until it is stopped with a checkpoint. */
static uint32_t run(struct run *r, const struct ddp_train_config *cfg,
                    bool resume)
{
    ddp_chain_t *c = whole();
    uint32_t crc;
    int rc;

    r->t = ddp_trainer_new(ddp, c, r->data, cfg);
    if (resume && ddp_trainer_resume(r->t, NULL, NULL) != 1)
        bail_out("%s", ddp_errmsg());
    rc = ddp_trainer_train(r->t);
    if (rc == DDP_ESTOPPED)
        rc = ddp_trainer_checkpoint(r->t);
    if (rc < 0)
        bail_out("%s", ddp_errmsg());
    crc = checksum(c);
    ddp_trainer_free(r->t);
    ddp_chain_free(c);
    return crc;
}

static void test_resume(void)
{
    static const struct ddp_param_group other = {"fc", 2, -1};
    char dir[] = "/tmp/finetune-XXXXXX", command[64];
    struct run r = {.data = images()};
    struct ddp_train_config cfg = deciding(&r);
    uint32_t want = run(&r, &cfg, false);
    double lr = r.lr;
    ddp_chain_t *c = whole();
    ddp_trainer_t *t;

    is_int(r.pauses, 8, "a call after every third step");
    ok(lr > 0 && lr < 0.05, "the rate has fallen: %g", lr);
    if (!mkdtemp(dir))
        bail_out("mkdtemp");
    cfg.checkpoint.dir = dir;
    r.stop = 11; /* not where there is an evaluation */
    run(&r, &cfg, false);
    r.stop = 0;
    is_int(run(&r, &cfg, true), want, "resumed, the weights are the same");
    is_near(r.lr, lr, 0, "and the rate");
    cfg.groups = &other;
    cfg.group_count = 1;
    t = ddp_trainer_new(ddp, c, r.data, &cfg);
    ok(ddp_trainer_resume(t, NULL, NULL) == DDP_EINVAL &&
           strstr(ddp_errmsg(), "groups"),
       "other groups are refused: %s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(r.data);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    if (system(command))
        diag("%s is left", dir);
}

/* Without a learning rate the first evaluation is the best one, but for what
 * running statistics do to it. */
static void test_patience(void)
{
    struct run r = {.data = images()};
    struct ddp_train_config cfg = deciding(&r);

    cfg.optimizer = ddp_sgd(0);
    cfg.schedule = (struct ddp_schedule){0};
    cfg.group_count = 0;
    cfg.layer_decay = 0;
    cfg.patience = 3;
    cfg.every_steps = 1;
    run(&r, &cfg, false);
    ok(r.pauses >= 4 && r.pauses < 24, "the run ends after %d evaluations",
       r.pauses);
    ddp_dataset_free(r.data);
}

int main(void)
{
    /* An operation is a task, so that fewer operations can be seen. */
    setenv("DDP_SEGMENT_US", "0", 1);
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    test_frozen();
    test_frozen_norm();
    test_rates();
    test_combined();
    test_layers();
    test_errors();
    test_averages();
    test_resume();
    test_patience();
    ddp_finish(ddp);
    return done_testing();
}
