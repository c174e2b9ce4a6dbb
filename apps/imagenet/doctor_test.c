/* doctor_test.c - a small training run on all devices and on the reference
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the steps changed is compared, not the weights: a gradient that is wrong
 * would hardly be seen in those.
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "doctor_test.h"

enum { SIDE = 16, CLASSES = 4, SAMPLES = 64, SUB_BATCH = 8, STEPS = 2 };

/* Of what two steps change: rounding and TF32 stay far below. */
static const double tolerance = 0.02;

/* ---- training ----------------------------------------------------------- */

static int make_sample(void *arg, int64_t index, uint64_t key,
                       struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        x[i] = (float)sin(0.1 * (double)(i * (s->label + 1)) + (double)index);
    return 0;
}

static ddp_chain_t *make_network(void)
{
    return ddp_chain_new(ddp_conv_new(3, 16, 3, NULL),
                         ddp_batch_norm_new(16, NULL), ddp_relu_new(),
                         ddp_conv_new(16, 16, 3, NULL), ddp_relu_new(),
                         ddp_global_mean_pool_new(), ddp_flatten_new(),
                         ddp_dense_new(16, CLASSES, NULL), DDP_END);
}

static int copy_weights(ddp_chain_t *c, float **copy, size_t *len)
{
    struct ddp_param_info p;
    size_t at = 0;
    int rc = 0;

    *len = 0;
    for (int i = 0; ddp_chain_param(c, i, &p) == 0; i++)
        *len += p.role == DDP_RUNNING ? 0 : p.len;
    if (!(*copy = malloc(*len * sizeof(**copy))))
        return DDP_ENOMEM;
    for (int i = 0; rc == 0 && ddp_chain_param(c, i, &p) == 0; i++)
        if (p.role != DDP_RUNNING) {
            rc = ddp_chain_get(c, p.name, *copy + at, p.len);
            at += p.len;
        }
    return rc;
}

static int train(ddp_t *ddp, ddp_chain_t *c, ddp_dataset_t *d,
                 struct doctor_weights *w)
{
    struct ddp_train_config cfg;
    ddp_trainer_t *t;
    int rc;

    ddp_train_config_init(&cfg);
    cfg.optimizer = ddp_momentum(0.1f, 0.9f);
    cfg.sub_batch = SUB_BATCH;
    cfg.batch = SAMPLES;
    cfg.steps = STEPS;
    cfg.keep_weights = true;
    if ((rc = ddp_chain_init(c, 42)) < 0 ||
        (rc = copy_weights(c, &w->before, &w->len)) < 0)
        return rc;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    rc = t ? ddp_trainer_train(t) : ddp_errcode();
    if (rc == 0 && (rc = copy_weights(c, &w->after, &w->len)) == 0)
        rc = ddp_chain_checksum(c, &w->crc);
    ddp_trainer_free(t);
    return rc;
}

int doctor_train(ddp_t *ddp, struct doctor_weights *w)
{
    const struct ddp_source source = {.count = SAMPLES,
                                      .shape = {SIDE, SIDE, 3},
                                      .type = DDP_F32,
                                      .classes = CLASSES,
                                      .get = make_sample};
    ddp_dataset_t *d = ddp_dataset_callback(&source);
    ddp_chain_t *c = d ? make_network() : NULL;
    double t = app_now();
    int rc = c ? train(ddp, c, d, w) : ddp_errcode();

    w->seconds = app_now() - t;
    ddp_chain_free(c);
    ddp_dataset_free(d);
    return rc;
}

void doctor_weights_free(struct doctor_weights *w)
{
    free(w->before);
    free(w->after);
    *w = (struct doctor_weights){0};
}

/* ---- comparison --------------------------------------------------------- */

/* How far apart two runs went, as a share of how far they went; NaN counts as
 * far. */
static double distance(const struct doctor_weights *a,
                       const struct doctor_weights *b)
{
    double apart = 0, far = 0;

    for (size_t i = 0; i < a->len; i++) {
        double x = (double)a->after[i] - (double)a->before[i];
        double y = (double)b->after[i] - (double)b->before[i];

        apart += (x - y) * (x - y);
        far += y * y;
    }
    return far > 0 && isfinite(apart) ? sqrt(apart / far) : INFINITY;
}

/* The same training on one CPU worker.  0, or an exit code after a message. */
static int train_alone(struct report *r, const char *backend,
                       struct doctor_weights *w)
{
    struct ddp_config cfg;
    ddp_t *ddp;
    int rc;

    ddp_config_init(&cfg);
    cfg.backend = backend;
    cfg.cpus = 1;
    cfg.gpus = 0;
    ddp = ddp_init(&cfg);
    rc = ddp ? doctor_train(ddp, w) : ddp_errcode();
    if (rc < 0)
        report_problem(r, app_exit_code(rc), "self-test on one CPU worker: %s",
                       ddp_errmsg());
    ddp_finish(ddp);
    return rc;
}

static void compare_ref(struct report *r, const struct doctor_weights *w)
{
    struct doctor_weights ref = {0};

    if (train_alone(r, "ref", &ref) == 0) {
        double d = distance(w, &ref);

        report_line("self-test against plain C",
                    "steps differ by %.2g, %.2g is tolerated", d, tolerance);
        if (!(d <= tolerance))
            report_problem(r, EXIT_FAILURE,
                           "the devices compute other weights than the plain "
                           "kernels");
    }
    doctor_weights_free(&ref);
}

/* Of the same kind as w's workers: the same to the last bit. */
static void compare_one(struct report *r, const struct doctor_weights *w,
                        const char *backend)
{
    struct doctor_weights one = {0};

    if (train_alone(r, backend, &one) == 0) {
        report_line("self-test on one worker", "weights crc32c:%08x", one.crc);
        if (one.crc != w->crc)
            report_problem(r, EXIT_FAILURE,
                           "one worker and all of them "
                           "compute different weights");
    }
    doctor_weights_free(&one);
}

void doctor_compare(struct report *r, const struct doctor_weights *w,
                    const char *backend, int workers, int gpus)
{
    /* The user's numbers of devices are not for these runs. */
    setenv("STARPU_NCPU", "1", 1);
    setenv("STARPU_NCUDA", "0", 1);
    unsetenv("STARPU_NCPUS");
    if (!gpus && workers > 1)
        compare_one(r, w, backend);
    compare_ref(r, w);
}
