/* sim.c - devices that do nothing, and what is seen of their tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * SimGrid runs one thread of the simulation at a time: no locks here.
 */
#include "config.h"

#include "network.h"
#include "numa.h"
#include "ops_times.h"
#include "sim.h"

/* ---- devices ------------------------------------------------------------ */

static int run_nothing(const struct ddp__task *t)
{
    (void)t;
    return 0;
}

#define X(id, name, traits) [DDP__OP_##id] = run_nothing,

static bool computes_type(enum ddp_dtype type)
{
    (void)type;
    return true;
}

/* Messages are not carried, so what they are made of is not called. */
static const struct ddp__space memory;

static const struct ddp__backend simulated = {
    .name = "simulated",
    .space = &memory,
    .computes = computes_type,
    .kernel = {DDP__OPS(X)},
};

#undef X

static const struct ddp__backend *const backends[] = {&simulated, NULL};

static void cpu_attach(struct starpu_codelet *cl, starpu_cpu_func_t run)
{
    cl->cpu_funcs[0] = run;
    cl->cpu_funcs_name[0] = "run";
}

/* By number of the GPU; 0: 1. */
static double slowness[DDP__MAX_GPUS];

static double gpu_slowness(int number)
{
    double s = number >= 0 && number < DDP__MAX_GPUS ? slowness[number] : 0;

    return s > 0 ? s : 1;
}

/* A GPU that stops once. */
static struct {
    double seconds;
    const void *task; /* its next one; NULL: not known yet */
} stall[DDP__MAX_GPUS];

static double gpu_stalled(int number, const void *task)
{
    if (number < 0 || number >= DDP__MAX_GPUS || stall[number].seconds == 0)
        return 0;
    if (!stall[number].task)
        stall[number].task = task;
    return stall[number].task == task ? stall[number].seconds : 0;
}

static void cpu_simulated(int64_t step, int lane, int w, double seconds);
static void gpu_simulated(int64_t step, int lane, int w, double seconds);

static struct ddp__device cpu = {
    .name = "CPU",
    .kind = DDP_CPU,
    .workers = STARPU_CPU_WORKER,
    .where = STARPU_CPU,
    .memory = STARPU_CPU_RAM,
    .speed = {.begin_us = 1, .flops = 100e9, .bytes = 10e9},
    .known_us = ddp__times_find,
    .backends = backends,
    .attach = cpu_attach,
    .simulated = cpu_simulated,
    .is_far = ddp__numa_is_far,
    .far_us = ddp__numa_far_us,
    .used = ddp__numa_used,
};

/* As many as StarPU learns of. */
static void gpus_find(struct ddp__gpus *g, int most)
{
    for (int i = 0; i < most && i < DDP__MAX_GPUS; i++)
        g->id[g->count++] = i;
    g->seen = g->count;
}

static void gpus_configure(struct starpu_conf *conf, const struct ddp__gpus *g)
{
    conf->ncuda = g->count;
}

static void gpus_attach(struct starpu_codelet *cl, starpu_cpu_func_t run)
{
    cl->cuda_funcs[0] = run;
    cl->cuda_flags[0] = STARPU_CUDA_ASYNC;
}

/* Of the kinds that StarPU simulates, the one whose memories copy from each
 * other.  The speed is the one of the prediction. */
static struct ddp__device gpu = {
    .name = "CUDA",
    .kind = DDP_CUDA,
    .workers = STARPU_CUDA_WORKER,
    .where = STARPU_CUDA,
    .memory = STARPU_CUDA_RAM,
    .queues = true,
    .speed = {.begin_us = 5, .flops = 300e12, .bytes = 3e12},
    .known_us = ddp__times_find,
    .slowness = gpu_slowness,
    .stalled = gpu_stalled,
    .channels = 8,
    .backends = backends,
    .count = "STARPU_NCUDA",
    .find = gpus_find,
    .configure = gpus_configure,
    .attach = gpus_attach,
    .simulated = gpu_simulated,
    .nodes = ddp__network_nodes,
    .carry = ddp__network_carry,
    .close_nodes = ddp__network_close,
};

const struct ddp__device *const ddp__devices[] = {&gpu, &cpu, NULL};

static bool cpus_train;

void ddp__sim_speed(enum ddp_device kind, const struct ddp__speed *s)
{
    cpus_train = kind == DDP_CPU;
    if (cpus_train)
        cpu.speed = *s;
    else
        gpu.speed = *s;
}

void ddp__sim_slow(int number, double times)
{
    slowness[number] = times;
}

void ddp__sim_stall(int number, double seconds)
{
    stall[number].seconds = seconds;
    stall[number].task = NULL;
}

/* ---- what is seen ------------------------------------------------------- */

/* Where lanes are: of a few steps, as a step begins before the one before is
 * over. */
enum { STEPS = 4, LANES = 1024 };

static struct seen {
    int64_t step; /* 1 + the lane's; 0: none yet */
    int worker;
    bool split;
} seen[STEPS][LANES];

static struct ddp_simulation so_far;

static void see_lane(int64_t step, int lane, int w)
{
    struct seen *s = &seen[step % STEPS][lane % LANES];

    if (s->step != step + 1) {
        *s = (struct seen){.step = step + 1, .worker = w};
        so_far.lanes++;
    }
    if (s->worker != w && !s->split) {
        s->split = true;
        so_far.split_lanes++;
    }
}

static void see_task(int64_t step, int lane, int w, double seconds)
{
    if (lane >= 0)
        see_lane(step, lane, w);
    so_far.busy_s += seconds;
}

static void cpu_simulated(int64_t step, int lane, int w, double seconds)
{
    if (cpus_train)
        see_task(step, lane, w, seconds);
}

static void gpu_simulated(int64_t step, int lane, int w, double seconds)
{
    unsigned node = starpu_worker_get_memory_node((unsigned)w);
    size_t used = starpu_memory_get_used(node);

    if (used > so_far.peak_bytes)
        so_far.peak_bytes = used;
    see_task(step, lane, w, seconds);
}

struct ddp_simulation ddp__sim_seen(void)
{
    ddp__numa_seen(&so_far);
    return so_far;
}
