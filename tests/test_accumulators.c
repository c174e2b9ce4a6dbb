/* test_accumulators.c - how many accumulators of gradients exist at a time, and
 * whether a run holds as much memory as planned
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chain of one large layer: what its runs hold, in the pool on CPU workers
 * and by StarPU's account on GPUs, differs by its accumulators.  Each run is in
 * a process of its own, since both only ever report a maximum.
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "defaults.h"
#include "engine/footprint.h"
#include "engine/lanes.h"
#include "runtime/context.h"
#include "runtime/pool.h"
#include "sanitized.h"
#include "tap.h"

enum { IN = 1536, OUT = 1024, STEPS = 2 };
#define SIZE ((double)IN * OUT * sizeof(float))

struct setup {
    int lanes, gpus;
};

/* The first sample comes late: merges are submitted after the lanes, and must
 * be there when the first of these is done.  Two steps are submitted meanwhile;
 * a third one would be submitted while the second runs. */
static int get(void *arg, int64_t index, uint64_t key, struct ddp_sample *s)
{
    static atomic_bool begun;

    (void)arg;
    (void)key;
    if (!atomic_exchange(&begun, true))
        usleep(300000);
    for (int i = 0; i < IN; i++)
        ((float *)s->x)[i] = (float)((index + i) % 3) - 1;
    s->label = (int32_t)(index % OUT);
    return 0;
}

/* Bytes that a kind of memory has held, of the fullest one. */
static double bytes_held(bool gpu)
{
    double most = 0;

    if (!gpu)
        return (double)ddp__pool_peak();
    for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++)
        if (starpu_node_get_kind(i) == STARPU_CUDA_RAM)
            most = fmax(most, (double)(starpu_memory_get_total(i) -
                                       starpu_memory_get_available(i)));
    return most;
}

/* What a run finds out, in a process of its own; false: not all of it. */
static bool run_apart(void (*run)(const void *of, void *result), const void *of,
                      void *result, size_t size)
{
    bool whole;
    int fd[2];
    pid_t pid;

    fflush(stdout);
    if (pipe(fd) < 0 || (pid = fork()) < 0)
        bail_out("no process");
    if (pid == 0) {
        run(of, result);
        _exit(write(fd[1], result, size) == (ssize_t)size ? 0 : 1);
    }
    close(fd[1]);
    whole = read(fd[0], result, size) == (ssize_t)size;
    close(fd[0]);
    waitpid(pid, NULL, 0);
    return whole;
}

static void train(const void *of, void *held)
{
    const struct setup *s = of;
    ddp_t *ddp = ddp_init(
        &(struct ddp_config){START_DEFAULTS, .cpus = 1, .gpus = s->gpus});
    ddp_chain_t *net =
        ddp_chain_new(ddp_dense_new(IN, OUT,
                                    &(struct ddp_dense_options){
                                        DENSE_DEFAULTS, .no_bias = true}),
                      DDP_END);
    ddp_dataset_t *data =
        ddp_dataset_callback(&(struct ddp_source){.count = 1024,
                                                  .shape = {1, 1, IN},
                                                  .type = DDP_F32,
                                                  .classes = OUT,
                                                  .get = get});
    struct ddp_train_config c = {TRAIN_DEFAULTS,    .optimizer = ddp_sgd(0.01f),
                                 .sub_batch = 1,    .batch = s->lanes,
                                 .lanes = s->lanes, .steps = STEPS};
    ddp_trainer_t *t = ddp_trainer_new(ddp, net, data, &c);

    *(double *)held = -1;
    if (t && ddp_trainer_train(t) == 0)
        *(double *)held = bytes_held(s->gpus > 0);
    else
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
    ddp_finish(ddp);
}

static double held(struct setup s)
{
    double bytes;

    return run_apart(train, &s, &bytes, sizeof(bytes)) ? bytes : -1;
}

/* Accumulators of a run, where one with a single lane has one. */
static int accumulators(struct setup s)
{
    struct setup single = s;
    double one, all;

    single.lanes = 1;
    if ((one = held(single)) < 0 || (all = held(s)) < 0)
        return -1;
    return 1 + (int)lround((all - one) / SIZE);
}

/* The most, in the memory plan, of lanes that are done while others are not. */
static int sums(int lanes, int open)
{
    return ddp__footprint_sums(
        &(struct ddp__own_lanes){.end = lanes, .used = lanes}, open);
}

/* A lane after another: the tree over them has this depth. */
static void test_one_worker(void)
{
    static const int depth[][2] = {{2, 1}, {4, 2}, {8, 3}, {16, 4}};

    for (int i = 0; i < 4; i++) {
        struct setup s = {.lanes = depth[i][0]};

        is_int(accumulators(s), depth[i][1] + 1,
               "%d lanes on one worker: log2 of them, and one", s.lanes);
        is_int(sums(s.lanes, 1), depth[i][1], "which the memory plan counts");
    }
}

/* Two lanes are in flight. */
static void test_gpu(void)
{
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        struct setup s = {.lanes = lanes, .gpus = 1};
        int plan = sums(lanes, 2) + 2, n = accumulators(s);

        ok(n >= 1 && n <= plan && plan < lanes + (lanes == 4),
           "%d lanes on a GPU: %d at a time, %d planned", lanes, n, plan);
    }
}

static void test_plan(void)
{
    int wrong = 0;

    for (int lanes = 1; lanes <= 64; lanes++)
        for (int open = 1; open <= lanes; open++) {
            int n = sums(lanes, open);

            wrong += n < 0 || n > lanes - open || n > sums(lanes + 1, open);
        }
    is_int(wrong, 0, "lanes are done or not");
    is_int(sums(64, 1), 6, "64 lanes, one at a time");
    is_int(sums(64, 4), 16, "64 lanes, four at a time");
    is_int(sums(8, 8), 0, "8 lanes, all at a time");
}

/* Of any rank's lanes, as the exchange between ranks counts them. */
static void test_ranks(void)
{
    bool first[64];
    int wrong = 0;

    for (int lanes = 1; lanes <= 64; lanes++)
        for (int ranks = 1; ranks <= lanes; ranks++) {
            ddp__pieces(&(struct ddp__split){lanes, lanes, ranks}, first);
            for (int r = 0; r < ranks; r++) {
                int begin = ddp__lanes_begin(lanes, ranks, r), n = 0,
                    end = ddp__lanes_begin(lanes, ranks, r + 1);

                for (int l = begin; l < end; l++)
                    n += first[l];
                wrong += n != ddp__lanes_sums(begin, end, lanes);
            }
        }
    is_int(wrong, 0, "sums that are left on each of up to 64 ranks");
}

/* ---- whole networks ----------------------------------------------------- */

enum { SIDE = 32, CLASSES = 10, WIDE = 2048 };

/* The first one takes long enough for both steps to be submitted: a worker that
 * is faster than the host cannot merge what it has not heard of. */
static int get_image(void *arg, int64_t i, uint64_t key, struct ddp_sample *s)
{
    static atomic_bool begun;

    (void)arg;
    (void)key;
    if (!atomic_exchange(&begun, true))
        usleep(200000);
    memset(s->x, (int)(i % 255), SIDE * SIDE * 3);
    s->label = (int32_t)(i % CLASSES);
    return 0;
}

/* Bytes: of the pool, and of the process. */
struct planned {
    double plan, peak;
    double all, resident;
};

static double resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        bail_out("cannot read the size of this process");
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

struct network {
    const char *model;
    int lanes, sub_batch;
    bool sync_bn;
};

static void run(const void *of, void *result)
{
    const struct network *n = of;
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1});
    double before = resident();
    ddp_chain_t *net = ddp_model_new(
        n->model, &(struct ddp_model_options){
                      MODEL_DEFAULTS, .classes = CLASSES,
                      .sizes = (const int[]){SIDE * SIDE * 3, WIDE, WIDE, 0}});
    ddp_dataset_t *data =
        ddp_dataset_callback(&(struct ddp_source){.count = 1024,
                                                  .shape = {SIDE, SIDE, 3},
                                                  .type = DDP_U8,
                                                  .classes = CLASSES,
                                                  .get = get_image});
    struct ddp_train_config c = {TRAIN_DEFAULTS,
                                 .optimizer = ddp_momentum(0.01f, 0.9f),
                                 .sub_batch = n->sub_batch,
                                 .batch = n->sub_batch * n->lanes,
                                 .lanes = n->lanes,
                                 .steps = 2,
                                 .sync_bn = n->sync_bn,
                                 .keep_weights = true};
    ddp_trainer_t *t = ddp_trainer_new(ddp, net, data, &c);
    struct ddp_memory_plan p = {0};
    struct ddp_stats st = {0};
    double pool;

    if (!t || ddp_trainer_train(t) < 0 || ddp_trainer_memory(t, &p) < 0 ||
        ddp_trainer_stats(t, &st) < 0)
        diag("%s", ddp_errmsg());
    before = resident() - before;
    pool = p.weights + p.gradients + p.state + p.activations + p.input;
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
    ddp_finish(ddp);
    *(struct planned *)result = (struct planned){
        pool, (double)st.peak_bytes, pool + p.copies + p.scratch, before};
}

static struct planned planned(struct network n)
{
    struct planned p;

    if (!run_apart(run, &n, &p, sizeof(p)))
        bail_out("a run of %s ended early", n.model);
    return p;
}

/* On one worker what is held does not depend on time, but for input that is
 * read ahead if there is time: 5 % are for it.  With sync_bn the plan has the
 * gradients of all lanes until a stage ends, of which one worker has merged
 * some before. */
static void test_network(const char *model, int lanes, bool sync_bn)
{
    struct planned p = planned((struct network){model, lanes, 2, sync_bn});

    ok(p.peak > 0 && p.plan / p.peak > 0.95 &&
           p.plan / p.peak < (sync_bn ? 1.1 : 1.05),
       "%s in %d lanes%s: %.1f MiB planned, %.1f held", model, lanes,
       sync_bn ? ", norms over the step" : "", p.plan / (1 << 20),
       p.peak / (1 << 20));
}

static void test_networks(void)
{
    bool all = getenv("DDP_LONG") != NULL;

    for (int lanes = 1; lanes <= 64; lanes *= 4)
        test_network("mlp", lanes, false);
    test_network("resnet50", 4, false);
    test_network("resnet18", 8, true);
    for (int lanes = 1; all && lanes <= 64; lanes *= 4) {
        test_network("resnet50", lanes, false);
        test_network("vgg16", lanes, false);
        test_network("efficientnet_v2_s", lanes, false);
    }
}

/* oneDNN has copies of an MLP's 10.5 million weights.  What is free between
 * large blocks is the process's but not in the plan, an eighth here, and the
 * process has a few MiB of its own. */
static void test_resident(void)
{
    struct planned p;

    if (SANITIZED) {
        skip(1, "a sanitizer takes memory of its own");
        return;
    }
    p = planned((struct network){"mlp", 1, 16, false});
    ok(p.resident > 0.95 * p.all && p.resident < 1.15 * p.all,
       "copies and scratch are there: %.1f MiB planned, %.1f used",
       p.all / (1 << 20), p.resident / (1 << 20));
}

/* Evaluation has batch norms in copies of the convolutions' weights, of which
 * ResNet-18 has 11.2 million. */
static void test_folds(void)
{
    ddp_t *ddp = ddp_init(&(struct ddp_config){START_DEFAULTS, .cpus = 1});
    ddp_chain_t *net = ddp_model_new(
        "resnet18",
        &(struct ddp_model_options){MODEL_DEFAULTS, .classes = CLASSES});
    ddp_dataset_t *data =
        ddp_dataset_callback(&(struct ddp_source){.count = 2,
                                                  .shape = {SIDE, SIDE, 3},
                                                  .type = DDP_U8,
                                                  .classes = CLASSES,
                                                  .get = get_image});
    struct ddp_train_config c = {TRAIN_DEFAULTS, .sub_batch = 2, .batch = 2,
                                 .lanes = 1, .steps = 1};
    ddp_trainer_t *t = ddp_trainer_new(ddp, net, data, &c);
    struct ddp_memory_plan before = {0}, after = {0};
    struct ddp_metrics m;
    double weights = 4 * 11.16e6, more;

    if (!t || ddp_trainer_memory(t, &before) < 0 ||
        ddp_trainer_evaluate(t, data, &m) < 0 ||
        ddp_trainer_evaluate(t, data, &m) < 0 ||
        ddp_trainer_memory(t, &after) < 0)
        diag("%s", ddp_errmsg());
    more = after.copies - before.copies;
    if (before.copies == 0)
        skip(1, "built without oneDNN: nothing is folded");
    else
        ok(more >= weights && more < 6 * weights,
           "weights of evaluation are in the plan: %.1f MiB, once",
           more / (1 << 20));
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
    ddp_finish(ddp);
}

int main(void)
{
    const char *gpu = getenv("STARPU_NCUDA");

    setenv("STARPU_NCPU", "1", 1);
    test_plan();
    test_ranks();
    if (gpu && atoi(gpu) == 1) {
        test_gpu();
    } else {
        test_networks();
        test_one_worker();
        test_folds();
        test_resident();
    }
    return done_testing();
}
