/* test_sync_bn.c - batch norm with the statistics of a whole step
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A step that is one sub-batch has such statistics without sync_bn, by other
 * operations; test_models.c and others compare these with PyTorch's.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "defaults.h"
#include "runtime/context.h"
#include "same_bits.h"
#include "tap.h"

enum { SIZE = 8, CLASSES = 5, COUNT = 44, BATCH = 20, ROOM = 1 << 15 };

/* Images of another brightness each, so that sub-batches differ. */
static int image(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    uint8_t *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIZE * SIZE * 3; i++) {
        uint32_t r = ddp__philox(7, (uint64_t)index, (uint64_t)i).v[0];

        x[i] = (uint8_t)(r % 128 + 3 * (uint32_t)(index % 40));
    }
    return 0;
}

static ddp_dataset_t *images(void)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                     .shape = {SIZE, SIZE, 3},
                                                     .type = DDP_U8,
                                                     .classes = CLASSES,
                                                     .get = image});
}

static ddp_layer_t *conv(int in, int out, int stride)
{
    return ddp_conv_new(in, out, 3,
                        &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1,
                                                   .stride = stride,
                                                   .no_bias = true});
}

/* Norms in a row, with activations and without, around a residual that is added
 * in one (with a mask: 16 channels; and without: 12), and next to each other.
 */
static ddp_chain_t *rich(void)
{
    return ddp_chain_new(
        conv(3, 16, 1), ddp_batch_norm_new(16, NULL), ddp_relu_new(),
        ddp_skip_new(ddp_chain_new(conv(16, 16, 1),
                                   ddp_batch_norm_new(16, NULL), ddp_relu_new(),
                                   conv(16, 16, 1),
                                   ddp_batch_norm_new(16, NULL), DDP_END),
                     DDP_END),
        ddp_relu_new(),
        ddp_parallel_new(DDP_ADD,
                         ddp_chain_new(conv(16, 12, 2),
                                       ddp_batch_norm_new(12, NULL),
                                       ddp_relu6_new(), conv(12, 12, 1),
                                       ddp_batch_norm_new(12, NULL), DDP_END),
                         ddp_chain_new(conv(16, 12, 2),
                                       ddp_batch_norm_new(12, NULL), DDP_END),
                         DDP_END),
        ddp_relu_new(), ddp_dropout_new(0.2f), ddp_global_mean_pool_new(),
        ddp_dense_new(12, CLASSES, NULL), DDP_END);
}

static struct ddp_train_config config(int sub_batch, bool sync)
{
    return (struct ddp_train_config){TRAIN_DEFAULTS,
                                     .optimizer = ddp_momentum(0.05f, 0.9f),
                                     .sub_batch = sub_batch,
                                     .batch = BATCH,
                                     .lanes = 0,
                                     .epochs = 2,
                                     .seed = 3,
                                     .sync_bn = sync};
}

/* ---- the same numbers --------------------------------------------------- */

/* What a step has left, tensor after tensor. */
struct left {
    size_t len[64];
    int tensors;
    float value[ROOM];
};

/* Gradients of what is trained; statistics. */
static int read_step(ddp_trainer_t *t, ddp_chain_t *c, struct left *out)
{
    struct ddp_param_info info;
    float *to = out->value;
    int rc = 0;

    out->tensors = 0;
    for (int i = 0; rc == 0 && ddp_chain_param(c, i, &info) == 0; i++) {
        rc = strstr(info.name, "running")
                 ? ddp_chain_get(c, info.name, to, info.len)
                 : ddp_trainer_get_gradient(t, info.name, to, info.len);
        out->len[out->tensors++] = info.len;
        to += info.len;
    }
    return rc;
}

/* After one step, which has updated the statistics. */
static void one_step(ddp_t *ddp, struct ddp_train_config cfg, struct left *out)
{
    ddp_chain_t *c = rich();
    ddp_dataset_t *d = images();
    ddp_trainer_t *t;
    struct ddp_metrics m;

    cfg.keep_gradients = true;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    if (!t || ddp_trainer_step(t, &m) < 0 || read_step(t, c, out) < 0)
        bail_out("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* Of all tensors the largest |a - b| / |b|. */
static double distance(const struct left *a, const struct left *b)
{
    const float *x = a->value, *y = b->value;
    double worst = 0;

    for (int i = 0; i < b->tensors; i++) {
        double d = 0, s = 0;

        for (size_t k = 0; k < b->len[i]; k++, x++, y++) {
            d += ((double)*x - *y) * ((double)*x - *y);
            s += (double)*y * *y;
        }
        worst = fmax(worst, sqrt(d / s));
    }
    return worst;
}

/* Sums in another order differ by roundings of f32: 1e-7 each, times some tens
 * in six norms, whose gradients are differences of larger numbers. Statistics
 * of a sub-batch are off by much more, as the last point shows. */
static void test_numbers(ddp_t *ddp, const char *backend)
{
    static const int sub[] = {10, 6, 1};
    static struct left whole, part;
    double d;

    one_step(ddp, config(BATCH, false), &whole);
    is_int(whole.tensors, 32, "tensors of the chain");
    for (size_t i = 0; i < sizeof(sub) / sizeof(sub[0]); i++) {
        one_step(ddp, config(sub[i], true), &part);
        d = distance(&part, &whole);
        ok(d < 1e-5, "%s: a step in sub-batches of %d does as one: %.1e",
           backend, sub[i], d);
    }
    one_step(ddp, config(10, false), &part);
    d = distance(&part, &whole);
    ok(d > 1e-2, "%s: without sync_bn it does not: %.1e", backend, d);
}

/* ---- the same bits ------------------------------------------------------ */

struct setting {
    const char *sched, *ncpu, *segment_us;
    enum ddp_dtype dtype;
};

/* The checksum of the weights after two epochs, each with a shorter step. */
static uint32_t train(const struct setting *s)
{
    ddp_t *ddp = start_under(s->sched, s->ncpu, s->segment_us, "cpu");
    struct ddp_train_config cfg = config(3, true);
    ddp_chain_t *c = rich();
    ddp_dataset_t *d = images();
    double loss;

    cfg.dtype = s->dtype;
    return train_and_end(ddp, ddp_trainer_new(ddp, c, d, &cfg), c, d, &loss);
}

static void test_bits(void)
{
    static const struct setting setting[] = {
        {.ncpu = "1"},
        {.ncpu = "2"},
        {.ncpu = "3"},
        {.sched = "eager", .ncpu = "2"},
        {.sched = "random", .ncpu = "3"},
        {.sched = "dmdas", .ncpu = "2"},
        {.ncpu = "2", .segment_us = "50"},
        {.ncpu = "3", .segment_us = "1000000"},
    };
    uint32_t first = 0;

    for (size_t i = 0; i < sizeof(setting) / sizeof(setting[0]); i++) {
        const struct setting *s = &setting[i];
        uint32_t crc = train(s);

        first = i ? first : crc;
        ok(crc && crc == first,
           "%s with %s workers, tasks of %s us: crc32c %08x, as the first",
           s->sched ? s->sched : "ddp", s->ncpu,
           s->segment_us ? s->segment_us : "0", crc);
    }
}

/* ---- a step that fails --------------------------------------------------- */

static int bad_image(void *arg, int64_t index, uint64_t key,
                     struct ddp_sample *s)
{
    if (index == BATCH + 7)
        return DDP_EIO;
    return image(arg, index, key, s);
}

/* Nobody waits for sums of sub-batches that are not computed. */
static void test_failure(ddp_t *ddp)
{
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = {SIZE, SIZE, 3},
                                                  .type = DDP_U8,
                                                  .classes = CLASSES,
                                                  .get = bad_image});
    struct ddp_train_config cfg = config(3, true);
    ddp_chain_t *c = rich();
    ddp_trainer_t *t;

    cfg.order = DDP_IN_ORDER;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    is_int(t ? ddp_trainer_train(t) : 0, DDP_EIO, "no sample: %s",
           ddp_errmsg());
    is_int(t ? ddp_trainer_steps(t) : 0, 1, "the step before it was made");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
}

/* ---- what it needs ------------------------------------------------------ */

static int make(ddp_t *ddp, ddp_chain_t *c, const struct ddp_train_config *cfg,
                struct ddp_memory_plan *plan)
{
    ddp_dataset_t *d = images();
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, cfg);
    int rc = t ? 0 : ddp_errcode();

    if (t && plan)
        rc = ddp_trainer_memory(t, plan);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    return rc;
}

static bool is_refused(ddp_t *ddp, ddp_chain_t *c,
                       const struct ddp_train_config *cfg, const char *why)
{
    return make(ddp, c, cfg, NULL) == DDP_EINVAL && strstr(ddp_errmsg(), why);
}

static ddp_chain_t *pixel(void)
{
    return ddp_chain_new(ddp_global_mean_pool_new(),
                         ddp_batch_norm_new(3, NULL),
                         ddp_dense_new(3, CLASSES, NULL), DDP_END);
}

static void test_needs(ddp_t *ddp)
{
    struct ddp_param_group frozen = {.match = "1.*", .lr = 0};
    struct ddp_train_config cfg = config(5, true);
    struct ddp_memory_plan one, all;

    cfg.lanes = 3;
    ok(is_refused(ddp, rich(), &cfg, "set lanes to 0 or 4"),
       "fewer lanes than sub-batches: %s", ddp_errmsg());
    cfg.lanes = 5;
    is_int(make(ddp, rich(), &cfg, NULL), 0, "more lanes");
    cfg.lanes = 0;
    ok(is_refused(ddp,
                  ddp_chain_new(ddp_flatten_new(),
                                ddp_dense_new(SIZE * SIZE * 3, CLASSES, NULL),
                                DDP_END),
                  &cfg, "no batch norm that is trained"),
       "no batch norm: %s", ddp_errmsg());
    cfg.groups = &frozen;
    cfg.group_count = 1;
    ok(is_refused(ddp, pixel(), &cfg, "no batch norm that is trained"),
       "a frozen one: %s", ddp_errmsg());
    cfg = config(1, false);
    ok(is_refused(ddp, pixel(), &cfg, "smallest sub-batch one sample"),
       "one value per channel and sub-batch");
    cfg.sync_bn = true;
    is_int(make(ddp, pixel(), &cfg, &all), 0, "of a step there are more");
    cfg = config(5, false);
    if (make(ddp, rich(), &cfg, &one) < 0)
        diag("%s", ddp_errmsg());
    cfg.sync_bn = true;
    if (make(ddp, rich(), &cfg, &all) < 0)
        diag("%s", ddp_errmsg());
    ok(one.in_flight == 1 && all.in_flight == 4 && all.wanted == 4 &&
           all.activations >= 4 * one.activations,
       "the plan has the activations of all sub-batches: %.0f, of one %.0f",
       all.activations, one.activations);
}

int main(void)
{
    ddp_t *ddp = start_under(NULL, "1", NULL, "ref");

    test_numbers(ddp, "ref");
    ddp_finish(ddp);
    ddp = start_under(NULL, "1", NULL, "cpu");
    test_numbers(ddp, "cpu");
    test_failure(ddp);
    ddp_finish(ddp);
    /* An operation is a task, so that both plans have the same tasks. */
    ddp = start_under(NULL, "1", "0", "cpu");
    test_needs(ddp);
    ddp_finish(ddp);
    test_bits();
    return done_testing();
}
