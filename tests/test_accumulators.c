/* test_accumulators.c - how many accumulators of gradients exist at a time
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
#include <sys/wait.h>
#include <unistd.h>

#include "defaults.h"
#include "runtime/context.h"
#include "runtime/buffer.h"
#include "tap.h"
#include "train/memory.h"

enum { IN = 1536, OUT = 1024, STEPS = 3 };
#define SIZE ((double)IN * OUT * sizeof(float))

struct setup {
    int lanes, gpus;
};

/* The first sample comes late: merges are submitted after the lanes, and must
 * be there when the first of these is done, as they are in later steps. */
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

static double train(const struct setup *s)
{
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
    double held = -1;

    if (t && ddp_trainer_train(t) == 0)
        held = bytes_held(s->gpus > 0);
    else
        diag("%s", ddp_errmsg());
    ddp_trainer_free(t);
    ddp_dataset_free(data);
    ddp_chain_free(net);
    ddp_finish(ddp);
    return held;
}

/* The same in a process of its own. */
static double held(struct setup s)
{
    double bytes = -1;
    int fd[2];
    pid_t pid;

    fflush(stdout);
    if (pipe(fd) < 0 || (pid = fork()) < 0)
        bail_out("no process");
    if (pid == 0) {
        bytes = train(&s);
        _exit(write(fd[1], &bytes, sizeof(bytes)) == sizeof(bytes) ? 0 : 1);
    }
    close(fd[1]);
    if (read(fd[0], &bytes, sizeof(bytes)) != sizeof(bytes))
        bytes = -1;
    close(fd[0]);
    waitpid(pid, NULL, 0);
    return bytes;
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

/* A lane after another: the tree over them has this depth. */
static void test_one_worker(void)
{
    static const int depth[][2] = {{2, 1}, {4, 2}, {8, 3}, {16, 4}};

    for (int i = 0; i < 4; i++) {
        struct setup s = {.lanes = depth[i][0]};

        is_int(accumulators(s), depth[i][1] + 1,
               "%d lanes on one worker: log2 of them, and one", s.lanes);
        is_int(ddp__memory_accumulators(s.lanes, 1, 1), depth[i][1] + 1,
               "which the memory plan counts");
    }
}

/* Two lanes are in flight. */
static void test_gpu(void)
{
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        struct setup s = {.lanes = lanes, .gpus = 1};
        int plan = ddp__memory_accumulators(lanes, 2, 1), n = accumulators(s);

        ok(n >= 1 && n <= plan && plan < lanes + (lanes == 4),
           "%d lanes on a GPU: %d at a time, %d planned", lanes, n, plan);
    }
}

static void test_plan(void)
{
    int wrong = 0;

    for (int lanes = 1; lanes <= 64; lanes++)
        for (int some = 1; some <= lanes; some++) {
            int n = ddp__memory_accumulators(lanes, some, 1);

            wrong += n < some || n > lanes ||
                     n > ddp__memory_accumulators(lanes + 1, some, 1);
        }
    is_int(wrong, 0,
           "no plan has more than all lanes, or fewer than run at a time");
    is_int(ddp__memory_accumulators(64, 1, 1), 7, "64 lanes, one at a time");
    is_int(ddp__memory_accumulators(64, 4, 1), 20, "64 lanes, four at a time");
    is_int(ddp__memory_accumulators(8, 8, 1), 8, "8 lanes, all at a time");
    is_int(ddp__memory_accumulators(8, 1, 2), 8, "8 lanes, in two rounds");
}

int main(void)
{
    const char *gpu = getenv("STARPU_NCUDA");

    setenv("STARPU_NCPU", "1", 1);
    test_plan();
    if (gpu && atoi(gpu) == 1)
        test_gpu();
    else
        test_one_worker();
    return done_testing();
}
