/* test_early.c - updates that begin before it is known whether the step is
 * applied, and how they are undone
 *
 * The layer "trap" passes gradients on, until it is sprung: then it makes the
 * last one infinite, or fails, after the other buckets have been updated.  A
 * run that meets this must have the bits of one that never had that step.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "defaults.h"
#include "engine/early.h"
#include "engine/update.h"
#include "number.h"
#include "scratch.h"
#include "train/trainer.h"

/* The gradients of the first two buckets come before the trap, those of the
 * batch norm and of the first layer after it. */
enum { WIDTH = 512, OUT = 3, BATCH = 8, LANES = 4, STEPS = 5, BAD = 2 };
enum { BUCKETS = 4, BEFORE = 2 };

/* ---- the trap ----------------------------------------------------------- */

enum sprung { NOT, INFINITE, FAILS };

static struct {
    enum sprung sprung;
    atomic_int passed; /* sub-batches of the step */
    int updated;       /* buckets, when the last of them was there */
    struct ddp__engine *e;
} trap;

static int count_updated(void)
{
    int n = 0;

    for (int b = 0; b < trap.e->params->buckets; b++)
        n += atomic_load(&trap.e->early->kept[b].updated) >= 0;
    return n;
}

/* The last sub-batch waits for the updates that other workers make meanwhile;
 * if they do not come, the count says so. */
static void wait_for_updates(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};

    for (int i = 0; i < 5000 && count_updated() < BEFORE; i++)
        nanosleep(&ms, NULL);
    trap.updated = count_updated();
}

static size_t length(const struct ddp_kernel_args *a)
{
    struct ddp_shape s = a->buf[0].shape;

    return (size_t)a->n * (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

static int run_through(const struct ddp_kernel_args *a)
{
    memcpy(a->buf[1].data, a->buf[0].data, length(a) * sizeof(float));
    return 0;
}

static int run_back(const struct ddp_kernel_args *a)
{
    bool last = atomic_fetch_add(&trap.passed, 1) == LANES - 1;
    float *dx = a->buf[1].data;

    run_through(a);
    if (!last)
        return 0;
    if (trap.e && trap.e->early)
        wait_for_updates();
    if (trap.sprung == INFINITE)
        dx[1] = INFINITY;
    return trap.sprung == FAILS;
}

static int same_shape(const ddp_layer_t *l, struct ddp_shape x,
                      struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static ddp_value_t *trap_forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    static const struct ddp_kernel k = {"trap", {run_through}};
    ddp_value_t *y = ddp_graph_value(g, ddp_value_shape(x), DDP_F32);

    if (ddp_graph_call(g, &k, NULL, 2, (ddp_value_t *[]){x, y},
                       (enum ddp_access[]){DDP_READ, DDP_WRITE}) < 0)
        return NULL;
    return ddp_graph_record(g,
                            &(struct ddp_record){.layer = l, .x = x, .y = y});
}

static ddp_value_t *trap_backward(ddp_layer_t *l, ddp_graph_t *g,
                                  const struct ddp_record *r, ddp_value_t *dy)
{
    static const struct ddp_kernel k = {"trap back", {run_back}};
    ddp_value_t *dx = ddp_graph_value(g, ddp_value_shape(r->x), DDP_F32);

    (void)l;
    if (ddp_graph_call(g, &k, NULL, 2, (ddp_value_t *[]){dy, dx},
                       (enum ddp_access[]){DDP_READ, DDP_WRITE}) < 0)
        return NULL;
    return dx;
}

static ddp_layer_t *trap_new(void)
{
    static const struct ddp_layer_ops ops = {.kind = "trap",
                                             .shape = same_shape,
                                             .forward = trap_forward,
                                             .backward = trap_backward};

    return ddp_layer_new(sizeof(ddp_layer_t), &ops);
}

/* ---- a run -------------------------------------------------------------- */

/* Samples in order; those of step BAD are left out if the trap is not to be
 * sprung. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    uint32_t i = (uint32_t)index;
    float *x = s->x;

    (void)key;
    if (!*(bool *)arg && i >= BAD * BATCH)
        i += BATCH;
    for (uint32_t k = 0; k < WIDTH; k++)
        x[k] = number(i * 1000 + k);
    for (uint32_t k = 0; k < OUT; k++)
        s->target[k] = number(i * 1000 + 900 + k);
    return 0;
}

struct run {
    struct ddp_optimizer optimizer;
    bool bad; /* has the step in which the trap is sprung */
    ddp_chain_t *chain;
    ddp_dataset_t *data;
    ddp_trainer_t *trainer;
    struct ddp_metrics m; /* of the last step */
};

static void start_run(ddp_t *ddp, struct run *r, const char *dir)
{
    r->chain = ddp_chain_new(ddp_dense_new(WIDTH, WIDTH, NULL),
                             ddp_batch_norm_new(WIDTH, NULL), trap_new(),
                             ddp_silu_new(), ddp_dense_new(WIDTH, WIDTH, NULL),
                             ddp_dense_new(WIDTH, WIDTH, NULL),
                             ddp_dense_new(WIDTH, OUT, NULL), DDP_END);
    r->data = ddp_dataset_callback(
        &(struct ddp_source){.count = (STEPS - !r->bad) * BATCH,
                             .shape = {1, 1, WIDTH},
                             .type = DDP_F32,
                             .target_len = OUT,
                             .get = get,
                             .arg = &r->bad});
    r->trainer = ddp_trainer_new(
        ddp, r->chain, r->data,
        &(struct ddp_train_config){TRAIN_DEFAULTS, .loss = DDP_MSE,
                                   .optimizer = r->optimizer, .batch = BATCH,
                                   .sub_batch = BATCH / LANES, .lanes = LANES,
                                   .order = DDP_IN_ORDER, .seed = 3,
                                   .ema_decay = 0.75, .checkpoint.dir = dir});
    if (!r->trainer)
        bail_out("%s", ddp_errmsg());
    trap.e = r->trainer->engine;
    if (trap.e->params->buckets != BUCKETS)
        bail_out("%d buckets, not %d", trap.e->params->buckets, BUCKETS);
}

static void end_run(struct run *r)
{
    ddp_trainer_free(r->trainer);
    ddp_dataset_free(r->data);
    ddp_chain_free(r->chain);
}

/* One, to its end. */
static int step(struct run *r, enum sprung sprung)
{
    trap.sprung = sprung;
    trap.passed = 0;
    trap.updated = -1;
    return ddp_trainer_step(r->trainer, &r->m);
}

/* ---- what is left of it ------------------------------------------------- */

/* Sums over all bytes of weights, averages and states. */
struct left {
    uint64_t weights, averages, states;
    double scaler[DDP__SCALER_STATE];
};

static void add_bytes(uint64_t *sum, const float *x, size_t len)
{
    const unsigned char *p = (const unsigned char *)x;

    for (size_t i = 0; i < len * sizeof(*x); i++)
        *sum = (*sum ^ p[i]) * 0x100000001b3u;
}

/* What of a bucket is trained: checkpoints leave out the gaps between. */
static void add_trained(uint64_t *sum, struct ddp__engine *e, int b,
                        struct ddp__handle *h)
{
    const struct ddp__updates *u = &e->updates[b];
    size_t len = e->params->bucket[b].len;
    const float *x = h->h ? ddp__handle_open(h, false, "test") : NULL;

    for (size_t at = 0; x && at < h->size / sizeof(*x); at += len)
        for (int i = 0; i < u->spans; i++)
            if (h != &e->state[b] || !u->span[i].running)
                add_bytes(sum, x + at + u->span[i].begin, u->span[i].len);
    if (x)
        ddp__handle_close(h);
}

static struct left look(const struct run *r)
{
    struct ddp__engine *e = r->trainer->engine;
    struct left l = {0, 0, 0, {0}};

    for (int b = 0; b < e->params->buckets; b++) {
        add_trained(&l.weights, e, b, &e->params->bucket[b].handle);
        add_trained(&l.averages, e, b, &e->ema->bucket[b].handle);
        add_trained(&l.states, e, b, &e->state[b]);
    }
    ddp__loss_scaler_get(e, l.scaler);
    return l;
}

static void same(const struct left *a, const struct left *b, const char *how)
{
    ok(a->weights == b->weights, "%s: the weights", how);
    ok(a->averages == b->averages, "%s: their averages", how);
    ok(a->states == b->states, "%s: the optimizer's state", how);
    ok(a->scaler[0] == b->scaler[0] && a->scaler[1] == b->scaler[1],
       "%s: updates and scale: %g and %g, %g and %g", how, a->scaler[0],
       b->scaler[0], a->scaler[1], b->scaler[1]);
}

/* ---- tests -------------------------------------------------------------- */

static struct left train_without(ddp_t *ddp, struct ddp_optimizer o, int steps)
{
    struct run r = {.optimizer = o};
    struct left l;

    start_run(ddp, &r, NULL);
    for (int i = 0; i < steps; i++)
        if (step(&r, NOT) < 0)
            bail_out("%s", ddp_errmsg());
    l = look(&r);
    end_run(&r);
    return l;
}

static void test_undo(ddp_t *ddp, struct ddp_optimizer o, const char *name)
{
    struct run r = {.optimizer = o, .bad = true};
    struct left want = train_without(ddp, o, BAD), has;
    int overlapped = 0;

    start_run(ddp, &r, NULL);
    for (int i = 0; i < BAD; i++) {
        step(&r, NOT);
        overlapped += trap.updated == BEFORE;
    }
    is_int(overlapped, BAD,
           "%s: %d of %d buckets are updated before the last gradient", name,
           BEFORE, BUCKETS);
    ok(step(&r, INFINITE) == 0 && r.m.skipped && trap.updated == BEFORE,
       "%s: so they are in a step that is not applied: %d", name, trap.updated);
    has = look(&r);
    same(&has, &want, name);
    for (int i = BAD + 1; i < STEPS; i++)
        step(&r, NOT);
    has = look(&r);
    want = train_without(ddp, o, STEPS - 1);
    same(&has, &want, "and after more steps");
    end_run(&r);
}

static void test_failure(ddp_t *ddp)
{
    struct ddp_optimizer o = ddp_adam(0.01f);
    struct run r = {.optimizer = o, .bad = true};
    struct left want = train_without(ddp, o, BAD), has;

    start_run(ddp, &r, NULL);
    for (int i = 0; i < BAD; i++)
        step(&r, NOT);
    ok(step(&r, FAILS) == DDP_EDEVICE && trap.updated == BEFORE,
       "a kernel fails after early updates: %s", ddp_errmsg());
    has = look(&r);
    same(&has, &want, "after a failure");
    ok(step(&r, NOT) == 0, "the step is made again");
    end_run(&r);
}

static void test_checkpoint(ddp_t *ddp)
{
    struct ddp_optimizer o = ddp_adamw(0.01f, 0.1f);
    struct run r = {.optimizer = o, .bad = true}, next = r;
    struct left want = train_without(ddp, o, STEPS - 1), has;

    start_run(ddp, &r, at("run"));
    for (int i = 0; i <= BAD; i++)
        step(&r, i == BAD ? INFINITE : NOT);
    ok(ddp_trainer_checkpoint(r.trainer) == 0, "a checkpoint right after");
    end_run(&r);
    start_run(ddp, &next, at("run"));
    ok(ddp_trainer_resume(next.trainer, at("run"), NULL) >= 0,
       "a run continues from it");
    for (int i = BAD + 1; i < STEPS; i++)
        step(&next, NOT);
    has = look(&next);
    same(&has, &want, "after the checkpoint");
    end_run(&next);
}

/* The same bits as with the barrier, which clipping asks for. */
static void test_same(void)
{
    struct ddp_optimizer o = ddp_momentum(0.05f, 0.9f), far = o;
    struct left l[2];
    ddp_t *ddp;

    far.clip_norm = 1e30f;
    for (int early = 0; early < 2; early++) {
        setenv("DDP_EARLY", early ? "1" : "0", 1);
        if (!(ddp = ddp_init(NULL)))
            bail_out("%s", ddp_errmsg());
        l[early] = train_without(ddp, o, STEPS - 1);
        if (early) {
            struct run r = {.optimizer = far};

            start_run(ddp, &r, NULL);
            ok(!trap.e->early, "with clipping updates wait");
            end_run(&r);
        }
        ddp_finish(ddp);
    }
    same(&l[1], &l[0], "with the barrier and without");
}

int main(void)
{
    const struct ddp_optimizer_info *info;
    struct ddp_optimizer ahead;
    ddp_t *ddp;

    setenv("STARPU_NCPU", "2", 1);
    setenv("DDP_SEGMENT_US", "0", 1); /* the trap is a task of its own */
    test_same();
    scratch_make();
    if (!(ddp = ddp_init(NULL)))
        bail_out("%s", ddp_errmsg());
    for (int kind = 0; (info = ddp_optimizer_info(kind)); kind++)
        test_undo(ddp, info->defaults, info->name);
    ahead = ddp_adam(0.01f);
    ahead.lookahead = 1;
    test_undo(ddp, ahead, "adam, lookahead");
    test_failure(ddp);
    test_checkpoint(ddp);
    ddp_finish(ddp);
    return done_testing();
}
