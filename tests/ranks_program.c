/* ranks_program.c - what ranks compute together, for app_ranks.sh
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ranks_check.h"

enum { LEN = 300000 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ranks are numbered, and take turns as for output in order, which the clock of
 * their host shows. */
static void test_start(void)
{
    int32_t sum = rank;
    double turn = 0, last = 0;
    bool good = rank >= 0 && rank < ranks && ddp_local_rank(ddp) == rank &&
                ddp_allreduce(ddp, &sum, 1, DDP_I32, DDP_SUM) == 0 &&
                sum == ranks * (ranks - 1) / 2;

    check(good, "each rank has a number of its own");
    for (int r = 0; r < ranks; r++) {
        if (r == rank)
            turn = now();
        good &= ddp_barrier(ddp) == 0;
    }
    for (int r = 0; r < ranks; r++) {
        double t = turn;

        good &= ddp_bcast(ddp, &t, sizeof(t), r) == 0 && t > last;
        last = t;
    }
    check(good, "one after another");
}

static void test_sums(void)
{
    static float x[LEN];
    static double d[512];
    int64_t i[3] = {rank + 1, -rank, 1};
    float least = (float)-rank, most = (float)rank, product = 2;
    bool good = true;

    for (int k = 0; k < LEN; k++)
        x[k] = (float)(k % 7 + rank);
    for (int k = 0; k < 512; k++)
        d[k] = rank + 1;
    good = ddp_allreduce(ddp, x, LEN, DDP_F32, DDP_SUM) == 0;
    for (int k = 0; k < LEN; k++)
        good &= x[k] == (float)(k % 7 * ranks + ranks * (ranks - 1) / 2);
    check(good, "a sum of floats");
    good = ddp_allreduce(ddp, d, 512, DDP_F64, DDP_MEAN) == 0;
    for (int k = 0; k < 512; k++)
        good &= fabs(d[k] - (ranks + 1) / 2.0) < 1e-12;
    check(good, "a mean of doubles");
    check(ddp_allreduce(ddp, i, 3, DDP_I64, DDP_SUM) == 0 &&
              i[0] == ranks * (ranks + 1) / 2 &&
              i[1] == -ranks * (ranks - 1) / 2 && i[2] == ranks,
          "a sum of integers");
    check(ddp_allreduce(ddp, &least, 1, DDP_F32, DDP_MIN) == 0 &&
              least == (float)(1 - ranks),
          "a minimum");
    check(ddp_allreduce(ddp, &most, 1, DDP_F32, DDP_MAX) == 0 &&
              most == (float)(ranks - 1),
          "a maximum");
    check(ddp_allreduce(ddp, &product, 1, DDP_F32, DDP_PROD) == 0 &&
              product == ldexpf(1, ranks),
          "a product");
    check(ddp_allreduce(ddp, &most, 1, DDP_BF16, DDP_SUM) == DDP_EINVAL &&
              ddp_allreduce(ddp, i, 1, DDP_I64, DDP_MEAN) == DDP_EINVAL,
          "types that are not reduced");
}

static void test_root(void)
{
    char word[8] = "";
    float x = (float)(rank + 1);

    if (rank == ranks - 1)
        strcpy(word, "root");
    check(ddp_bcast(ddp, word, sizeof(word), ranks - 1) == 0 &&
              !strcmp(word, "root"),
          "a broadcast");
    check(ddp_reduce(ddp, &x, 1, DDP_F32, DDP_SUM, ranks - 1) == 0 &&
              x == (float)(rank == ranks - 1 ? ranks * (ranks + 1) / 2
                                             : rank + 1),
          "a reduction to one rank, whose others keep theirs");
    check(ddp_bcast(ddp, word, 1, ranks) == DDP_EINVAL, "no such root");
    check(ddp_barrier(ddp) == 0, "a barrier");
}

/* FluxMPI's tests: 512 doubles, rank + 1 each, from one place to another. */
static void test_other_place(void)
{
    enum { COUNT = 512 };
    static double from[COUNT], to[COUNT];
    int32_t few[3] = {rank, rank + 1, -7};
    double *only = rank == ranks - 1 ? to : NULL;
    double sum = ranks * (ranks + 1) / 2.0;
    bool good;

    for (int i = 0; i < COUNT; i++)
        from[i] = rank + 1;
    good = ddp_allreduce_to(ddp, from, to, COUNT, DDP_F64, DDP_SUM) == 0;
    for (int i = 0; i < COUNT; i++)
        good &= to[i] == sum && from[i] == rank + 1;
    check(good, "a sum in another place");
    good = ddp_allreduce_to(ddp, from, to, COUNT, DDP_F64, DDP_MEAN) == 0;
    for (int i = 0; i < COUNT; i++)
        good &= fabs(to[i] - (ranks + 1) / 2.0) < 1e-12;
    check(good, "a mean");
    good =
        ddp_reduce_to(ddp, from, only, COUNT, DDP_F64, DDP_SUM, ranks - 1) == 0;
    for (int i = 0; i < COUNT; i++)
        good &= from[i] == rank + 1 && (!only || to[i] == sum);
    check(good, "a reduction, whose place only the root has");
    good =
        ddp_bcast_to(ddp, only ? from : NULL, to, sizeof(to), ranks - 1) == 0;
    for (int i = 0; i < COUNT; i++)
        good &= to[i] == ranks && from[i] == rank + 1;
    check(good, "a broadcast of what only the root has");
    good = ddp_allreduce_to(ddp, few, few + 1, 2, DDP_I32, DDP_SUM) == 0;
    check(good && few[0] == rank && few[1] == ranks * (ranks - 1) / 2 &&
              few[2] == ranks * (ranks + 1) / 2,
          "integers, to a place that overlaps");
}

/* Every choice of those who take part. */
static void test_optional(void)
{
    bool good = true;

    for (int mask = 0; mask < 1 << ranks; mask++) {
        int parts = -1, count = 0, sum = 0;
        float x = (float)(rank + 1), mean = x;

        for (int r = 0; r < ranks; r++)
            if (mask >> r & 1) {
                count++;
                sum += r + 1;
            }
        good &= ddp_allreduce_optional(ddp, &x, 1, DDP_F32, DDP_SUM,
                                       mask >> rank & 1, &parts) == 0 &&
                parts == count && x == (float)(count ? sum : rank + 1);
        good &= ddp_allreduce_optional(ddp, &mean, 1, DDP_F32, DDP_MEAN,
                                       mask >> rank & 1, &parts) == 0 &&
                (!count || fabsf(mean - (float)sum / (float)count) < 1e-6f);
    }
    check(good, "sums of those who take part");
}

static void test_requests(void)
{
    static float x[3][LEN];
    ddp_request_t *r[3];
    bool good = true, done = false;

    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < LEN; i++)
            x[k][i] = (float)(k + 1);
        good &= (r[k] = ddp_allreduce_begin(ddp, x[k], LEN, DDP_F32,
                                            DDP_SUM)) != NULL;
    }
    while (good && !done)
        good &= ddp_request_test(r[0], &done) == 0;
    for (int k = 0; good && k < 3; k++)
        good &= ddp_request_wait(r[k]) == 0 &&
                x[k][0] == (float)(ranks * (k + 1)) && x[k][LEN - 1] == x[k][0];
    check(good, "three requests at a time");
}

/* 2 x 3 numbers, as FluxMPI's tests have them, and none at all. */
static void test_begin(void)
{
    float x[6];
    ddp_request_t *r, *none;
    bool good;

    for (int i = 0; i < 6; i++)
        x[i] = (float)(rank == ranks - 1 ? i : -1);
    r = ddp_bcast_begin(ddp, x, sizeof(x), ranks - 1);
    none = ddp_bcast_begin(ddp, NULL, 0, 0);
    good = ddp_request_wait(none) == 0 && ddp_request_wait(r) == 0;
    for (int i = 0; i < 6; i++)
        good &= x[i] == (float)i;
    check(good, "a broadcast while the program runs");
    check(!ddp_bcast_begin(ddp, x, sizeof(x), ranks), "no such root");
}

/* Layers in layers, with statistics. */
static ddp_chain_t *nested_chain(void)
{
    return ddp_chain_new(
        ddp_dense_new(4, 3, NULL),
        ddp_chain_new(
            ddp_skip_new(ddp_chain_new(ddp_dense_new(3, 3, NULL),
                                       ddp_batch_norm_new(3, NULL), DDP_END),
                         DDP_END),
            ddp_relu_new(), DDP_END),
        DDP_END);
}

/* Whether all have what the root had before. */
static bool sync_chain(ddp_chain_t *c, int root)
{
    uint32_t before = 0, after = 0;

    return ddp_chain_init(c, (uint64_t)rank) == 0 &&
           ddp_chain_checksum(c, &before) == 0 &&
           ddp_bcast(ddp, &before, sizeof(before), root) == 0 &&
           ddp_chain_sync(ddp, c, root) == 0 &&
           ddp_chain_checksum(c, &after) == 0 && before == after;
}

static void test_chain(void)
{
    ddp_chain_t *c = nested_chain();
    ddp_chain_t *empty = ddp_chain_new(ddp_relu_new(), DDP_END);
    ddp_chain_t *other =
        ddp_chain_new(ddp_dense_new(4, rank == 0 ? 3 : 5, NULL), DDP_END);
    int32_t number = rank;

    check(sync_chain(c, 0) && sync_chain(c, ranks - 1),
          "weights of one rank on all, in layers of layers");
    check(sync_chain(empty, ranks - 1), "a network without weights");
    check(ddp_bcast(ddp, &number, sizeof(number), ranks - 1) == 0 &&
              number == ranks - 1,
          "a number");
    check(ranks == 1 || ddp_chain_sync(ddp, other, 0) == DDP_EINVAL,
          "another network");
    ddp_chain_free(c);
    ddp_chain_free(empty);
    ddp_chain_free(other);
}

/* ---- training ----------------------------------------------------------- */

enum { SAMPLES = 48, STEPS = 12 };

static const char *fault; /* what becomes of rank 1 in mid-run, or NULL */
static cpu_set_t cores;   /* that workers may run on */

static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    float *x = s->x;
    (void)arg;
    (void)key;

    sched_getaffinity(0, sizeof(cores), &cores);
    if (fault && rank == 1 && index > SAMPLES / 2) {
        if (!strcmp(fault, "hang"))
            pause();
        raise(!strcmp(fault, "stop") ? SIGSTOP : SIGKILL);
    }
    for (int i = 0; i < 4; i++)
        x[i] = (float)((index * (i + 3)) % 7);
    s->label = (int32_t)(index % 3);
    return 0;
}

static ddp_dataset_t *data;
static ddp_chain_t *net;

static double rate = 1; /* what the program makes of the learning rate */

static double adjusted(int64_t step, double epoch, double epochs, void *arg)
{
    (void)step;
    (void)epoch;
    (void)epochs;
    return *(double *)arg;
}

static ddp_trainer_t *make_trainer_by(struct ddp_optimizer by, int64_t steps)
{
    struct ddp_source source = {
        .count = SAMPLES, .shape = {1, 1, 4}, .classes = 3, .get = get};
    struct ddp_train_config cfg;

    data = ddp_dataset_callback(&source);
    net = ddp_chain_new(ddp_dense_new(4, 3, NULL), DDP_END);
    ddp_train_config_init(&cfg);
    cfg.optimizer = by;
    cfg.schedule = (struct ddp_schedule){
        .kind = DDP_CUSTOM_SCHEDULE, .fn = adjusted, .arg = &rate};
    cfg.ema_decay = 0.5;
    cfg.sub_batch = 1;
    cfg.lanes = 4;
    cfg.steps = steps;
    cfg.order = DDP_IN_ORDER;
    return ddp_trainer_new(ddp, net, data, &cfg);
}

static ddp_trainer_t *make_trainer(int64_t steps)
{
    return make_trainer_by(ddp_adam(0.01f), steps);
}

static void free_trainer(ddp_trainer_t *t)
{
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
}

static int train(int64_t steps)
{
    ddp_trainer_t *t = make_trainer(steps);
    int rc = t ? ddp_trainer_train(t) : ddp_errcode();

    free_trainer(t);
    return rc;
}

/* With as many cores as ranks, and a worker each. */
static void test_places(void)
{
    int32_t ranks_of[CPU_SETSIZE];
    bool good = train(STEPS) == 0;

    for (int i = 0; i < CPU_SETSIZE; i++)
        ranks_of[i] = CPU_ISSET(i, &cores);
    good &= ddp_allreduce(ddp, ranks_of, CPU_SETSIZE, DDP_I32, DDP_SUM) == 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        good &= ranks_of[i] <= 1;
    check(good, "no two ranks are bound to the same core");
}

/* Whether all ranks have the same weights and averages; and those of the root
 * before. */
static bool are_equal(ddp_trainer_t *t, const float *root)
{
    float w[24], other[24];

    if (ddp_chain_get(net, "0.weight", w, 12) < 0 ||
        ddp_trainer_ema_get(t, "0.weight", w + 12, 12) < 0)
        return false;
    memcpy(other, w, sizeof(w));
    return ddp_bcast(ddp, other, sizeof(other), 0) == 0 &&
           memcmp(other, w, sizeof(w)) == 0 &&
           (!root || rank < ranks - 1 || memcmp(root, w, 12 * 4) == 0);
}

/* Ranks that have gone apart by an update with other gradients. */
static void test_sync(struct ddp_optimizer by)
{
    ddp_trainer_t *t = make_trainer_by(by, 100);
    float g[12], w[12];
    bool good =
        ddp_trainer_step(t, NULL) == 0 && ddp_trainer_gradients(t, NULL) == 0;

    for (int i = 0; i < 12; i++)
        g[i] = (float)(i * rank);
    good &= ddp_trainer_set_gradient(t, "0.weight", g, 12) == 0 &&
            ddp_trainer_update(t) == 0 &&
            (rank < ranks - 1 || ddp_trainer_sync(t, ranks) == DDP_EINVAL) &&
            ddp_chain_get(net, "0.weight", w, 12) == 0;
    check(good && are_equal(t, NULL) == (rank == 0), "ranks that differ");
    check(ddp_trainer_sync(t, ranks - 1) == 0 && are_equal(t, w),
          "continue with the weights and averages of the last");
    good = ddp_trainer_step(t, NULL) == 0 && ddp_trainer_step(t, NULL) == 0 &&
           ddp_trainer_wait(t) == 0 && ddp_trainer_steps(t) == 4;
    check(good && are_equal(t, NULL), "and with its optimizer's state, if any");
    free_trainer(t);
}

/* ---- gradients of the program ------------------------------------------- */

static int fill_ones(const char *name, float *g, size_t len, void *arg)
{
    (void)name;
    for (size_t i = 0; i < len; i++)
        g[i] = *(float *)arg;
    return 0;
}

static int refuse(const char *name, float *g, size_t len, void *arg)
{
    (void)name;
    (void)g;
    (void)len;
    (void)arg;
    return rank == ranks - 1 ? DDP_EDATA : 0;
}

/* An update of Adam by its definition; the state is 0 before the first. */
static double adam(double w, double state[2], int update, double g, double lr)
{
    state[0] = 0.9 * state[0] + 0.1 * g;
    state[1] = 0.999 * state[1] + 0.001 * g * g;
    return w - lr * (state[0] / (1 - pow(0.9, update))) /
                   (sqrt(state[1] / (1 - pow(0.999, update))) + 1e-8);
}

/* The sum of ones is the number of ranks, their mean 1.  Two updates, the
 * second with another rate. */
static bool is_adam(const float *before, const float *after)
{
    double mean = ranks * (ranks - 1) / 2.0 / ranks;
    bool good = true;

    for (int i = 0; i < 12; i++) {
        double state[2] = {0}, w = adam(before[i], state, 1, ranks, 0.01);

        w = adam(w, state, 2, mean, 0.002);
        good &= fabs(after[i] - w) < 1e-6;
    }
    return good;
}

static void test_apply(void)
{
    ddp_trainer_t *t = make_trainer(100);
    float before[12], after[12], one = 1, own = (float)rank;
    bool good = ddp_chain_get(net, "0.weight", before, 12) == 0 &&
                ddp_trainer_apply(t, fill_ones, &one, 1.0 / ranks) == 1;

    rate = 0.2;
    check(good && ddp_trainer_apply(t, fill_ones, &own, 1) == 1 &&
              ddp_trainer_steps(t) == 2 && are_equal(t, NULL),
          "steps with gradients of the program");
    check(ddp_chain_get(net, "0.weight", after, 12) == 0 &&
              is_adam(before, after),
          "do what Adam does with their sum, their mean and another rate");
    check(ddp_trainer_apply(t, refuse, NULL, 1) == DDP_EDATA &&
              ddp_trainer_apply(t, NULL, NULL, 0) == 0 &&
              ddp_trainer_steps(t) == 2,
          "a rank that cannot, or none that takes part: no step");
    good = ddp_trainer_apply(t, fill_ones, &own, rank == ranks - 1) == 1 &&
           ddp_trainer_step(t, NULL) == 0 && ddp_trainer_wait(t) == 0;
    check(good && are_equal(t, NULL), "one takes part, and training continues");
    free_trainer(t);
    rate = 1;
}

static void test_network(void)
{
    double one = -1, many = -1;

    check(ddp_ranks_measure(ddp, 1, 5, &one) == 0 &&
              ddp_ranks_measure(ddp, 4 << 20, 5, &many) == 0 &&
              (ranks == 1 ? one == 0 && many == 0 : one > 0 && many > 0),
          "small and large messages take some time");
    check(ddp_ranks_measure(ddp, 0, 1, &one) == DDP_EINVAL,
          "but not empty ones");
    check((ddp_ranks_describe(ddp)[0] == 0) == (ranks == 1),
          "what carries them has a name");
}

static void test_status(void)
{
    bool good = train(STEPS) == 0;

    usleep(1200000);
    for (int r = 0; r < ranks; r++) {
        struct ddp_rank_status s;

        good &= ddp_ranks_status(ddp, r, &s) == 0 && s.host[0] &&
                s.phase == DDP_PHASE_PROGRAM && s.step == STEPS && s.loss > 0 &&
                s.phase_s > 0.2 && s.step_s > 0 && s.wait_share >= 0 &&
                s.wait_share <= 1 && s.silent_s < 2;
    }
    check(good, "what each rank does");
    check(ddp_ranks_status(ddp, ranks, &(struct ddp_rank_status){.step = 0}) ==
              DDP_EINVAL,
          "of no other");
}

/* ---- ranks that are lost ------------------------------------------------ */

static void note_lost(const char *why, void *arg)
{
    (void)arg;
    fprintf(stderr, "lost: %s\n", why);
}

static int lose_rank(void)
{
    int rc = train(1000);

    fprintf(stderr, "rank %d: code %d, %s\n", rank, rc, ddp_errmsg());
    ddp_finish(ddp);
    return rc == DDP_EPEER ? 76 : 1;
}

int main(int argc, char **argv)
{
    struct ddp_config cfg;

    bool places = argc > 1 && !strcmp(argv[1], "places");

    ddp_config_init(&cfg);
    if (argc > 1 && !places) {
        fault = argv[1];
        cfg.peer_timeout = 3;
        cfg.on_peer_lost = note_lost;
    }
    if (!begin_ranks(&cfg))
        return ddp_errcode() == DDP_EPEER ? 76 : 1;
    if (fault)
        return lose_rank();
    if (places) {
        test_places();
        return end_ranks();
    }
    test_start();
    test_sums();
    test_root();
    test_other_place();
    test_optional();
    test_requests();
    test_begin();
    test_chain();
    test_network();
    test_status();
    test_sync(ddp_adam(0.01f));
    test_sync(ddp_sgd(0.01f));
    test_apply();
    return end_ranks();
}
