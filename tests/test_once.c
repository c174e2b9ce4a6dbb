/* test_once.c - every layer runs once, on every worker, and may fail
 *
 * A layer of the program's own leaves values as they are, counts the samples
 * that pass, and fails on request.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "runtime/context.h"
#include "backends.h"
#include "custom_data.h"
#include "tap.h"

static ddp_t *ddp;

/* ---- count: leaves x as it is, and counts ------------------------------- */

struct counter {
    atomic_int forward, backward;     /* runs */
    atomic_int forward_n, backward_n; /* samples */
    atomic_int fail, fail_back;       /* this many runs from now */
    int sleep_back_us;
    pthread_mutex_t lock;
    pthread_cond_t more; /* threads */
    pthread_t thread[8];
    int threads, meet; /* that have run; that a run forward waits for */
};

struct count {
    ddp_layer_t layer;
    struct counter *counter; /* not owned */
};

static int count_shape(const ddp_layer_t *l, struct ddp_shape x,
                       struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

enum { MEET_S = 60 }; /* longer than any load delays a worker */

/* Wait until c->meet threads have run.  After a time-out nobody waits again,
 * and c->meet says so. */
static void meet_threads(struct counter *c)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += MEET_S;
    while (c->threads < c->meet)
        if (pthread_cond_timedwait(&c->more, &c->lock, &end))
            c->meet = 0;
}

static void note_thread(struct counter *c)
{
    pthread_t self = pthread_self();
    int i;

    pthread_mutex_lock(&c->lock);
    for (i = 0; i < c->threads && !pthread_equal(c->thread[i], self); i++)
        ;
    if (i == c->threads && c->threads < 8)
        c->thread[c->threads++] = self;
    pthread_cond_broadcast(&c->more);
    meet_threads(c);
    pthread_mutex_unlock(&c->lock);
}

static int copy(const struct ddp_kernel_args *a)
{
    memcpy(a->buf[1].data, a->buf[0].data, length(a, 0) * sizeof(float));
    return 0;
}

static int count_run(const struct ddp_kernel_args *a)
{
    struct counter *c = *(struct counter *const *)a->arg;

    c->forward++;
    c->forward_n += a->n;
    note_thread(c);
    if (c->fail > 0 && --c->fail == 0)
        return 7;
    return copy(a);
}

static int count_run_back(const struct ddp_kernel_args *a)
{
    struct counter *c = *(struct counter *const *)a->arg;

    c->backward++;
    c->backward_n += a->n;
    if (c->sleep_back_us)
        usleep((useconds_t)c->sleep_back_us);
    if (c->fail_back > 0 && --c->fail_back == 0)
        return 7;
    return copy(a);
}

static ddp_value_t *through(ddp_layer_t *l, ddp_graph_t *g,
                            const struct ddp_kernel *k, ddp_value_t *x)
{
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), ddp_value_type(x));

    if (ddp_graph_call(g, k, &((struct count *)l)->counter, 2,
                       (ddp_value_t *[]){x, y},
                       (enum ddp_access[]){DDP_READ, DDP_WRITE}) < 0)
        return NULL;
    return y;
}

static ddp_value_t *count_forward(ddp_layer_t *l, ddp_graph_t *g,
                                  ddp_value_t *x)
{
    static const struct ddp_kernel k = {"counting", {count_run}};
    struct ddp_record r = {.layer = l, .x = x, .y = through(l, g, &k, x)};

    return r.y ? ddp_graph_record(g, &r) : NULL;
}

static ddp_value_t *count_backward(ddp_layer_t *l, ddp_graph_t *g,
                                   const struct ddp_record *r, ddp_value_t *dy)
{
    static const struct ddp_kernel k = {"counting back", {count_run_back}};

    return ddp_value_needs_gradient(r->x) ? through(l, g, &k, dy) : NULL;
}

static const struct ddp_layer_ops count_ops = {
    .kind = "count",
    .shape = count_shape,
    .forward = count_forward,
    .backward = count_backward,
};

static ddp_layer_t *count_new(struct counter *c)
{
    ddp_layer_t *l = ddp_layer_new(sizeof(struct count), &count_ops);

    if (l)
        ((struct count *)l)->counter = c;
    return l;
}

static void reset(struct counter *c, int n)
{
    for (int i = 0; i < n; i++) {
        memset(&c[i], 0, sizeof(c[i]));
        pthread_mutex_init(&c[i].lock, NULL);
        pthread_cond_init(&c[i].more, NULL);
    }
}

/* ---- every layer once --------------------------------------------------- */

enum { COUNTERS = 3 };

/* Counters next to everything that could make a layer run twice. */
static ddp_chain_t *counted(struct counter c[COUNTERS])
{
    reset(c, COUNTERS);
    return ddp_chain_new(
        ddp_conv_new(C, 4, 3,
                     &(struct ddp_conv_options){CONV_DEFAULTS, .pad = 1}),
        count_new(&c[0]), ddp_batch_norm_new(4, NULL),
        ddp_skip_new(
            ddp_chain_new(count_new(&c[1]), ddp_dropout_new(0.3f), DDP_END),
            DDP_END),
        ddp_relu_new(), ddp_global_mean_pool_new(), count_new(&c[2]),
        ddp_dense_new(4, OUT, NULL), DDP_END);
}

/* Whether all counters have seen so many runs, and all n samples in each. */
static bool counts(struct counter c[COUNTERS], int forward, int backward,
                   int subs, int n)
{
    bool good = true;

    for (int i = 0; i < COUNTERS; i++)
        good = good && c[i].forward == forward * subs &&
               c[i].backward == backward * subs &&
               c[i].forward_n == forward * n && c[i].backward_n == backward * n;
    for (int i = 0; i < COUNTERS && !good; i++)
        diag("counter %d: %d forward, %d backward", i, c[i].forward,
             c[i].backward);
    return good;
}

static void test_pullback_counts(void)
{
    struct counter c[COUNTERS];
    ddp_chain_t *chain = counted(c);
    float *x = numbers(1, X_LEN), *dy = numbers(9, Y_LEN), y[Y_LEN];
    ddp_pullback_t *p;

    ddp_chain_init(chain, 1);
    ok(ddp_chain_forward(ddp, chain, x, DDP_F32, in, N, 4, y) == 0 &&
           counts(c, 1, 0, 2, N),
       "evaluation runs each layer once forward");
    p = ddp_pullback_new(ddp, chain, x, in, N, 4, NULL);
    ok(p && counts(c, 2, 0, 2, N), "a pullback runs each layer once forward");
    ok(p && ddp_pullback_backward(p, dy, NULL) == 0 && counts(c, 2, 1, 2, N),
       "a pull runs each layer once backward, and none forward");
    ok(p && ddp_pullback_backward(p, dy, NULL) == 0 && counts(c, 2, 2, 2, N),
       "a second pull likewise");
    ddp_pullback_free(p);
    ddp_chain_free(chain);
    free(x);
    free(dy);
}

static void test_training_counts(void)
{
    struct counter c[COUNTERS];
    ddp_chain_t *chain = counted(c);
    ddp_dataset_t *d = samples(2 * N);
    ddp_trainer_t *t = ddp_trainer_new(ddp, chain, d, &training);
    struct ddp_metrics m;

    ok(t && ddp_trainer_step(t, &m) == 0 && counts(c, 1, 1, 3, N),
       "a step runs each layer once forward and once backward");
    ok(t && ddp_trainer_step(t, NULL) == 0 && ddp_trainer_step(t, NULL) == 0 &&
           ddp_trainer_wait(t) == 0 && counts(c, 3, 3, 3, N),
       "two steps submitted ahead likewise");
    ok(t && ddp_trainer_gradients(t, &m) == 0 && counts(c, 4, 4, 3, N),
       "gradients without an update likewise");
    ok(t && ddp_trainer_evaluate(t, d, &m) == 0 &&
           c[0].forward_n == 4 * N + 2 * N && c[0].backward_n == 4 * N,
       "evaluation sees each of %d samples once, forward only", 2 * N);
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* ---- failures ----------------------------------------------------------- */

/* A run of the given counter's kernel fails: the step does, the weights do not
 * change, and the next step works. */
static void test_kernel_failure(bool back)
{
    struct counter c[COUNTERS];
    ddp_chain_t *chain = counted(c);
    ddp_dataset_t *d = samples(N);
    ddp_trainer_t *t = ddp_trainer_new(ddp, chain, d, &training);
    const char *where = back ? "backward" : "forward";
    struct ddp_metrics m = {0};
    uint32_t before = 0, after = 1;
    int rc;

    ok(t && ddp_trainer_step(t, &m) == 0, "a step before a failure %s", where);
    ddp_chain_checksum(chain, &before);
    *(back ? &c[1].fail_back : &c[1].fail) = 3; /* of three sub-batches */
    c[1].sleep_back_us = back ? 30000 : 0; /* long after the loss is known */
    rc = t ? ddp_trainer_step(t, &m) : 0;
    ok(rc == DDP_EDEVICE && strstr(ddp_errmsg(), "counting"),
       "a kernel that fails %s fails its step, by name: %s", where,
       ddp_errmsg());
    ddp_chain_checksum(chain, &after);
    ok(before == after, "weights are as before that step");
    rc = t ? ddp_trainer_step(t, &m) : -1;
    ok(rc == 0 && isfinite(m.loss) && m.samples == N, "the next step works: %s",
       rc ? ddp_errmsg() : "yes");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* The last step of a run has nothing after it that could report it. */
static void test_last_failure(void)
{
    struct ddp_train_config cfg = training;
    struct counter c[COUNTERS];
    ddp_chain_t *chain = counted(c);
    ddp_dataset_t *d = samples(N);
    ddp_trainer_t *t;
    int rc;

    cfg.steps = 2;
    t = ddp_trainer_new(ddp, chain, d, &cfg);
    c[0].fail_back = 6; /* three sub-batches a step */
    c[0].sleep_back_us = 20000;
    rc = t ? ddp_trainer_train(t) : 0;
    ok(rc == DDP_EDEVICE, "a run whose last task fails: %s",
       rc ? ddp_errmsg() : "no error");
    ddp_trainer_free(t);
    ddp_dataset_free(d);
    ddp_chain_free(chain);
}

/* ---- workers ------------------------------------------------------------ */

/* A kernel that waits for one on another worker: the scheduler must give other
 * sub-batches to workers that are idle, however late they wake. */
static void test_workers(void)
{
    struct counter c[COUNTERS];
    ddp_chain_t *chain = counted(c);
    float *x = numbers(1, X_LEN), y[Y_LEN];
    int rc;

    if (ddp_worker_count(ddp) < 2) {
        skip(1, "one worker");
    } else {
        ddp_chain_init(chain, 1);
        c[0].meet = 2;
        rc = ddp_chain_forward(ddp, chain, x, DDP_F32, in, N, 1, y);
        ok(rc == 0 && c[0].meet == 2 && c[0].threads > 1,
           "%d sub-batches run on %d threads at a time", N, c[0].threads);
    }
    ddp_chain_free(chain);
    free(x);
}

int main(void)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (!(ddp = begin_backend(i)))
            continue;
        test_pullback_counts();
        test_training_counts();
        test_kernel_failure(false);
        test_kernel_failure(true);
        test_last_failure();
        test_workers();
        ddp_finish(ddp);
    }
    return done_testing();
}
