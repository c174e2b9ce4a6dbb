/* test_own_rule.c - an update rule of the program's own, in a trainer's steps
 *
 * The function does what DDP_ADAM does, which test_optim compares with PyTorch;
 * both compute in f32, in another order: a weight is off by some 1e-7 of it
 * after each of STEPS steps.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "defaults.h"
#include "scratch.h"

enum { COUNT = 48, IN = 5, HIDDEN = 9, CLASSES = 3, STEPS = 12 };
enum { LEN = HIDDEN * IN };

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < IN; i++)
        x[i] = ddp__uniform(ddp__philox(3, (uint64_t)index, (uint64_t)i).v[0]) +
               (float)(i == s->label);
    return 0;
}

static void adam(const struct ddp_update *u, void *arg)
{
    const struct ddp_optimizer *o = u->optimizer;
    double c1 = 1 - pow(o->beta1, (double)u->updates);
    double c2 = 1 - pow(o->beta2, (double)u->updates);
    float *m = u->state[0], *v = u->state[1];

    __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < u->len; i++) {
        float g = u->g[i] + u->weight_decay * u->w[i];

        m[i] = o->beta1 * m[i] + (1 - o->beta1) * g;
        v[i] = o->beta2 * v[i] + (1 - o->beta2) * g * g;
        u->w[i] -= (float)(u->lr * (m[i] / c1) / (sqrt(v[i] / c2) + o->eps));
    }
}

/* A run to step `steps`, or to the end of it; the weights of its first layer.
 */
static int run(int cpus, bool own, int64_t stop, const char *dir, int *calls,
               float w[LEN])
{
    struct ddp_optimizer o = ddp_adam(0.02f);
    struct ddp_train_config cfg = {TRAIN_DEFAULTS,
                                   .batch = 16,
                                   .sub_batch = 4,
                                   .lanes = 2,
                                   .steps = STEPS,
                                   .seed = 4,
                                   .checkpoint = {.dir = dir, .keep = 1}};
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = cpus});
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = COUNT,
                                                  .shape = {1, 1, IN},
                                                  .type = DDP_F32,
                                                  .classes = CLASSES,
                                                  .get = get});
    ddp_chain_t *c =
        ddp_chain_new(ddp_dense_new(IN, HIDDEN, NULL), ddp_tanh_new(),
                      ddp_dense_new(HIDDEN, CLASSES, NULL), DDP_END);
    ddp_trainer_t *t;
    int rc = 0;

    o.weight_decay = 0.1f;
    o.clip_norm = 0.5f;
    if (own) {
        o.kind = DDP_CUSTOM_OPTIMIZER;
        o.update = adam;
        o.update_arg = calls;
        o.update_states = 2;
    }
    cfg.optimizer = o;
    t = ddp_trainer_new(ddp, c, d, &cfg);
    if (t && dir && stop == STEPS && ddp_trainer_resume(t, NULL, NULL) != 1)
        rc = -1;
    while (t && rc == 0 && ddp_trainer_steps(t) < stop)
        rc = ddp_trainer_step(t, NULL);
    if (rc == 0 && dir && stop < STEPS)
        rc = ddp_trainer_checkpoint(t);
    if (t && rc == 0)
        rc = ddp_chain_get(c, "0.weight", w, LEN);
    if (rc < 0 || !t)
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_chain_free(c);
    ddp_dataset_free(d);
    ddp_finish(ddp);
    return t ? rc : -1;
}

static double distance(const float *a, const float *b)
{
    double most = 0;

    for (int i = 0; i < LEN; i++)
        most = fmax(most, fabs((double)a[i] - b[i]));
    return most;
}

int main(void)
{
    float want[LEN], one[LEN], two[LEN], half[LEN], rest[LEN];
    int calls = 0;

    scratch_make();
    if (run(2, false, STEPS, NULL, NULL, want) < 0 ||
        run(1, true, STEPS, NULL, &calls, one) < 0 ||
        run(2, true, STEPS, NULL, &calls, two) < 0)
        bail_out("training failed");
    /* Of two weights and two biases, in two runs. */
    is_int(calls, 2 * 4 * STEPS, "the function sees each parameter once");
    is_near(distance(one, want), 0, 1e-5, "it updates as Adam does");
    ok(memcmp(one, two, sizeof(one)) == 0, "the same bits on two workers");
    ok(run(2, true, STEPS / 2, at("ckpt"), &calls, half) == 0 &&
           distance(half, two) > 1e-3,
       "half of a run");
    ok(run(2, true, STEPS, at("ckpt"), &calls, rest) == 0 &&
           memcmp(rest, two, sizeof(rest)) == 0,
       "its checkpoint has the states: the rest leads to the same bits");
    return done_testing();
}
