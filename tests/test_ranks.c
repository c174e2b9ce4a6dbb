/* test_ranks.c - 1, 2, 3, 4 and 8 ranks train to the same bits
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What one process computes alone is the oracle.  Messages between ranks are
 * late and overtake each other.
 */
#include "config.h"

#include <math.h>
#include <sched.h>

#include "copy_layer.h"
#include "cpu/backend.h"
#include "ddp.h"
#include "huge_loss.h"
#include "ranks_fork.h"
#include "sanitized.h"
#include "scratch.h"

enum { RANKS = 8, SIDE = 6, CHANNELS = 3, CLASSES = 5 };

/* Steps of 12, 12 and 5 sub-batches: in the last one of an epoch some ranks
 * have none. */
enum { COUNT = 58, EVAL = 21, SUB = 2, BATCH = 24, BAD = 7 };

/* ---- runs --------------------------------------------------------------- */

static const struct row {
    const char *what;
    int lanes;
    enum ddp_dtype dtype, wire;
    bool shard, sync_bn, bad; /* bad: a sample is not finite */
    bool slow;                /* backward on some ranks */
    bool clipped;             /* the step needs the norm of all gradients */
    bool spot; /* few gradients are not finite: one rank has their sums */
    bool even; /* buckets that two ranks divide into halves */
    bool huge; /* a sum overflows when it is rounded */
    int skips; /* steps that are not applied, of 6 */
    double mixup;
} row[] = {
    {"8 lanes", .lanes = 8},
    {"12 lanes, which 8 do not divide", .lanes = 12},
    {"11 lanes, bf16", .lanes = 11, .dtype = DDP_BF16},
    {"9 lanes, f16 with a loss scale", .lanes = 9, .dtype = DDP_F16,
     .skips = 1},
    {"mixed samples", .lanes = 12, .mixup = 0.4},
    {"a sample that is not finite", .lanes = 12, .bad = true, .skips = 2},
    {"f16, and such a sample", .lanes = 8, .dtype = DDP_F16, .bad = true,
     .skips = 2},
    {"a divided optimizer", .lanes = 12, .shard = true},
    {"a divided optimizer, bf16", .lanes = 9, .dtype = DDP_BF16, .shard = true},
    {"even buckets", .lanes = 12, .even = true},
    {"even buckets, values that are not finite", .lanes = 8, .dtype = DDP_F16,
     .bad = true, .even = true, .skips = 2},
    {"an evenly divided optimizer", .lanes = 12, .shard = true, .even = true},
    {"the same, f16, and a sample that is not finite", .lanes = 8,
     .dtype = DDP_F16, .bad = true, .shard = true, .even = true, .skips = 2},
    {"the same, sums in bf16", .lanes = 12, .wire = DDP_BF16, .shard = true,
     .even = true},
    {"batch norm over all", .lanes = 12, .sync_bn = true},
    {"sums in bf16", .lanes = 12, .wire = DDP_BF16},
    {"a sum that bf16 cannot hold", .lanes = 12, .wire = DDP_BF16, .huge = true,
     .skips = 2},
    {"a slow kernel before the sum", .lanes = 12, .slow = true},
    {"gradients of one class that are not finite", .lanes = 12, .spot = true,
     .skips = 2},
    {"12 lanes, clipped", .lanes = 12, .clipped = true},
    {"f16, clipped, and such a sample", .lanes = 8, .dtype = DDP_F16,
     .bad = true, .clipped = true, .skips = 2},
    {"a divided optimizer, clipped", .lanes = 12, .shard = true,
     .clipped = true},
    {"a slow kernel, clipped, sums in bf16", .lanes = 12, .wire = DDP_BF16,
     .slow = true, .clipped = true},
};
enum { ROWS = sizeof(row) / sizeof(row[0]) };

struct result {
    int code;
    char why[256];
    uint32_t weights;
    int64_t steps, skipped;
    double norms; /* of the gradients of all steps that were applied */
    struct ddp_metrics now, average; /* of evaluations */
};

/* By rank; shared. */
static struct result (*results)[ROWS];
static cpu_set_t *cores; /* that its worker may run on */
static int this_rank;

/* Augmentation is a shift of all values. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    const struct row *r = arg;
    float *x = s->x, shift = (float)(key % 64) / 64;

    for (int i = 0; i < SIDE * SIDE * CHANNELS; i++)
        x[i] = sinf((float)(index * 37 + i * (index % 5 + 1))) + shift;
    if (r->bad && index == BAD)
        x[0] = NAN;
    sched_getaffinity(0, sizeof(*cores), &cores[this_rank]);
    s->label = (int32_t)(index % CLASSES);
    if (r->spot)
        s->label = index == BAD ? CLASSES - 1 : s->label % (CLASSES - 1);
    if (r->huge) /* in lanes 0 and 8, which are merged last */
        s->label = index == 0 ? HUGE_FIRST : index == 16 ? HUGE_SECOND : 0;
    if (r->huge && s->label) /* that of the bias alone */
        memset(x, 0, sizeof(*x) * SIDE * SIDE * CHANNELS);
    return 0;
}

static ddp_dataset_t *samples(const struct row *r, int64_t count)
{
    return ddp_dataset_callback(
        &(struct ddp_source){.count = count,
                             .shape = {SIDE, SIDE, CHANNELS},
                             .classes = CLASSES,
                             .get = get,
                             .arg = (void *)r});
}

/* On other ranks than that of the oracle, before it writes what gradients come
 * from: sums that began too early would be wrong. */
static int be_late(bool backward)
{
    if (backward && this_rank % 2 == 1)
        usleep(3000);
    return 0;
}

static ddp_chain_t *slow_network(void)
{
    copy_hook = be_late;
    return ddp_chain_new(
        ddp_flatten_new(), ddp_dense_new(SIDE * SIDE * CHANNELS, 16, NULL),
        copy_layer_new(), ddp_dense_new(16, CLASSES, NULL), DDP_END);
}

/* Cross entropy would make all gradients of a layer NaN at once.  Here a sample
 * of the last class has this effect on the weights of the third one alone. */
static double spot_loss(const float *x, const void *target, const float *weight,
                        int n, int len, float *dx, void *arg)
{
    const int32_t *label = target;

    (void)weight;
    (void)arg;
    for (int i = 0; i < n * len && dx; i++)
        dx[i] = label[i / len] == CLASSES - 1 && i % len == 2 ? INFINITY
                                                              : 0.01f * x[i];
    return n;
}

/* Buckets of 4, 2, 1 and 1 of the large layers. */
static ddp_chain_t *even_network(void)
{
    enum { WIDTH = 512 };
    ddp_chain_t *c = ddp_chain_new(
        ddp_flatten_new(), ddp_dense_new(SIDE * SIDE * CHANNELS, WIDTH, NULL),
        DDP_END);

    for (int i = 0; i < 8; i++) {
        ddp_chain_add(c, ddp_relu_new());
        ddp_chain_add(c, ddp_dense_new(WIDTH, WIDTH, NULL));
    }
    ddp_chain_add(c, ddp_dense_new(WIDTH, CLASSES, NULL));
    return c;
}

static ddp_chain_t *network(const struct row *r)
{
    if (r->even)
        return even_network();
    if (r->slow)
        return slow_network();
    if (r->spot || r->huge)
        return ddp_chain_new(
            ddp_flatten_new(),
            ddp_dense_new(SIDE * SIDE * CHANNELS, CLASSES, NULL), DDP_END);
    return ddp_chain_new(
        ddp_conv_new(CHANNELS, 8, 3, NULL), ddp_batch_norm_new(8, NULL),
        ddp_relu_new(), ddp_conv_new(8, 16, 3, NULL),
        ddp_batch_norm_new(16, NULL), ddp_relu_new(), ddp_dropout_new(0.2f),
        ddp_flatten_new(), ddp_dense_new(64, CLASSES, NULL), DDP_END);
}

static struct ddp_train_config config(const struct row *r)
{
    struct ddp_train_config cfg;

    ddp_train_config_init(&cfg);
    cfg.optimizer =
        r->shard ? ddp_adamw(0.01f, 0.1f) : ddp_momentum(0.05f, 0.9f);
    if (r->clipped)
        cfg.optimizer.clip_norm = 1;
    if (r->shard) {
        cfg.optimizer.lookahead = 3;
        cfg.optimizer.clip_unit = 0.02f;
    }
    if (r->spot) {
        cfg.loss = DDP_CUSTOM_LOSS;
        cfg.loss_fn = spot_loss;
    }
    if (r->huge) {
        cfg.loss = DDP_CUSTOM_LOSS;
        cfg.loss_fn = huge_loss;
        cfg.order = DDP_IN_ORDER;
    }
    cfg.batch = BATCH;
    cfg.sub_batch = SUB;
    cfg.lanes = r->lanes;
    cfg.epochs = 2;
    cfg.dtype = r->dtype;
    cfg.wire = r->wire;
    cfg.ema_decay = 0.9;
    cfg.shard_optimizer = r->shard;
    cfg.sync_bn = r->sync_bn;
    cfg.mixup = r->mixup;
    return cfg;
}

static int add_norm(const struct ddp_progress *p, void *arg)
{
    if (!p->now.skipped)
        *(double *)arg += p->gradient_norm;
    return 0;
}

static int train(ddp_t *ddp, const struct row *r, struct result *out)
{
    struct ddp_train_config cfg = config(r);
    ddp_dataset_t *data = samples(r, COUNT), *eval = samples(r, EVAL);
    ddp_chain_t *c = network(r);
    struct ddp_skips skips = {0};
    ddp_trainer_t *t;
    int rc;

    cfg.on_step = add_norm;
    cfg.arg = &out->norms;
    t = ddp_trainer_new(ddp, c, data, &cfg);
    rc = t ? ddp_trainer_train(t) : ddp_errcode();
    if (rc == 0)
        rc = ddp_trainer_evaluate(t, eval, &out->now);
    if (rc == 0)
        rc = ddp_trainer_evaluate_ema(t, eval, &out->average);
    if (rc == 0)
        rc = ddp_chain_checksum(c, &out->weights);
    if (rc == 0)
        rc = ddp_trainer_skips(t, &skips);
    out->skipped = skips.steps;
    out->steps = t ? ddp_trainer_steps(t) : 0;
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_dataset_free(eval);
    ddp_chain_free(c);
    return rc;
}

/* ---- a rank that wants to stop ------------------------------------------ */

static int stopping;        /* which one */
static int64_t stop_after;  /* steps of the run */
static const char *run_dir; /* of checkpoints; NULL: none */

static int want_stop(const struct ddp_progress *p, void *arg)
{
    (void)arg;
    return this_rank == stopping && p->step >= stop_after;
}

/* All stop after the same step, which one rank alone has asked for, or end. */
static int stop(ddp_t *ddp, struct result *out)
{
    struct ddp_train_config cfg = config(&row[1]);
    ddp_dataset_t *data = samples(&row[1], COUNT);
    ddp_chain_t *c = network(&row[1]);
    ddp_trainer_t *t;
    int rc;

    cfg.on_step = want_stop;
    cfg.epochs = 8;
    cfg.checkpoint.dir = run_dir;
    t = ddp_trainer_new(ddp, c, data, &cfg);
    rc = !t ? ddp_errcode() : run_dir ? ddp_trainer_resume(t, NULL, NULL) : 0;
    if (rc >= 0)
        rc = ddp_trainer_train(t);
    out->steps = t ? ddp_trainer_steps(t) : 0;
    if (rc == DDP_ESTOPPED || rc == 0)
        rc = ddp_chain_checksum(c, &out->weights);
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(c);
    return rc;
}

static int run_stops(int rank)
{
    ddp_t *ddp = ddp_init(NULL);
    int count = ddp ? ddp_rank_count(ddp) : 0;

    this_rank = rank;
    for (stopping = 0; stopping < count; stopping++) {
        struct result *r = &results[rank][stopping];

        if ((r->code = stop(ddp, r)) < 0)
            snprintf(r->why, sizeof(r->why), "%s", ddp_errmsg());
    }
    ddp_finish(ddp);
    return !ddp;
}

static int run_once(int rank)
{
    ddp_t *ddp = ddp_init(NULL);
    struct result *r = &results[rank][0];

    this_rank = rank;
    r->code = ddp ? stop(ddp, r) : ddp_errcode();
    if (r->code < 0)
        snprintf(r->why, sizeof(r->why), "%s", ddp_errmsg());
    ddp_finish(ddp);
    return r->code < 0;
}

/* ---- all runs ----------------------------------------------------------- */

static const char *backend;

/* "ref" has the rows of types in which this processor does not compute. */
static bool is_here(const struct row *r)
{
    bool computes = r->dtype == DDP_F32 || ddp__cpu.computes(r->dtype);

    return computes == !strcmp(backend, "cpu");
}

static int run_rank(int rank)
{
    struct ddp_config cfg;
    ddp_t *ddp;

    this_rank = rank;
    ddp_config_init(&cfg);
    cfg.backend = backend;
    ddp = ddp_init(&cfg);
    for (int i = 0; ddp && i < ROWS; i++) {
        struct result *r = &results[rank][i];

        if (is_here(&row[i]) && (r->code = train(ddp, &row[i], r)) < 0)
            snprintf(r->why, sizeof(r->why), "%s", ddp_errmsg());
    }
    if (!ddp)
        fprintf(stderr, "%s\n", ddp_errmsg());
    ddp_finish(ddp);
    return !ddp;
}

/* ---- their comparison --------------------------------------------------- */

/* The loss may be a NaN. */
static bool same_metrics(const struct ddp_metrics *a,
                         const struct ddp_metrics *b)
{
    return a->samples == b->samples && !memcmp(&a->loss, &b->loss, 8) &&
           a->top1 == b->top1 && a->top5 == b->top5;
}

static bool are_same(const struct result *a, const struct result *b)
{
    return a->code == 0 && b->code == 0 && a->weights == b->weights &&
           a->steps == b->steps && a->skipped == b->skipped &&
           a->norms == b->norms && same_metrics(&a->now, &b->now) &&
           same_metrics(&a->average, &b->average);
}

static void show(int rank, const struct result *r)
{
    diag("rank %d: weights %08x, %d steps, %d skipped, norms %.17g, loss %.17g "
         "and %.17g %s",
         rank, r->weights, (int)r->steps, (int)r->skipped, r->norms,
         r->now.loss, r->average.loss, r->why);
}

static bool run_ranks(int count, int (*run)(int rank))
{
    struct fork_ranks f;
    bool good = true;

    fork_start(&f, count, run);
    for (int r = 0; r < count; r++)
        good &= fork_code(&f, r) == 0;
    return good;
}

static bool run_rows(int count)
{
    bool good = true;

    memset(results, 0, RANKS * sizeof(*results));
    backend = "ref";
    good &= run_ranks(count, run_rank);
    backend = "cpu";
    return good & run_ranks(count, run_rank);
}

/* Alone: that training does something, so that bits can differ. */
static void check_alone(const struct result *want)
{
    int wrong = 0;

    for (int i = 0; i < ROWS; i++) {
        const struct result *r = &want[i];
        bool good = r->code == 0 && r->steps == 6 &&
                    r->skipped == row[i].skips && r->norms > 0 &&
                    r->now.samples == EVAL;

        wrong += !good;
        if (!good)
            show(0, r);
        for (int k = 0; k < i; k++)
            wrong += r->weights == want[k].weights;
    }
    is_int(wrong, 0, "one process: %d runs, each with other weights", ROWS);
}

static void compare(int count, int i, const struct result *want,
                    const char *where)
{
    bool good = true;

    for (int r = 0; r < count; r++)
        good &= are_same(&results[r][i], want);
    ok(good, "%d ranks%s: %s", count, where, row[i].what);
    if (good)
        return;
    show(-1, want);
    for (int r = 0; r < count; r++)
        show(r, &results[r][i]);
}

/* With more ranks than cores none is bound to one. */
static void check_cores(int count)
{
    int there = ddp_core_count(), bound = 0;
    bool apart = true;

    for (int a = 0; a < count; a++)
        bound += CPU_COUNT(&cores[a]) < there;
    for (int a = 0; a < count; a++)
        for (int b = 0; b < a; b++) {
            cpu_set_t both;

            CPU_AND(&both, &cores[a], &cores[b]);
            apart &= CPU_COUNT(&both) == 0;
        }
    ok(count <= there ? apart : bound < count,
       "%d ranks are not bound to the same cores", count);
}

/* Steps that were submitted before all had heard of it end, too. */
static void test_stops(void)
{
    enum { THREE = 3 };
    bool good;

    stop_after = 2;
    memset(results, 0, RANKS * sizeof(*results));
    good = run_ranks(THREE, run_stops);

    for (int i = 0; i < THREE; i++)
        for (int r = 0; r < THREE; r++) {
            good &= are_same(&results[r][i], &results[0][i]) &&
                    results[r][i].steps >= 2 && results[r][i].steps < 8;
            if (!good)
                show(r, &results[r][i]);
        }
    ok(good, "any rank's wish stops all after the same step");
}

/* A run of one process, and one that others carry on, each for some steps. */
static void test_numbers(void)
{
    static const int counts[] = {3, 2, 8, 1, 4};
    enum { COUNTS = sizeof(counts) / sizeof(counts[0]), END = 24 };
    struct result want;
    bool good;

    stopping = 0;
    stop_after = END;
    good = run_ranks(1, run_once);
    want = results[0][0];
    run_dir = at("run");
    for (int i = 0; i < COUNTS; i++) {
        stop_after = (i + 1) * END / COUNTS;
        good &= run_ranks(counts[i], run_once);
        diag("%d ranks: to step %d", counts[i], (int)results[0][0].steps);
    }
    ok(good && are_same(&results[0][0], &want),
       "3, 2, 8, 1 and 4 ranks go on with each other's checkpoints");
}

int main(void)
{
    static const int counts[] = {2, 3, 4, 8};
    int tried = SANITIZED_ADDRESSES ? 2 : sizeof(counts) / sizeof(*counts);
    struct result want[ROWS];

    scratch_make();
    results = fork_memory(RANKS * sizeof(*results));
    cores = fork_memory(RANKS * sizeof(*cores));
    ok(run_rows(1), "one process ends well");
    memcpy(want, results[0], sizeof(want));
    check_alone(want);
    for (int n = 0; n < tried; n++) {
        ok(run_rows(counts[n]), "%d ranks end well", counts[n]);
        check_cores(counts[n]);
        for (int i = 0; i < ROWS; i++)
            compare(counts[n], i, &want[i], "");
    }
    setenv("TEST_WIRE_HOSTS", "1", 1);
    ok(run_rows(3), "3 ranks on 3 hosts end well");
    for (int i = 0; i < ROWS; i++)
        compare(3, i, &want[i], " on 3 hosts");
    unsetenv("TEST_WIRE_HOSTS");
    test_stops();
    test_numbers();
    return done_testing();
}
