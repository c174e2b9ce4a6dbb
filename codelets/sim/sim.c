/* sim.c - backends that do nothing, and what is seen of their tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * SimGrid runs one thread of the simulation at a time: no locks here.
 */
#include "config.h"

#include <string.h>

#include "cuda/gpu.h"
#include "sim.h"

/* ---- devices ------------------------------------------------------------ */

static int nothing(const struct ddp__task *t)
{
    (void)t;
    return 0;
}

#define X(id, name, traits) [DDP__OP_##id] = nothing,

const struct ddp__backend ddp__sim_cpu = {
    .name = "simulated",
    .kind = DDP_CPU,
    .bf16 = true,
    .f16 = true,
    .kernel = {DDP__OPS(X)},
};

static const struct ddp__backend sim_gpu = {
    .name = "simulated",
    .kind = DDP_CUDA,
    .bf16 = true,
    .f16 = true,
    .kernel = {DDP__OPS(X)},
};

#undef X

/* As many as StarPU is told of. */
void ddp__gpus_find(struct ddp__gpus *g, int most)
{
    memset(g, 0, sizeof(*g));
    for (int i = 0; i < most && i < DDP__MAX_GPUS; i++)
        g->id[g->count++] = i;
    g->seen = g->count;
    g->backend = &sim_gpu;
}

/* ---- what is seen ------------------------------------------------------- */

/* Where lanes are: of a few steps, as a step begins before the one before is
 * over. */
enum { STEPS = 4, LANES = 1024 };

static struct seen {
    int64_t step; /* 1 + the tag's; 0: none yet */
    int worker;
    bool split;
} seen[STEPS][LANES];

static struct ddp_simulation so_far;

static void see_lane(const struct ddp__sched_tag *tag, int w)
{
    struct seen *s = &seen[tag->step % STEPS][tag->lane % LANES];

    if (s->step != tag->step + 1) {
        *s = (struct seen){.step = tag->step + 1, .worker = w};
        so_far.lanes++;
    }
    if (s->worker != w && !s->split) {
        s->split = true;
        so_far.split_lanes++;
    }
}

void ddp__sim_ended(const struct ddp__sched_tag *tag, int w, double seconds)
{
    unsigned node = starpu_worker_get_memory_node((unsigned)w);
    size_t used = starpu_memory_get_used(node);

    if (tag->kind == DDP__SCHED_LANE)
        see_lane(tag, w);
    if (used > so_far.peak_bytes)
        so_far.peak_bytes = used;
    so_far.gpu_s += seconds;
}

struct ddp_simulation ddp__sim_seen(void)
{
    return so_far;
}
