/* test_teacher.c - distillation from a chain inside of the graph
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The same training from stored outputs, by a loss of the program's own, is
 * what test_optim.c compares with PyTorch.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "defaults.h"
#include "tap.h"

enum { LEN = 6, CLASSES = 4, BATCH = 10, STEPS = 50, COUNT = BATCH * STEPS };
static const double ALPHA = 0.6, T = 3;

static float taught[COUNT][CLASSES];

static void fill(int64_t i, float *x)
{
    for (uint64_t k = 0; k < LEN; k++)
        x[k] = ddp__uniform(ddp__philox(5, (uint64_t)i, k).v[0]) * 4 - 2;
}

static int point(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    (void)arg;
    (void)key;
    fill(i, s->x);
    s->label = (int32_t)(i % CLASSES);
    if (s->target) {
        memcpy(s->target, taught[i], sizeof(taught[i]));
        s->target[CLASSES] = (float)s->label;
    }
    return 0;
}

static ddp_dataset_t *points(bool stored)
{
    return ddp_dataset_callback(
        &(struct ddp_source){.count = COUNT,
                             .shape = {1, 1, LEN},
                             .type = DDP_F32,
                             .classes = stored ? 0 : CLASSES,
                             .target_len = stored ? CLASSES + 1 : 0,
                             .get = point});
}

/* With layers that do something else in training than in evaluation. */
static ddp_chain_t *teacher(int classes)
{
    static const float mean[] = {0.1f, -0.2f, 0.3f, 0, 0.5f, -0.1f, 0.2f, 1};
    static const float var[] = {2, 0.5f, 1, 3, 0.25f, 1, 1.5f, 1};
    ddp_chain_t *c =
        ddp_chain_new(ddp_dense_new(LEN, 8, NULL), ddp_batch_norm_new(8, NULL),
                      ddp_relu_new(), ddp_dropout_new(0.5f),
                      ddp_dense_new(8, classes, NULL), DDP_END);

    if (ddp_chain_init(c, 11) < 0 ||
        ddp_chain_set(c, "1.running_mean", mean, 8) < 0 ||
        ddp_chain_set(c, "1.running_var", var, 8) < 0)
        bail_out("%s", ddp_errmsg());
    return c;
}

static ddp_chain_t *student(void)
{
    ddp_chain_t *c = ddp_chain_new(ddp_dense_new(LEN, 7, NULL), ddp_tanh_new(),
                                   ddp_dense_new(7, CLASSES, NULL), DDP_END);

    if (ddp_chain_init(c, 12) < 0)
        bail_out("%s", ddp_errmsg());
    return c;
}

static struct ddp_train_config config(void)
{
    return (struct ddp_train_config){TRAIN_DEFAULTS,
                                     .optimizer = ddp_momentum(0.1f, 0.9f),
                                     .sub_batch = 3,
                                     .batch = BATCH,
                                     .lanes = 4,
                                     .order = DDP_IN_ORDER,
                                     .keep_weights = true,
                                     .distill_weight = ALPHA,
                                     .distill_temperature = T};
}

/* ---- stored outputs ------------------------------------------------------ */

static void soften(const float *x, double t, double p[CLASSES])
{
    double sum = 0;

    for (int k = 0; k < CLASSES; k++)
        sum += p[k] = exp((double)x[k] / t);
    for (int k = 0; k < CLASSES; k++)
        p[k] /= sum;
}

/* As examples/distill.c has it. */
static double stored(const float *x, const void *target, const float *weight,
                     int n, int len, float *dx, void *arg)
{
    const float *want = target;
    double hard[CLASSES], soft[CLASSES], q[CLASSES], sum = 0;

    (void)arg;
    for (int i = 0; i < n; i++, x += len, want += CLASSES + 1) {
        int label = (int)want[CLASSES];

        soften(x, 1, hard);
        soften(x, T, soft);
        soften(want, T, q);
        sum -= (double)weight[i] * (1 - ALPHA) * log(hard[label]);
        for (int k = 0; k < CLASSES; k++) {
            sum +=
                (double)weight[i] * ALPHA * T * T * q[k] * log(q[k] / soft[k]);
            if (dx)
                dx[i * len + k] =
                    (float)((double)weight[i] *
                            ((1 - ALPHA) * (hard[k] - (k == label)) +
                             ALPHA * T * (soft[k] - q[k])));
        }
    }
    return sum;
}

static void store(ddp_t *ddp)
{
    static float x[COUNT][LEN];
    ddp_chain_t *c = teacher(CLASSES);

    for (int i = 0; i < COUNT; i++)
        fill(i, x[i]);
    if (ddp_chain_forward(ddp, c, x, DDP_F32, (struct ddp_shape){1, 1, LEN},
                          COUNT, 0, taught[0]) < 0)
        bail_out("%s", ddp_errmsg());
    ddp_chain_free(c);
}

/* ---- runs ---------------------------------------------------------------- */

struct run {
    double loss[STEPS];
    float w[CLASSES * 7];
    uint32_t crc;
    bool stays; /* the teacher */
};

static void train(ddp_t *ddp, bool from_store, struct run *r)
{
    struct ddp_train_config cfg = config();
    ddp_chain_t *c = student(), *other = teacher(CLASSES);
    ddp_dataset_t *d = points(from_store);
    uint32_t before = 0, after = 0;
    struct ddp_metrics m;
    ddp_trainer_t *t;

    if (from_store) {
        cfg.loss = DDP_CUSTOM_LOSS;
        cfg.loss_fn = stored;
    } else {
        cfg.teacher = other;
    }
    ddp_chain_checksum(other, &before);
    t = ddp_trainer_new(ddp, c, d, &cfg);
    for (int i = 0; i < STEPS; i++) {
        if (!t || ddp_trainer_step(t, &m) < 0)
            bail_out("%s", ddp_errmsg());
        r->loss[i] = m.loss;
    }
    ddp_chain_checksum(other, &after);
    r->stays = before == after;
    ddp_chain_get(c, "2.weight", r->w, CLASSES * 7);
    ddp_chain_checksum(c, &r->crc);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(c);
    ddp_chain_free(other);
}

/* Stored outputs are rounded as the graph's are; the sums of gradients are
 * made in another order. */
static void test_stored(ddp_t *ddp, const char *backend)
{
    struct run want, got;
    double loss = 0, w = 0;

    store(ddp);
    train(ddp, true, &want);
    train(ddp, false, &got);
    for (int i = 0; i < STEPS; i++)
        loss = fmax(loss, fabs(got.loss[i] - want.loss[i]));
    for (int i = 0; i < CLASSES * 7; i++)
        w = fmax(w, fabs((double)(got.w[i] - want.w[i])));
    ok(loss < 1e-5, "%s: losses of %d steps as from stored outputs: %.1e",
       backend, STEPS, loss);
    ok(w < 1e-5, "%s: and the weights: %.1e", backend, w);
    ok(got.stays, "%s: those of the teacher stay", backend);
}

static ddp_t *start(const char *workers, const char *backend)
{
    ddp_t *ddp;

    setenv("STARPU_NCPU", workers, 1);
    ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = backend});
    if (!ddp)
        bail_out("%s", ddp_errmsg());
    return ddp;
}

static void test_bits(void)
{
    static const char *const workers[] = {"1", "2", "3"};
    struct run r;
    uint32_t first = 0;

    for (int i = 0; i < 3; i++) {
        ddp_t *ddp = start(workers[i], "cpu");

        train(ddp, false, &r);
        ddp_finish(ddp);
        first = i ? first : r.crc;
        ok(r.crc == first, "%s workers: crc32c %08x, as the first", workers[i],
           r.crc);
    }
}

/* ---- what is refused ----------------------------------------------------- */

static bool is_refused(ddp_t *ddp, ddp_chain_t *c,
                       const struct ddp_train_config *cfg, const char *why)
{
    ddp_dataset_t *d = points(false);
    ddp_trainer_t *t = ddp_trainer_new(ddp, c, d, cfg);
    bool refused = !t && strstr(ddp_errmsg(), why);

    ddp_trainer_free(t);
    ddp_dataset_free(d);
    return refused;
}

static void test_refused(ddp_t *ddp)
{
    ddp_chain_t *c = student(), *other = teacher(CLASSES), *five = teacher(5);
    struct ddp_train_config cfg = config();

    cfg.teacher = c;
    ok(is_refused(ddp, c, &cfg, "chain itself"), "itself: %s", ddp_errmsg());
    cfg.teacher = five;
    ok(is_refused(ddp, c, &cfg, "gives 5 values and the chain 4"),
       "other classes: %s", ddp_errmsg());
    cfg.teacher = other;
    cfg.distill_weight = NAN;
    ok(is_refused(ddp, c, &cfg, "distill_weight nan"), "a weight: %s",
       ddp_errmsg());
    cfg.distill_weight = 1;
    cfg.distill_temperature = 0;
    ok(is_refused(ddp, c, &cfg, "distill_temperature 0"), "a temperature: %s",
       ddp_errmsg());
    cfg.distill_temperature = 1;
    cfg.loss = DDP_MSE;
    ok(is_refused(ddp, c, &cfg, "losses of classes"), "another loss: %s",
       ddp_errmsg());
    ddp_chain_free(c);
    ddp_chain_free(other);
    ddp_chain_free(five);
}

int main(void)
{
    ddp_t *ddp = start("2", "ref");

    test_stored(ddp, "ref");
    ddp_finish(ddp);
    ddp = start("2", "cpu");
    test_stored(ddp, "cpu");
    test_refused(ddp);
    ddp_finish(ddp);
    test_bits();
    return done_testing();
}
