/* test_context.c - one libddp in a process, next to the program's own StarPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu.h>

#include "ddp.h"
#include "defaults.h"
#include "tap.h"

enum { LEN = 6, CLASSES = 3, COUNT = 48, STEPS = 4, WEIGHTS = LEN * CLASSES };

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    s->label = (int32_t)(index % CLASSES);
    for (int i = 0; i < LEN; i++)
        x[i] = (float)((index * 7 + i * 5) % 11) / 11 + (i == s->label);
    return 0;
}

/* Everything that waits: steps, statistics, evaluation, one-shot calls, and
 * freeing.  The weights after it, in w. */
static bool use(ddp_t *ddp, float *w)
{
    ddp_dataset_t *data = ddp_dataset_callback(&(struct ddp_source){
        .count = COUNT, .shape = {1, 1, LEN}, .classes = CLASSES, .get = get});
    ddp_chain_t *chain =
        ddp_chain_new(ddp_dense_new(LEN, CLASSES, NULL), DDP_END);
    ddp_trainer_t *t = ddp_trainer_new(
        ddp, chain, data,
        &(struct ddp_train_config){
            TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
            .optimizer = ddp_momentum(0.1f, 0.9f), .sub_batch = 4, .lanes = 2,
            .batch = 16, .seed = 1, .steps = STEPS});
    const float x[LEN] = {1, 0, 0, 1, 0, 0};
    float y[CLASSES];
    struct ddp_metrics m;
    struct ddp_stats st;
    bool good =
        t && ddp_trainer_train(t) == 0 && ddp_trainer_stats(t, &st) == 0 &&
        st.steps == STEPS && ddp_trainer_evaluate(t, data, &m) == 0 &&
        ddp_chain_forward(ddp, chain, x, DDP_F32, (struct ddp_shape){1, 1, LEN},
                          1, 0, y) == 0 &&
        ddp_chain_get(chain, "0.weight", w, WEIGHTS) == 0;

    if (!good)
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(chain);
    return good;
}

static bool same(const float *a, const float *b)
{
    return memcmp(a, b, WEIGHTS * sizeof(*a)) == 0;
}

/* ---- the end ------------------------------------------------------------ */

static bool refuses(int rc)
{
    return rc == DDP_EINVAL && strstr(ddp_errmsg(), "ddp_finish()");
}

/* What uses the context after it, in every way; in `made` what was made with
 * it. */
static struct {
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
    ddp_compiled_t *compiled;
    ddp_pullback_t *pullback;
} made;

static bool trainer_refuses(void)
{
    ddp_trainer_t *t = made.trainer;
    struct ddp_metrics m;
    struct ddp_stats st;
    float w[WEIGHTS];

    return refuses(ddp_trainer_step(t, &m)) && refuses(ddp_trainer_train(t)) &&
           refuses(ddp_trainer_gradients(t, &m)) &&
           refuses(ddp_trainer_get_gradient(t, "0.weight", w, WEIGHTS)) &&
           refuses(ddp_trainer_set_gradient(t, "0.weight", w, WEIGHTS)) &&
           refuses(ddp_trainer_update(t)) && refuses(ddp_trainer_wait(t)) &&
           refuses(ddp_trainer_evaluate(t, made.data, &m)) &&
           refuses(ddp_trainer_evaluate_ema(t, made.data, &m)) &&
           refuses(ddp_trainer_ema_get(t, "0.weight", w, WEIGHTS)) &&
           refuses(ddp_trainer_ema_set(t, "0.weight", w, WEIGHTS)) &&
           refuses(ddp_trainer_ema_save(t, "/nowhere/x", NULL)) &&
           refuses(ddp_trainer_stats(t, &st)) &&
           refuses(ddp_trainer_checkpoint(t)) &&
           refuses(ddp_trainer_resume(t, "/nowhere", NULL)) &&
           ddp_trainer_steps(t) == 1;
}

static bool others_refuse(void)
{
    const float x[LEN] = {1, 0, 0, 1, 0, 0};
    float y[CLASSES], w[WEIGHTS];
    int64_t request;

    return refuses(ddp_compiled_submit(made.compiled, x, 1, y, &request)) &&
           refuses(ddp_compiled_wait(made.compiled, 0)) &&
           refuses(ddp_compiled_run(made.compiled, x, 1, y)) &&
           ddp_compiled_shape(made.compiled).c == 0 &&
           refuses(ddp_pullback_forward(made.pullback, x, y)) &&
           refuses(ddp_pullback_backward(made.pullback, y, NULL)) &&
           refuses(ddp_pullback_wait(made.pullback)) &&
           refuses(ddp_pullback_get_gradient(made.pullback, "0.weight", w,
                                             WEIGHTS));
}

static bool make_all(ddp_t *ddp)
{
    const struct ddp_shape shape = {1, 1, LEN};
    const float x[LEN] = {1, 0, 0, 1, 0, 0};
    float y[CLASSES];
    struct ddp_metrics m;

    made.data = ddp_dataset_callback(&(struct ddp_source){
        .count = COUNT, .shape = shape, .classes = CLASSES, .get = get});
    made.chain = ddp_chain_new(ddp_dense_new(LEN, CLASSES, NULL), DDP_END);
    made.trainer =
        ddp_trainer_new(ddp, made.chain, made.data,
                        &(struct ddp_train_config){
                            TRAIN_DEFAULTS, .loss = DDP_LOGIT_CROSS_ENTROPY,
                            .optimizer = ddp_sgd(0.1f), .sub_batch = 4,
                            .lanes = 2, .batch = 16, .ema_decay = 0.9});
    made.compiled = ddp_compiled_new(ddp, made.chain, shape, 1, NULL);
    made.pullback = ddp_pullback_new(ddp, made.chain, x, shape, 1, 0, y);
    return made.pullback && made.compiled &&
           ddp_trainer_step(made.trainer, &m) == 0 &&
           ddp_trainer_evaluate(made.trainer, made.data, &m) == 0;
}

static void test_after_finish(void)
{
    float w[WEIGHTS], same_w[WEIGHTS];
    ddp_t *ddp = ddp_init(NULL);
    bool good =
        make_all(ddp) && ddp_chain_get(made.chain, "0.weight", w, WEIGHTS) == 0;

    if (!good)
        bail_out("%s", ddp_errmsg());
    ddp_finish(ddp);
    ok(trainer_refuses(), "after ddp_finish() a trainer refuses every call: %s",
       ddp_errmsg());
    ok(others_refuse(), "so do a compiled chain and a pullback");
    ok(ddp_chain_get(made.chain, "0.weight", same_w, WEIGHTS) == 0 &&
           memcmp(w, same_w, sizeof(w)) == 0,
       "the chain has its weights");
    ddp_pullback_free(made.pullback);
    ddp_compiled_free(made.compiled);
    ddp_trainer_free(made.trainer);
    ddp = ddp_init(NULL);
    made.trainer = ddp_trainer_new(ddp, made.chain, made.data, NULL);
    ok(made.trainer, "and may be trained in another context");
    ddp_chain_free(made.chain); /* in the wrong order */
    ddp_finish(ddp);
    ddp_trainer_free(made.trainer);
    ddp_dataset_free(made.data);
}

/* ---- one context at a time ----------------------------------------------- */

static void test_second(void)
{
    ddp_t *ddp =
              ddp_init(&(struct ddp_config){START_DEFAULTS, .backend = "ref"}),
          *second;
    float w[WEIGHTS];

    second = ddp_init(NULL);
    ok(!second && ddp_errcode() == DDP_EINVAL &&
           strstr(ddp_errmsg(), "already started in this process"),
       "a second context is refused: %s", ddp_errmsg());
    ddp_finish(second);
    ok(strstr(ddp_describe(ddp), "(plain C") && use(ddp, w),
       "the first one works as before: %s", ddp_describe(ddp));
    ddp_finish(ddp);
    setenv("STARPU_SCHED", "none-of-these", 1);
    ok(!ddp_init(NULL), "one that does not start: %s", ddp_errmsg());
    unsetenv("STARPU_SCHED");
    ddp = ddp_init(NULL);
    ok(ddp && use(ddp, w), "leaves nothing behind");
    ddp_finish(ddp);
}

static void test_again(void)
{
    static const char *const backend[] = {"ref", NULL, "ref"};
    float w[3][WEIGHTS];

    for (int i = 0; i < 3; i++) {
        ddp_t *ddp = ddp_init(
            &(struct ddp_config){START_DEFAULTS, .backend = backend[i]});

        ok(ddp && use(ddp, w[i]) &&
               (!strstr(ddp_describe(ddp), "(plain C") == !backend[i]),
           "start %d: %s", i + 1, ddp ? ddp_describe(ddp) : ddp_errmsg());
        ddp_finish(ddp);
    }
    ok(same(w[0], w[2]), "a run between two leaves no trace in their weights");
}

/* ---- tasks of the program ------------------------------------------------ */

static atomic_bool began, go, ended;

static void wait_for(const atomic_bool *b)
{
    while (!atomic_load(b))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void block(void *buffers[], void *arg)
{
    (void)buffers;
    (void)arg;
    atomic_store(&began, true);
    wait_for(&go);
    atomic_store(&ended, true);
}

/* A task that takes a worker until `go`. */
static void submit_blocker(void)
{
    static struct starpu_codelet cl = {.cpu_funcs = {block}};
    struct starpu_task *task = starpu_task_create();

    atomic_store(&began, false);
    atomic_store(&go, false);
    atomic_store(&ended, false);
    task->cl = &cl;
    if (starpu_task_submit(task) != 0)
        bail_out("the program's own task was not taken");
    wait_for(&began);
}

static void finish_blocker(void)
{
    atomic_store(&go, true);
    starpu_task_wait_for_all();
}

static void test_own_task(void)
{
    ddp_t *ddp = ddp_init(NULL);
    float with[WEIGHTS], without[WEIGHTS];

    use(ddp, without);
    submit_blocker();
    ok(use(ddp, with) && !ended,
       "training does not wait for a task of the program");
    ok(same(with, without), "nor do the weights depend on it");
    finish_blocker();
    ok(ended, "which then ends as it would have");
    ddp_finish(ddp);
}

/* ---- a StarPU of the program ----------------------------------------------
 */

static const char *policy(void)
{
    return starpu_sched_ctx_get_sched_policy(0)->policy_name;
}

static void test_own_starpu(void)
{
    struct starpu_conf conf;
    float own[WEIGHTS], shared[WEIGHTS];
    ddp_t *ddp = ddp_init(NULL);

    use(ddp, own);
    ddp_finish(ddp);
    starpu_conf_init(&conf);
    conf.sched_policy_name = "eager";
    if (starpu_init(&conf) != 0)
        bail_out("StarPU does not start");
    submit_blocker();
    ddp = ddp_init(NULL);
    ok(ddp && strstr(ddp_describe(ddp), "scheduler eager") &&
           strcmp(policy(), "eager") == 0,
       "a StarPU that runs is used as it is: %s",
       ddp ? ddp_describe(ddp) : ddp_errmsg());
    ok(use(ddp, shared) && same(own, shared), "and trains to the same weights");
    ddp_finish(ddp);
    ok(!ended && starpu_is_initialized(),
       "it runs on after ddp_finish(), and so do its tasks");
    ddp = ddp_init(NULL);
    ok(ddp && use(ddp, shared), "libddp starts in it a second time");
    ddp_finish(ddp);
    finish_blocker();
    ok(ended, "the program's task ends as it would have");
    starpu_shutdown();
    ok(!starpu_is_initialized(), "the program shuts its StarPU down");
}

/* Workers that spin take as much time of cores as passes, each.  Those of other
 * schedulers do. */
static void test_idle(void)
{
    const struct timespec pause = {0, 300000000};
    const char *sched = getenv("STARPU_SCHED");
    ddp_t *ddp = ddp_init(NULL);
    float w[WEIGHTS];
    clock_t begin;

    if (!ddp || !use(ddp, w))
        bail_out("%s", ddp_errmsg());
    if (sched && strcmp(sched, "ddp") != 0) {
        skip(1, "STARPU_SCHED is %s", sched);
        ddp_finish(ddp);
        return;
    }
    begin = clock();
    nanosleep(&pause, NULL);
    begin = clock() - begin;
    ok(begin < CLOCKS_PER_SEC / 10,
       "workers without a task sleep: %.3f s of processor time in 0.3 s",
       (double)begin / CLOCKS_PER_SEC);
    ddp_finish(ddp);
}

int main(void)
{
    test_idle();
    test_after_finish();
    test_second();
    test_again();
    test_own_task();
    test_own_starpu();
    return done_testing();
}
