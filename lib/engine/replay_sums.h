/* replay_sums.h - of a replayed step: where sums are, and their merges
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REPLAY_SUMS_H
#define DDP_REPLAY_SUMS_H

#include "engine/footprint.h"
#include "engine/gpu_memory.h"
#include "engine/replay.h"

/* A sub-batch under way. */
struct ddp__replay_slot {
    int lane, round, segment; /* lane -1: there is none */
};

/* A segment of a slot's sub-batch, or without a slot the merge of two blocks of
 * `stride` lanes that begin at to and from. */
struct ddp__replay_job {
    struct ddp__replay_slot *slot;
    int bucket, to, from, stride; /* stride 0, and no slot: nothing */
    double at;                    /* when the sums of a merge have come */
};

struct ddp__replay_gpu {
    struct ddp__gpu_memory memory;
    double gradients, most_gradients, most_others;
    struct ddp__replay_slot *slot; /* in_flight */
    struct ddp__replay_job running, *merge;
    int merges;       /* that have not begun */
    double until;     /* when the running job ends, or there may be another */
    double sent, got; /* when its links are free, out and in */
};

struct ddp__replay_state {
    const struct ddp__engine *e;
    const struct ddp__replay_plan *plan;
    struct ddp__reach reach;
    struct ddp__replay_gpu *gpu;
    uint32_t *there;  /* lane x bucket: the GPUs that have the sum, as bits */
    int *summed;      /* lane x bucket: lanes from this on that it is of */
    int *at;          /* likewise: the GPU that has the last version */
    int *home;        /* by lane: the GPU that claimed it; -1: none has */
    double *us;       /* by segment: how long it takes */
    double lane_us;   /* all segments */
    double sums;      /* bytes of a lane's */
    double now, link; /* microseconds; bytes in one between two GPUs */
    int first;        /* segment that runs on a GPU */
};

/* Memory of a GPU.  Accumulators are taken by the functions below. */
void ddp__replay_take(struct ddp__replay_gpu *g, size_t size);

size_t ddp__replay_sum_size(const struct ddp__replay_state *r, int b);
int ddp__replay_owner(const struct ddp__replay_state *r, int b);
/* Which GPU has the last version. */
int *ddp__replay_at(const struct ddp__replay_state *r, int lane, int b);

void ddp__replay_take_sum(struct ddp__replay_state *r, int gpu, int lane,
                          int b);
/* On all GPUs that have had it. */
void ddp__replay_give_sum(struct ddp__replay_state *r, int lane, int b);

/* A block of so many lanes is summed.  Merge it with its neighbour when that
 * is, too, if there is one, and all of both are this rank's. */
void ddp__replay_add_block(struct ddp__replay_state *r, int b, int lane,
                           int width);

#endif
