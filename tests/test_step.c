/* test_step.c - the step graph: same bits everywhere, lanes, failures
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "runtime/context.h"
#include "defaults.h"
#include "same_bits.h"
#include "tap.h"

enum { SIZE = 12, CLASSES = 5, COUNT = 61 };

/* Images whose class shows in their colour, shifted by the sample's key as
 * augmentation would. */
static int image(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    uint8_t *x = s->x;
    int shift = (int)(key % 4);

    (void)arg;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIZE * SIZE * 3; i++) {
        uint32_t r =
            ddp__philox(7, (uint64_t)index, (uint64_t)(i + shift)).v[0];

        x[i] = (uint8_t)(r % 128 + (i % 3 == s->label % 3 ? 100 : 0));
    }
    return 0;
}

static ddp_dataset_t *images(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){
        .count = count,
        .shape = {SIZE, SIZE, 3},
        .type = DDP_U8,
        .classes = CLASSES,
        .get = image,
    });
}

static ddp_layer_t *conv(int in, int out, bool bias)
{
    return ddp_conv_new(
        in, out, 3,
        &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1, .no_bias = !bias});
}

/* Everything that could make bits differ: batch norm, residual, dropout,
 * stochastic depth, pooling, concatenation. */
static ddp_chain_t *rich(void)
{
    return ddp_chain_new(
        conv(3, 16, false), ddp_batch_norm_new(16, NULL), ddp_relu_new(),
        ddp_skip_new(ddp_chain_new(conv(16, 16, false),
                                   ddp_batch_norm_new(16, NULL),
                                   ddp_stochastic_depth_new(0.2f), DDP_END),
                     DDP_END),
        ddp_relu_new(), ddp_max_pool_new(2, NULL),
        ddp_parallel_new(DDP_CONCAT, conv(16, 8, true), conv(16, 8, true),
                         DDP_END),
        ddp_silu_new(), ddp_dropout_new(0.3f), ddp_global_mean_pool_new(),
        ddp_dense_new(16, CLASSES, NULL), DDP_END);
}

/* No batch norm: the gradient of a batch is the sum of its samples'. */
static ddp_chain_t *plain(void)
{
    return ddp_chain_new(
        conv(3, 8, true), ddp_relu_new(), ddp_mean_pool_new(2, NULL),
        ddp_flatten_new(), ddp_dropout_new(0.25f), ddp_dense_new(288, 24, NULL),
        ddp_tanh_new(), ddp_dense_new(24, CLASSES, NULL), DDP_END);
}

/* ---- same bits ---------------------------------------------------------- */

struct setting {
    const char *sched, *ncpu, *segment_us;
    const char *backend;
    int channels; /* of images, as on GPUs */
};

/* The weights' checksum after some epochs, or 0. */
static uint32_t train(const struct setting *s, enum ddp_dtype dtype,
                      double *loss)
{
    ddp_t *ddp = start_under(s->sched, s->ncpu, s->segment_us, s->backend);
    ddp_chain_t *chain = rich();
    ddp_dataset_t *d = images(COUNT);
    ddp_trainer_t *t;

    ddp->channels = s->channels;
    t = ddp_trainer_new(ddp, chain, d,
                        &(struct ddp_train_config){
                            TRAIN_DEFAULTS,
                            .optimizer = ddp_momentum(0.05f, 0.9f),
                            .sub_batch = 4,
                            .batch = 24,
                            .lanes = 4,
                            .epochs = 3,
                            .seed = 3,
                            .dtype = dtype,
                        });
    return train_and_end(ddp, t, chain, d, loss);
}

static void test_same_bits(enum ddp_dtype dtype, const char *name)
{
    static const struct setting setting[] = {
        {.ncpu = "1"},
        {.ncpu = "2"},
        {.ncpu = "2"},
        {.sched = "eager", .ncpu = "2"},
        {.sched = "lws", .ncpu = "2"},
        {.sched = "prio", .ncpu = "2"},
        {.sched = "random", .ncpu = "2"},
        {.sched = "dmdas", .ncpu = "2"},
        {.sched = "dmdar", .ncpu = "2"},
        {.sched = "random", .ncpu = "1"},
        {.sched = "ws", .ncpu = "2"},
        {.sched = "dmda", .ncpu = "2"},
        {.ncpu = "2", .segment_us = "20"},
        {.sched = "random", .ncpu = "2", .segment_us = "50"},
        {.sched = "dmdas", .ncpu = "2", .segment_us = "200"},
        {.ncpu = "2", .segment_us = "1000000"},
    };
    double loss = 0, first_loss = 0;
    uint32_t first = 0;

    for (size_t i = 0; i < sizeof(setting) / sizeof(setting[0]); i++) {
        uint32_t crc = train(&setting[i], dtype, &loss);

        if (i == 0) {
            first = crc;
            first_loss = loss;
        }
        ok(crc != 0 && crc == first && loss == first_loss,
           "%s weights under %s with %s workers, tasks of %s us: crc32c %08x, "
           "loss %.9g, as the first",
           name, setting[i].sched ? setting[i].sched : "ddp", setting[i].ncpu,
           setting[i].segment_us ? setting[i].segment_us : "0", crc, loss);
    }
    unsetenv("DDP_SEGMENT_US");
    unsetenv("STARPU_SCHED");
    setenv("STARPU_NCPU", "2", 1);
}

/* Images of 8 channels, 5 of them zeros: ref adds up the same numbers in the
 * same order. */
static void test_wide_images(void)
{
    double loss[2] = {0, 0};
    uint32_t crc[2];

    for (int i = 0; i < 2; i++)
        crc[i] = train(
            &(struct setting){.ncpu = "2", .backend = "ref", .channels = 8 * i},
            DDP_BF16, &loss[i]);
    ok(crc[0] != 0 && crc[0] == crc[1] && loss[0] == loss[1],
       "wide images: crc32c %08x, loss %.9g, as with narrow ones", crc[1],
       loss[1]);
    unsetenv("DDP_SEGMENT_US");
}

/* ---- lanes -------------------------------------------------------------- */

/* Gradients of the first step, all parameters one after another. */
static size_t gradients(ddp_t *ddp, int sub_batch, int lanes, int batch,
                        float *out, struct ddp_metrics *m)
{
    ddp_chain_t *chain = plain();
    ddp_dataset_t *d = images(COUNT);
    struct ddp_param_info info;
    ddp_trainer_t *t;
    size_t n = 0;

    t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.1f),
                                   .sub_batch = sub_batch, .lanes = lanes,
                                   .batch = batch, .seed = 5});
    if (!t || ddp_trainer_gradients(t, m) < 0)
        diag("%s", ddp_errmsg());
    for (int i = 0; t && ddp_chain_param(chain, i, &info) == 0; i++) {
        if (ddp_trainer_get_gradient(t, info.name, out + n, info.len) < 0)
            diag("%s", ddp_errmsg());
        n += info.len;
    }
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
    return n;
}

static double distance(const float *a, const float *b, size_t n)
{
    double d = 0, s = 0;

    for (size_t i = 0; i < n; i++) {
        d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        s += (double)b[i] * b[i];
    }
    return s > 0 ? sqrt(d / s) : -1;
}

/* The same 30 samples cut differently; only the order of f32 sums differs,
 * each of a few thousand terms: 1e-5 leaves some hundred roundings. */
static void test_lanes(ddp_t *ddp)
{
    static const struct {
        int sub, lanes;
        const char *what;
    } cut[] = {
        {1, 8, "30 sub-batches of 1 in 8 lanes"},
        {10, 3, "3 equal sub-batches in 3 lanes"},
        {8, 4, "sub-batches of 8, 8, 8, 6"},
        {7, 2, "five sub-batches in 2 lanes, one of 2"},
        {8, 8, "8 lanes, four of them without data"},
        {30, 8, "one sub-batch, seven lanes without data"},
    };
    enum { ROOM = 16384 };
    float *whole = calloc(2 * ROOM, sizeof(*whole)), *part = whole + ROOM;
    struct ddp_metrics a, b;
    size_t n = gradients(ddp, 30, 1, 30, whole, &a);

    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        size_t k = gradients(ddp, cut[i].sub, cut[i].lanes, 30, part, &b);
        double d = distance(part, whole, n);

        ok(k == n && n > 7000 && d >= 0 && d < 1e-5,
           "gradient of the whole batch = merged one of %s: %.1e", cut[i].what,
           d);
        ok(fabs(a.loss - b.loss) < 1e-6 && a.samples == b.samples &&
               a.top1 == b.top1,
           "and the same loss, samples and top-1");
    }
    free(whole);
}

/* ---- weights and norms of samples --------------------------------------- */

static int weighted(void *arg, int64_t index, uint64_t key,
                    struct ddp_sample *s)
{
    float *x = s->x;

    (void)key;
    for (int i = 0; i < 4; i++)
        x[i] = (float)((index * 7 + i * 3) % 11) / 11 - 0.4f;
    s->target[0] = x[0] - 2 * x[1] + 0.3f;
    if (*(const int *)arg == 1)
        s->weight = index % 3 ? 1 : 0; /* leaves out a third */
    if (*(const int *)arg == 2)
        s->norm = 0.5f; /* sum of losses / (count / 2) */
    return 0;
}

/* One SGD step of y = w x on MSE; returns the bias after it. */
static double one_step(ddp_t *ddp, int mode, double *loss)
{
    ddp_chain_t *chain = ddp_chain_new(ddp_dense_new(4, 1, NULL), DDP_END);
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = 12,
        .shape = {1, 1, 4},
        .type = DDP_F32,
        .target_len = 1,
        .get = weighted,
        .arg = &mode,
    });
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .loss = DDP_MSE,
                                   .optimizer = ddp_sgd(1), .sub_batch = 5,
                                   .batch = 12});
    static const float zero[4];
    struct ddp_metrics m = {0};
    float bias = 0;

    ddp_chain_set(chain, "0.weight", zero, 4);
    ddp_chain_set(chain, "0.bias", zero, 1);
    if (!t || ddp_trainer_step(t, &m) < 0 ||
        ddp_chain_get(chain, "0.bias", &bias, 1))
        diag("%s", ddp_errmsg());
    *loss = m.loss;
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
    return bias;
}

/* With w = 0 the bias moves by minus the mean of 2 (0 - target). */
static void test_weights(ddp_t *ddp)
{
    double sum[3] = {0}, square[3] = {0}, div[3] = {0}, loss, bias;

    for (int mode = 0; mode < 3; mode++) {
        for (int i = 0; i < 12; i++) {
            float x[4], y;
            struct ddp_sample s = {
                .x = x, .target = &y, .weight = 1, .norm = -1};

            weighted(&mode, i, 0, &s);
            sum[mode] += 2.0 * y * s.weight;
            square[mode] += (double)y * y * s.weight;
            div[mode] += s.norm < 0 ? s.weight : s.norm;
        }
        bias = one_step(ddp, mode, &loss);
        ok(fabs(bias - sum[mode] / div[mode]) < 1e-5,
           "mode %d: gradient is the weighted sum over the sum of norms", mode);
        ok(fabs(loss - square[mode] / div[mode]) < 1e-5, "and the loss too");
    }
}

/* ---- the rate of each step ---------------------------------------------- */

enum { EPOCH = 4, RATES = 8 }; /* steps */

static int get_unit(void *arg, int64_t index, uint64_t key,
                    struct ddp_sample *s)
{
    (void)arg;
    (void)index;
    (void)key;
    *(float *)s->x = 1;
    *s->target = 0;
    return 0;
}

static double output_itself(const float *x, const void *target,
                            const float *weight, int n, int len, float *dx,
                            void *arg)
{
    (void)target;
    (void)weight;
    (void)n;
    (void)len;
    (void)arg;
    if (dx)
        *dx = 1;
    return *x;
}

/* The loss is w, so that each step moves w by the rate; all are eighths. */
static void test_schedule(ddp_t *ddp, const char *what,
                          const struct ddp_schedule *schedule,
                          const float rate[RATES])
{
    ddp_chain_t *chain = ddp_chain_new(
        ddp_dense_new(
            1, 1, &(struct ddp_dense_options){DENSE_DEFAULTS, .no_bias = true}),
        DDP_END);
    ddp_dataset_t *d = ddp_dataset_callback(&(struct ddp_source){
        .count = EPOCH,
        .shape = {1, 1, 1},
        .type = DDP_F32,
        .target_len = 1,
        .get = get_unit,
    });
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = DDP_CUSTOM_LOSS, .loss_fn = output_itself,
            .optimizer = ddp_sgd(1), .schedule = *schedule, .batch = 1,
            .sub_batch = 1, .epochs = RATES / EPOCH});
    float w = 0, before;
    int wrong = 0;
    struct ddp_metrics m;

    ddp_chain_set(chain, "0.weight", &w, 1);
    for (int k = 0; t && k < RATES; k++) {
        before = w;
        if (ddp_trainer_step(t, &m) < 0 ||
            ddp_chain_get(chain, "0.weight", &w, 1) < 0)
            diag("%s", ddp_errmsg());
        wrong += before - w != rate[k];
    }
    ok(t && wrong == 0, "%s: each step has its rate", what);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

static void test_rates(ddp_t *ddp)
{
    struct ddp_schedule linear = {.kind = DDP_LINEAR};
    struct ddp_schedule stepped = {
        .kind = DDP_STEPPED, .every = 1, .gamma = 0.5};
    struct ddp_schedule warm = {.warmup = 1, .warmup_factor = 0.5};

    test_schedule(
        ddp, "linear", &linear,
        (const float[]){1, 0.875f, 0.75f, 0.625f, 0.5f, 0.375f, 0.25f, 0.125f});
    test_schedule(ddp, "stepped", &stepped,
                  (const float[]){1, 1, 1, 1, 0.5f, 0.5f, 0.5f, 0.5f});
    test_schedule(ddp, "warm-up", &warm,
                  (const float[]){0.5f, 0.625f, 0.75f, 0.875f, 1, 1, 1, 1});
}

/* ---- failures ----------------------------------------------------------- */

/* Calls left before the kernel fails, on whichever worker; < 0: never. */
static atomic_int fail_at;

static int shape_same(const ddp_layer_t *l, struct ddp_shape x,
                      struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static int copy_kernel(const struct ddp_kernel_args *a)
{
    const struct ddp_buffer *x = &a->buf[0];

    if (atomic_load(&fail_at) >= 0 && atomic_fetch_sub(&fail_at, 1) == 0)
        return 42;
    memcpy(a->buf[1].data, x->data,
           sizeof(float) *
               (size_t)(a->n * x->shape.h * x->shape.w * x->shape.c));
    return 0;
}

static const struct ddp_kernel brittle = {"brittle", {copy_kernel}};

static ddp_value_t *emit(ddp_graph_t *g, ddp_value_t *x)
{
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), ddp_value_type(x));

    ddp_graph_call(g, &brittle, NULL, 2, (ddp_value_t *[]){x, y},
                   (enum ddp_access[]){DDP_READ, DDP_WRITE});
    return y;
}

static ddp_value_t *brittle_forward(ddp_layer_t *l, ddp_graph_t *g,
                                    ddp_value_t *x)
{
    return ddp_graph_record(
        g, &(struct ddp_record){.layer = l, .x = x, .y = emit(g, x)});
}

static ddp_value_t *brittle_backward(ddp_layer_t *l, ddp_graph_t *g,
                                     const struct ddp_record *r,
                                     ddp_value_t *dy)
{
    (void)l;
    return ddp_value_needs_gradient(r->x) ? emit(g, dy) : NULL;
}

static const struct ddp_layer_ops brittle_ops = {
    .kind = "brittle",
    .shape = shape_same,
    .forward = brittle_forward,
    .backward = brittle_backward,
};

static void test_failure(ddp_t *ddp)
{
    ddp_chain_t *chain = ddp_chain_new(
        conv(3, 4, true), ddp_layer_new(sizeof(ddp_layer_t), &brittle_ops),
        ddp_global_mean_pool_new(), ddp_dense_new(4, CLASSES, NULL), DDP_END);
    ddp_dataset_t *d = images(COUNT);
    ddp_trainer_t *t;
    struct ddp_metrics m;
    uint32_t before = 0, after = 1;
    int rc;

    fail_at = -1;
    t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.1f),
                                   .sub_batch = 4, .batch = 16});
    ok(t && ddp_trainer_step(t, &m) == 0, "a step with a custom kernel");
    ddp_trainer_wait(t);
    ddp_chain_checksum(chain, &before);
    fail_at = 2;
    rc = ddp_trainer_step(t, &m);
    ok(rc == DDP_EDEVICE, "a failing kernel fails its step: %s", ddp_errmsg());
    ok(strstr(ddp_errmsg(), "brittle") && strstr(ddp_errmsg(), "42") &&
           strstr(ddp_errmsg(), "step 1"),
       "the message names kernel, result and step");
    ddp_chain_checksum(chain, &after);
    ok(before == after, "no weight has changed");
    fail_at = -1;
    rc = ddp_trainer_step(t, &m);
    ok(rc == 0, "the next step runs again%s%s", rc ? ": " : "",
       rc ? ddp_errmsg() : "");
    ddp_chain_checksum(chain, &after);
    ok(before != after, "and changes them");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

static int bad_sample(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    if (index == *(const int *)arg)
        s->label = 99;
    else
        image(NULL, index, key, s);
    return 0;
}

static void test_bad_label(ddp_t *ddp)
{
    int which = 17;
    ddp_chain_t *chain = plain();
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = {SIZE, SIZE, 3},
                                                  .type = DDP_U8,
                                                  .classes = CLASSES,
                                                  .get = bad_sample,
                                                  .arg = &which});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.1f),
                                   .batch = 8, .sub_batch = 4, .epochs = 2});
    int rc = ddp_trainer_train(t);

    ok(rc < 0 && strstr(ddp_errmsg(), "99"),
       "a label out of range ends training: %s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* The first 8 samples can be had. */
static int first_ones(void *arg, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    return index < 8 ? image(arg, index, key, s) : -1;
}

/* Train on them in order, for so many steps of 8; the checksum after it. */
static uint32_t train_first_ones(ddp_t *ddp, int64_t steps, int *rc)
{
    ddp_chain_t *chain = plain();
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = {SIZE, SIZE, 3},
                                                  .type = DDP_U8,
                                                  .classes = CLASSES,
                                                  .get = first_ones});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .optimizer = ddp_sgd(0.1f),
                                   .batch = 8, .sub_batch = 4,
                                   .order = DDP_IN_ORDER, .steps = steps});
    uint32_t crc = 0;

    *rc = ddp_trainer_train(t);
    ddp_trainer_wait(t);
    ddp_chain_checksum(chain, &crc);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
    return crc;
}

/* Input is read ahead: step 1 fails while step 0 is still under way. */
static void test_failure_ahead(ddp_t *ddp)
{
    int rc, same = 0;
    uint32_t whole = train_first_ones(ddp, 1, &rc);

    ok(rc == 0, "a step on the samples there are");
    for (int i = 0; i < 10; i++) {
        uint32_t crc = train_first_ones(ddp, 2, &rc);

        same += crc == whole && rc < 0;
    }
    is_int(same, 10, "a failure in the next step leaves it whole: %s",
           ddp_errmsg());
}

/* ---- stopping ----------------------------------------------------------- */

static int asked; /* how often; the third time is enough, until it is < 0 */

static int enough(void *arg)
{
    (void)arg;
    return asked >= 0 && ++asked >= 3;
}

static void test_stop(ddp_t *ddp)
{
    ddp_chain_t *chain = plain();
    ddp_dataset_t *d = images(COUNT);
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .sub_batch = 1, .lanes = 2,
                                   .batch = 2, .stop = enough});
    struct ddp_metrics m[3] = {{0}, {.samples = -1}, {0}};

    asked = -1;
    ok(t && ddp_trainer_evaluate(t, d, &m[0]) == 0 && m[0].samples == COUNT,
       "an evaluation that nobody stops");
    asked = 0;
    ok(ddp_trainer_evaluate(t, d, &m[1]) == DDP_ESTOPPED && asked == 3,
       "one that is stopped: %s", ddp_errmsg());
    ok(m[1].samples == -1, "leaves the metrics alone");
    asked = -1;
    ok(ddp_trainer_evaluate(t, d, &m[2]) == 0 && m[2].loss == m[0].loss &&
           m[2].samples == COUNT,
       "and the next one is as the first");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

static void test_scheduler_name(void)
{
    setenv("STARPU_SCHED", "eagre", 1);
    ok(!ddp_init(NULL), "STARPU_SCHED=eagre is refused: %s", ddp_errmsg());
    ok(strstr(ddp_errmsg(), "eager") && strstr(ddp_errmsg(), "ddp") &&
           strstr(ddp_errmsg(), "dmdas"),
       "and the choices are named");
    unsetenv("STARPU_SCHED");
    setenv("DDP_SEGMENT_US", "-5", 1);
    ok(!ddp_init(NULL) && strstr(ddp_errmsg(), "DDP_SEGMENT_US=-5"),
       "a bad number is refused: %s", ddp_errmsg());
    unsetenv("DDP_SEGMENT_US");
}

static void test_arguments(ddp_t *ddp)
{
    ddp_chain_t *chain = plain();
    ddp_dataset_t *d = images(COUNT);

    ok(!ddp_trainer_new(
           ddp, chain, d,
           &(struct ddp_train_config){TRAIN_DEFAULTS, .sub_batch = -1}),
       "a negative sub_batch: %s", ddp_errmsg());
    ok(!ddp_trainer_new(
           ddp, chain, d,
           &(struct ddp_train_config){TRAIN_DEFAULTS, .loss = DDP_MSE}),
       "MSE on classes: %s", ddp_errmsg());
    ok(!ddp_trainer_new(
           ddp, chain, d,
           &(struct ddp_train_config){TRAIN_DEFAULTS, .loss = DDP_CUSTOM_LOSS}),
       "a custom loss without a function: %s", ddp_errmsg());
    ok(!ddp_trainer_new(
           ddp, chain, d,
           &(struct ddp_train_config){TRAIN_DEFAULTS, .dtype = DDP_U8}),
       "activations of a wrong type: %s", ddp_errmsg());
    ok(!ddp_trainer_new(ddp, NULL, d, NULL), "no chain");
    ok(!ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "tpu"}),
       "a backend that does not exist: %s", ddp_errmsg());
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

int main(void)
{
    ddp_t *ddp;

    test_same_bits(DDP_F32, "f32");
    test_wide_images();
    test_scheduler_name();
    if (!(ddp = ddp_init(NULL)))
        return 1;
    test_lanes(ddp);
    test_weights(ddp);
    test_rates(ddp);
    test_failure(ddp);
    test_bad_label(ddp);
    test_failure_ahead(ddp);
    test_stop(ddp);
    test_arguments(ddp);
    ddp_finish(ddp);
    return done_testing();
}
