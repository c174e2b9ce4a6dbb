/* test_scale.c - f16 activations and the scale of the loss
 *
 * The scale must be what PyTorch's GradScaler makes of the same overflows, and
 * the rest what f32 gives, but for the roundings of f16.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "defaults.h"
#include "oracle.h"
#include "same_bits.h"
#include "tap.h"
#include "train/trainer.h"

enum { STEPS = 20, BATCH = 6, IN = 7, CLASSES = 4 };

/* ---- against PyTorch ---------------------------------------------------- */

static const struct oracle *o;

/* Samples of a run: with the script's weights, or all equal. */
static int get(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    (void)key;
    memcpy(s->x, oracle_find(o, "x")->data + i * IN, IN * sizeof(float));
    s->label = (int32_t)oracle_find(o, "label")->data[i];
    if (*(const bool *)arg)
        s->weight = oracle_find(o, "weight")->data[i];
    return 0;
}

static ddp_chain_t *net(void)
{
    return ddp_chain_new(ddp_dense_new(IN, 16, NULL), ddp_tanh_new(),
                         ddp_dense_new(16, CLASSES, NULL), DDP_END);
}

static void set_params(ddp_chain_t *c)
{
    struct ddp_param_info p;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const struct oracle_tensor *t = oracle_find(o, "p/%s", p.name);

        if (!t || ddp_chain_set(c, p.name, t->data, t->len) < 0)
            bail_out("%s: %s", p.name, ddp_errmsg());
    }
}

/* How far the parameters are from the script's, over the way these went. */
static double way_off(ddp_chain_t *c, const char *name)
{
    struct ddp_param_info p;
    double off = 0, way = 0;

    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++) {
        const float *to = oracle_find(o, "%s/p/%s", name, p.name)->data;
        const float *from = oracle_find(o, "p/%s", p.name)->data;
        float w[128];

        if (p.len > 128 || ddp_chain_get(c, p.name, w, p.len) < 0)
            return INFINITY;
        for (size_t k = 0; k < p.len; k++) {
            off += pow((double)w[k] - to[k], 2);
            way += pow((double)to[k] - from[k], 2);
        }
    }
    return sqrt(off / way);
}

/* Activations are rounded at 2^-12 of their size, inputs, hidden values and
 * logits of about 1 here: a loss is off by three such roundings, 1e-3, and the
 * way of 20 steps by about as much of itself; 4e-3 for both. */
static void test_trace(ddp_t *ddp, const char *name, bool weighted,
                       const double *state, const char *how)
{
    const float *scale = oracle_find(o, "%s/scale", name)->data;
    const float *loss = oracle_find(o, "%s/loss", name)->data;
    ddp_chain_t *c = net();
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = STEPS * BATCH,
                                                  .shape = {1, 1, IN},
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get,
                                                  .arg = &weighted});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.25f),
                                   .batch = BATCH, .sub_batch = 2, .lanes = 2,
                                   .dtype = DDP_F16, .order = DDP_IN_ORDER,
                                   .keep_weights = true});
    struct ddp_skips s = {.last = -1};
    double before = state ? state[1] : 65536, off = 0;
    int wrong = 0, skipped = 0;
    int64_t most = 0; /* in a row */
    struct ddp_metrics m;

    if (!t || (state && ddp__loss_scaler_set(t->engine, state) < 0))
        bail_out("%s", ddp_errmsg());
    set_params(c);
    for (int i = 0; i < STEPS; i++) {
        if (ddp_trainer_step(t, &m) < 0 || ddp_trainer_skips(t, &s) < 0)
            diag("%s", ddp_errmsg());
        wrong += s.loss_scale != (double)scale[i];
        wrong += m.skipped != ((double)scale[i] < before);
        skipped += m.skipped;
        most = s.in_a_row > most ? s.in_a_row : most;
        before = scale[i];
        off = fmax(off, fabs(m.loss - (double)loss[i]));
    }
    is_int(wrong, 0, "%s, %s: the scale is GradScaler's at every step", name,
           how);
    ok(s.steps == skipped && most == 0, "%d overflows, which are no fault",
       skipped);
    is_near(off, 0, 4e-3, "losses of %d steps", STEPS);
    is_near(way_off(c, name), 0, 4e-3, "where parameters have gone");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

static void test_torch(void)
{
    static const struct {
        const char *sched, *ncpu;
    } setting[] = {{NULL, "1"}, {NULL, "2"}, {"eager", "2"}};
    static const double state[DDP__SCALER_STATE] = {0, 1024, 1995, 0, 0};
    struct oracle *read;

    if (oracle_missing()) {
        skip(1, "%s", oracle_missing());
        return;
    }
    if (!(o = read = oracle_new("oracle_scale.py", NULL)))
        bail_out("oracle_scale.py failed");
    for (int i = 0; i < 3; i++) {
        ddp_t *ddp =
            start_under(setting[i].sched, setting[i].ncpu, NULL, "ref");
        char how[40];

        snprintf(how, sizeof(how), "%s worker, %s", setting[i].ncpu,
                 setting[i].sched ? setting[i].sched : "ddp");
        test_trace(ddp, "falls", true, NULL, how);
        test_trace(ddp, "grows", false, state, how);
        ddp_finish(ddp);
    }
    oracle_free(read);
}

/* ---- a network of everything -------------------------------------------- */

enum { SIZE = 8, COUNT = 24 };

static int image(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    uint8_t *x = s->x;

    (void)arg;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIZE * SIZE * 3; i++) {
        uint32_t u = (uint32_t)(index * 1000 + i) * 2654435761u + (uint32_t)key;

        x[i] = (uint8_t)(u >> 24);
    }
    return 0;
}

static ddp_layer_t *conv(int in, int out)
{
    return ddp_conv_new(in, out, 3,
                        &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1});
}

static ddp_chain_t *rich(void)
{
    return ddp_chain_new(
        conv(3, 6), ddp_batch_norm_new(6, NULL), ddp_relu_new(),
        ddp_skip_new(
            ddp_chain_new(conv(6, 6), ddp_batch_norm_new(6, NULL), DDP_END),
            DDP_END),
        ddp_relu_new(), ddp_max_pool_new(2, NULL),
        ddp_parallel_new(
            DDP_CONCAT, conv(6, 4),
            ddp_channel_scale_new(ddp_chain_new(ddp_global_mean_pool_new(),
                                                ddp_dense_new(6, 6, NULL),
                                                ddp_sigmoid_new(), DDP_END)),
            DDP_END),
        ddp_silu_new(), ddp_dropout_new(0.3f), ddp_global_mean_pool_new(),
        ddp_dense_new(10, CLASSES, NULL), DDP_END);
}

static ddp_dataset_t *images(void)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {SIZE, SIZE, 3},
                                                     .type = DDP_U8,
                                                     .classes = CLASSES,
                                                     .get = image});
}

static uint32_t train(const char *sched, const char *ncpu, double *loss)
{
    ddp_t *ddp = start_under(sched, ncpu, NULL, "ref");
    ddp_chain_t *c = rich();
    ddp_dataset_t *d = images();
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_adam(0.01f),
                                   .batch = 12, .sub_batch = 3, .lanes = 3,
                                   .epochs = 3, .dtype = DDP_F16, .seed = 2});

    return train_and_end(ddp, t, c, d, loss);
}

static void test_same_bits(void)
{
    double loss, first_loss;
    uint32_t first = train(NULL, "1", &first_loss);

    ok(first && train(NULL, "2", &loss) == first && loss == first_loss,
       "f16: the same weights on 1 and 2 workers, loss %g", first_loss);
    ok(train("lws", "2", &loss) == first && loss == first_loss,
       "and under another policy");
}

/* Gradients are those of f32 but for rounding: of activations at 2^-12, some
 * of which decide which way a maximum or a relu goes: 5 % of the norm. */
static void test_gradients(void)
{
    ddp_t *ddp = start_under(NULL, "2", NULL, "ref");
    ddp_dataset_t *d = images();
    ddp_chain_t *c[2];
    double off = 0, size = 0;
    ddp_trainer_t *t[2];
    struct ddp_param_info p;
    float g[2][400];

    for (int i = 0; i < 2; i++) {
        c[i] = rich();
        t[i] = ddp_trainer_new(ddp, c[i], d,
                               &(struct ddp_train_config){
                                   TRAIN_DEFAULTS, .batch = 12, .sub_batch = 12,
                                   .dtype = i ? DDP_F16 : DDP_F32, .seed = 2});
        ok(t[i] && ddp_trainer_gradients(t[i], NULL) == 0, "gradients in %s",
           i ? "f16" : "f32");
    }
    for (int k = 0; ddp_chain_param(c[0], k, &p) == 0; k++) {
        if (p.role == DDP_RUNNING)
            continue;
        for (int i = 0; i < 2; i++)
            if (p.len > 400 ||
                ddp_trainer_get_gradient(t[i], p.name, g[i], p.len))
                bail_out("%s: %s", p.name, ddp_errmsg());
        for (size_t j = 0; j < p.len; j++) {
            off += pow((double)g[0][j] - g[1][j], 2);
            size += pow(g[0][j], 2);
        }
    }
    ok(size > 0 && off > 0, "they differ");
    is_near(sqrt(off / size), 0, 0.05, "by the roundings of f16");
    for (int i = 0; i < 2; i++) {
        ddp_trainer_free(t[i]);
        ddp_chain_free(c[i]);
    }
    ddp_dataset_free(d);
    ddp_finish(ddp);
}

/* What all trained parameters have moved by in one step, |w - w0|. */
static double move(ddp_t *ddp, ddp_dataset_t *d, enum ddp_dtype dtype)
{
    ddp_chain_t *c[2] = {rich(), rich()};
    ddp_trainer_t *t;
    struct ddp_param_info p;
    struct ddp_train_config cfg = {TRAIN_DEFAULTS, .optimizer = ddp_sgd(2),
                                   .batch = 12,    .sub_batch = 12,
                                   .dtype = dtype, .seed = 2};
    double sum = 0;

    cfg.optimizer.clip_norm = 0.01f;
    ddp_chain_init(c[0], 2);
    t = ddp_trainer_new(ddp, c[1], d, &cfg);
    if (!t || ddp_trainer_step(t, NULL) < 0 || ddp_trainer_wait(t) < 0)
        bail_out("%s", ddp_errmsg());
    for (int k = 0; ddp_chain_param(c[0], k, &p) == 0; k++) {
        float w[2][400];

        for (int i = 0; i < 2; i++)
            if (p.len > 400 || ddp_chain_get(c[i], p.name, w[i], p.len) < 0)
                bail_out("%s: %s", p.name, ddp_errmsg());
        for (size_t j = 0; j < p.len && p.role != DDP_RUNNING; j++)
            sum += pow((double)w[1][j] - w[0][j], 2);
    }
    ddp_trainer_free(t);
    ddp_chain_free(c[0]);
    ddp_chain_free(c[1]);
    return sqrt(sum);
}

/* Weights of up to 1 in f32 are off by 2^-25 each, 1e-6 for some hundred. */
static void test_clipping(void)
{
    ddp_t *ddp = start_under(NULL, "2", NULL, "ref");
    ddp_dataset_t *d = images();

    is_near(move(ddp, d, DDP_F32), 2 * 0.01, 2e-6,
            "f32: a step clipped to a norm of 0.01, at lr 2");
    is_near(move(ddp, d, DDP_F16), 2 * 0.01, 2e-6,
            "f16: the same with any scale");
    ddp_dataset_free(d);
    ddp_finish(ddp);
}

static int nan_image(void *arg, int64_t index, uint64_t key,
                     struct ddp_sample *s)
{
    s->weight = NAN;
    return image(arg, index, key, s);
}

/* No scale helps against a loss of NaN. */
static void test_budget(void)
{
    ddp_t *ddp = start_under(NULL, "2", NULL, "ref");
    ddp_chain_t *c = rich();
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = {SIZE, SIZE, 3},
                                                  .type = DDP_U8,
                                                  .classes = CLASSES,
                                                  .get = nan_image});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.1f),
                                   .dtype = DDP_F16, .batch = 4,
                                   .max_nan_steps = 2, .epochs = 1});
    struct ddp_skips s = {0};

    ok(t && ddp_trainer_train(t) == DDP_EDIVERGED, "a loss of NaN in f16: %s",
       ddp_errmsg());
    ddp_trainer_skips(t, &s);
    ok(s.steps == 3 && s.in_a_row == 3 && s.loss_scale == 65536 / 8,
       "counts although the scale is above 1");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    ddp_finish(ddp);
}

/* CPU workers compute in f16 in plain C only, where that is asked for. */
static void test_refusal(void)
{
    ddp_t *ddp = start_under(NULL, "2", NULL, "cpu");
    ddp_chain_t *c = rich();
    ddp_dataset_t *d = images();

    ok(!ddp_trainer_new(
           ddp, c, d,
           &(struct ddp_train_config){TRAIN_DEFAULTS, .dtype = DDP_F16}) &&
           ddp_errcode() == DDP_ENODEV && strstr(ddp_errmsg(), "f16"),
       "refused: %s", ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(c);
    ddp_finish(ddp);
}

/* ---- what a checkpoint keeps -------------------------------------------- */

static void test_state(void)
{
    static const double good[DDP__SCALER_STATE] = {7, 32, 3, 2, 1};
    static const double bad[DDP__SCALER_STATE] = {7, NAN, 3, 2, 1};
    ddp_t *ddp = start_under(NULL, "1", NULL, "ref");
    ddp_chain_t *c = rich();
    ddp_dataset_t *d = images();
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, c, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .dtype = DDP_F16,
                                   .batch = 12, .optimizer = ddp_sgd(0)});
    double state[DDP__SCALER_STATE] = {0};

    if (!t)
        bail_out("%s", ddp_errmsg());
    ok(ddp__loss_scaler_get(t->engine, state) == 0 && state[0] == 0 &&
           state[1] == 65536,
       "the scale begins at 2^16");
    ok(ddp__loss_scaler_set(t->engine, good) == 0 &&
           ddp_trainer_step(t, NULL) == 0 && ddp_trainer_wait(t) == 0 &&
           ddp__loss_scaler_get(t->engine, state) == 0,
       "a state is set, and a step made");
    ok(state[0] == 8 && state[1] == 32 && state[2] == 4 && state[3] == 2 &&
           state[4] == 0,
       "which counts from there");
    ok(ddp__loss_scaler_set(t->engine, bad) == DDP_EDATA, "refused: %s",
       ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    ddp_finish(ddp);
}

int main(void)
{
    test_torch();
    test_same_bits();
    test_gradients();
    test_clipping();
    test_budget();
    test_refusal();
    test_state();
    return done_testing();
}
