/* test_loss_scaler.c - steps with numbers that are not finite are not applied
 *
 * A run whose step BAD meets such a number must end with the bits of a run
 * that never had that step: on any number of workers, under any policy.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/context.h"
#include "defaults.h"
#include "number.h"
#include "same_bits.h"
#include "tap.h"

enum { SIZE = 6, BATCH = 8, STEPS = 7, BAD = 3, TARGETS = 3 };

/* What is wrong with one sample of step BAD. */
enum fault {
    SOUND,    /* nothing: the step is left out */
    TARGET,   /* an infinite target: loss and gradients */
    PIXEL,    /* an infinite input: statistics, loss and gradients */
    LOSS,     /* the program's loss is NaN, its gradient is fine */
    GRADIENT, /* the other way round */
    ALWAYS,   /* as TARGET, in every step */
    OFTEN,    /* in every other step */
    NO_LOSS,  /* as LOSS, in every step */
    FAULTS
};
static const char *const fault_name[] = {"no fault",
                                         "an infinite target",
                                         "an infinite pixel",
                                         "a loss of NaN",
                                         "an infinite gradient",
                                         "a fault in every step",
                                         "a fault in every other step",
                                         "a loss of NaN in every step"};

/* Which need the program's loss. */
static bool is_own(enum fault fault)
{
    return fault == LOSS || fault == GRADIENT || fault == NO_LOSS;
}

/* Samples in order; those of step BAD are left out of a sound run. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    enum fault fault = *(enum fault *)arg;
    int64_t step, i = index;
    float *x = s->x;
    bool bad;

    (void)key;
    if (fault == SOUND && i >= BAD * BATCH)
        i += BATCH;
    step = i / BATCH;
    bad = i % BATCH == 5 && (fault == ALWAYS || fault == NO_LOSS ||
                             (fault == OFTEN && step % 2) || step == BAD);
    for (int k = 0; k < SIZE * SIZE * 3; k++)
        x[k] = number(i * 1000 + k);
    for (int k = 0; k < TARGETS; k++)
        s->target[k] = number(i * 1000 + 500 + k);
    if (bad && fault == PIXEL)
        x[50] = INFINITY;
    else if (bad)
        s->target[1] = is_own(fault) ? 100 : INFINITY;
    return 0;
}

/* Squared error that stumbles over a target of 100. */
static double stumble(const float *x, const void *target, const float *weight,
                      int n, int len, float *dx, void *arg)
{
    const float *want = target;
    double sum = 0;

    for (int i = 0; i < n * len; i++) {
        bool bad = want[i] == 100;
        double d = bad ? 0 : (double)x[i] - want[i];

        sum += weight[i / len] * d * d;
        if (bad && *(enum fault *)arg != GRADIENT)
            sum = NAN;
        if (dx)
            dx[i] = bad && *(enum fault *)arg == GRADIENT ? INFINITY
                                                          : (float)(2 * d);
    }
    return sum;
}

static ddp_chain_t *net(void)
{
    return ddp_chain_new(ddp_conv_new(3, 4, 3,
                                      &(struct ddp_conv_options){
                                          CONV_DEFAULTS, .no_bias = true}),
                         ddp_batch_norm_new(4, NULL), ddp_silu_new(),
                         ddp_global_mean_pool_new(),
                         ddp_dense_new(4, TARGETS, NULL), DDP_END);
}

/* One run, and what is left of it. */
struct run {
    enum fault fault;
    bool own; /* loss: the program's */
    struct ddp_optimizer optimizer;
    int max_nan_steps; /* 0: the default */
    bool strict;       /* none may be skipped */
    int rc;
    uint32_t before, after; /* checksums */
    struct ddp_skips skips;
    int64_t reported; /* skipped steps that on_step() was called with */
    int64_t named;    /* of these, how many have the name of a worker */
    double epoch_loss;
};

static int on_step(const struct ddp_progress *p, void *arg)
{
    struct run *r = arg;

    r->reported += p->why != NULL;
    r->named += p->why && strstr(p->why, "seen by CPU ");
    r->epoch_loss = p->epoch_mean.loss;
    return !p->why != !p->now.skipped || p->skipped != r->reported;
}

static void train(ddp_t *ddp, struct run *r)
{
    int64_t steps = r->fault == SOUND ? STEPS - 1 : STEPS;
    ddp_chain_t *chain = net();
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = steps * BATCH,
                                                  .shape = {SIZE, SIZE, 3},
                                                  .type = DDP_F32,
                                                  .target_len = TARGETS,
                                                  .get = get,
                                                  .arg = &r->fault});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = r->own ? DDP_CUSTOM_LOSS : DDP_MSE,
            .loss_fn = stumble, .loss_arg = &r->fault,
            .optimizer = r->optimizer, .batch = BATCH, .sub_batch = 2,
            .lanes = 3, .order = DDP_IN_ORDER,
            .max_nan_steps = r->strict          ? 0
                             : r->max_nan_steps ? r->max_nan_steps
                                                : 10,
            .seed = 4, .on_step = on_step, .arg = r});

    r->reported = r->named = 0;
    ddp_chain_checksum(chain, &r->before);
    r->rc = t ? ddp_trainer_train(t) : ddp_errcode();
    ddp_trainer_skips(t, &r->skips);
    ddp_chain_checksum(chain, &r->after);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* ---- same bits as without the step -------------------------------------- */

static struct ddp_optimizer clipped(struct ddp_optimizer o)
{
    o.clip_norm = 0.1f;
    return o;
}

static void test_fault(ddp_t *ddp, enum fault fault, struct ddp_optimizer o,
                       const char *how)
{
    static const char *const why[FAULTS] = {
        [TARGET] = "the loss is not finite, first at 4.weight, seen by CPU ",
        [PIXEL] =
            "the loss is not finite, first at 1.running_var, seen by CPU ",
        [LOSS] = "the loss is not finite, seen by CPU ",
        [GRADIENT] =
            "gradients are not finite, first at 4.weight, seen by CPU "};
    struct run r = {.fault = fault, .own = is_own(fault), .optimizer = o};
    struct run sound = r;

    sound.fault = SOUND;
    train(ddp, &sound);
    train(ddp, &r);
    ok(r.rc == 0 && r.after == sound.after && r.after != r.before,
       "%s, %s: the weights of a run without that step", fault_name[fault],
       how);
    if (r.after != sound.after)
        diag("%08x, want %08x; %d: %s", r.after, sound.after, r.rc,
             ddp_errmsg());
    ok(r.skips.steps == 1 && r.skips.last == BAD && r.reported == 1 &&
           r.skips.in_a_row == 0 && isfinite(r.epoch_loss),
       "one step was skipped, it was reported, the mean is finite");
    ok(strncmp(r.skips.why, why[fault], strlen(why[fault])) == 0, "%s",
       r.skips.why);
}

static void test_faults(const char *sched, const char *ncpu)
{
    ddp_t *ddp = start_under(sched, ncpu, NULL, NULL);
    char how[64];

    for (enum fault f = TARGET; f <= GRADIENT; f++) {
        snprintf(how, sizeof(how), "Adam, %s worker, %s", ncpu,
                 sched ? sched : "ddp");
        test_fault(ddp, f, ddp_adam(0.01f), how);
    }
    snprintf(how, sizeof(how), "momentum, clipped, %s worker, %s", ncpu,
             sched ? sched : "ddp");
    test_fault(ddp, TARGET, clipped(ddp_momentum(0.05f, 0.9f)), how);
    test_fault(ddp, GRADIENT, clipped(ddp_sgd(0.05f)), how);
    ddp_finish(ddp);
}

/* ---- who saw it --------------------------------------------------------- */

/* The program's loss is NaN in every step, so that no weight changes and a step
 * may begin before the one before it has been judged. */
static void test_names(ddp_t *ddp)
{
    struct run r = {.fault = NO_LOSS,
                    .own = true,
                    .optimizer = ddp_adam(0.01f),
                    .max_nan_steps = STEPS};

    train(ddp, &r);
    is_int(r.reported, STEPS, "every step is skipped");
    is_int(r.named, r.reported, "and each message names a worker");
}

/* Two steps in flight, which workers note in any order. */
static void test_seen(ddp_t *ddp)
{
    struct ddp__task_group g;
    char want[2][40], got[40];

    for (int w = 0; w < 2; w++)
        starpu_worker_get_name(w, want[w], sizeof(want[w]));
    if (ddp__task_group_init(&g, ddp, 3) < 0)
        bail_out("%s", ddp_errmsg());
    ddp__task_group_see(&g, 6, 1); /* in the place of step 3, and undone */
    ddp__task_group_see(&g, 3, 0);
    ddp__task_group_see(&g, 4, 1);
    ddp__task_group_see(&g, 3, 1);
    ddp__task_group_see(&g, 4, 0);
    ddp__task_group_seen_by(&g, 3, got, sizeof(got));
    is_str(got, want[0], "the first worker of the earlier step");
    ddp__task_group_seen_by(&g, 4, got, sizeof(got));
    is_str(got, want[1], "and of the later one");
    ddp__task_group_seen_by(&g, 4, got, sizeof(got));
    is_str(got, "a device", "which is noted once");
    ddp__task_group_see(&g, 5, 1);
    ddp__task_group_seen_by(&g, 2, got, sizeof(got));
    is_str(got, "a device", "and for no other step");
    ddp__task_group_fini(&g);
}

/* ---- budget ------------------------------------------------------------- */

static void test_budget(ddp_t *ddp)
{
    struct run r = {
        .fault = ALWAYS, .optimizer = ddp_adam(0.01f), .max_nan_steps = 3};
    struct run one = r, often = r;

    train(ddp, &r);
    ok(r.rc == DDP_EDIVERGED, "one step too many in a row: %s", ddp_errmsg());
    ok(r.skips.steps == 4 && strstr(ddp_errmsg(), "step 4: the loss") &&
           strstr(ddp_errmsg(), "4 steps in a row"),
       "it is the fourth after a budget of three");
    ok(r.after == r.before, "and no weight has changed");
    one.strict = true;
    train(ddp, &one);
    ok(one.rc == DDP_EDIVERGED && one.skips.steps == 1,
       "without a budget the first ends the run");
    r.max_nan_steps = STEPS;
    train(ddp, &r);
    ok(r.rc == DDP_EDIVERGED && r.skips.steps == STEPS &&
           strstr(ddp_errmsg(), "steps were skipped: the loss"),
       "nor is a run that applied no step a success: %s", ddp_errmsg());
    often.fault = OFTEN;
    often.max_nan_steps = 1;
    train(ddp, &often);
    ok(often.rc == 0 && often.skips.steps == STEPS / 2 &&
           often.after != often.before,
       "every other step does not: %d are skipped", (int)often.skips.steps);
}

/* In a loop of the program. */
static void test_step(ddp_t *ddp)
{
    enum fault fault = OFTEN;
    ddp_chain_t *chain = net();
    ddp_dataset_t *d =
        ddp_dataset_callback(&(struct ddp_source){.count = 4 * BATCH,
                                                  .shape = {SIZE, SIZE, 3},
                                                  .type = DDP_F32,
                                                  .target_len = TARGETS,
                                                  .get = get,
                                                  .arg = &fault});
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, d,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .loss = DDP_MSE,
                                   .optimizer = ddp_sgd(0.1f), .batch = BATCH,
                                   .order = DDP_IN_ORDER});
    uint32_t crc[2] = {0};
    struct ddp_metrics m;

    for (int i = 0; i < 4; i++) {
        ddp_chain_checksum(chain, &crc[0]);
        ok(t && ddp_trainer_step(t, &m) == 0 && m.skipped == (i % 2 == 1) &&
               isfinite(m.loss) == !m.skipped,
           "ddp_trainer_step() %d reports whether it was applied", i);
        ddp_chain_checksum(chain, &crc[1]);
        ok((crc[0] == crc[1]) == m.skipped, "and so do the weights");
    }
    ok(t && ddp_trainer_gradients(t, &m) == 0, "gradients of a sound step");
    ok(t && ddp_trainer_gradients(t, &m) == DDP_EDIVERGED,
       "of one that is not: %s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

int main(void)
{
    ddp_t *ddp;

    test_faults(NULL, "1");
    test_faults(NULL, "2");
    test_faults("eager", "2");
    test_faults("dmdas", "2");
    ddp = start_under(NULL, "2", NULL, NULL);
    test_names(ddp);
    test_seen(ddp);
    test_budget(ddp);
    test_step(ddp);
    ddp_finish(ddp);
    return done_testing();
}
