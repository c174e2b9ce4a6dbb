/* engine.h - a graph prepared to run in lanes, step after step
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ENGINE_H
#define DDP_ENGINE_H

#include "engine/comm.h"
#include "engine/ema.h"
#include "engine/host.h"
#include "engine/result.h"
#include "graph/graph.h"
#include "runtime/context.h"
#include "runtime/task_group.h"
#include "runtime/lock.h"
#include "runtime/task.h"

/* What an engine is built from. */
struct ddp__engine_spec {
    struct ddp__graph_spec graph;
    int lanes;
    int run_ahead; /* steps submitted before the first of them is done */
    int ring;      /* input buffers of a lane: sub-batches read ahead */
    const struct ddp_optimizer *optimizer; /* NULL: weights are not updated */
    double ema_decay; /* of the averages of the weights; 0: no averages */
    const struct ddp__rule *rule; /* of parameters: see update.h; or NULL */
    bool keep; /* activations keep their memory until ddp__engine_rest() */
    enum ddp_dtype wire; /* of gradients between ranks: DDP_F32 or DDP_BF16 */
    bool shard;          /* the optimizer's state is divided among ranks */
    /* Of the gradients' sums, too, only the rank that updates them needs one,
     * if these are even: without clipping, if norms are quotients of sums, as
     * CPU kernels make them, and if nobody else reads them. */
    bool shard_sums;
    bool divides; /* norms are quotients of sums, on all ranks */
    bool shared;  /* all ranks run each step together, with some lanes each */
    bool own; /* ... or, where shared, with lanes and sub-batches of its own */
    const int64_t *count; /* atomic: of this rank, for ddp__agreed; or NULL */
    bool values_follow;   /* the caller initialises the weights afterwards */
};

struct ddp__lane {
    struct ddp__handle *arena;
    struct ddp__handle *grad; /* by bucket */
    struct ddp__handle *sum;  /* by sum of the graph */
    struct ddp__handle stats; /* in main memory, for the host ends each step */
    double stats_memory[DDP__STATS];
    struct ddp__handle *input; /* ring x inputs */
    int64_t subs;              /* sub-batches so far: place in the ring */
};

struct ddp__engine {
    struct ddp__bound bound; /* to ddp; first */
    ddp_t *ddp;              /* not owned, like params; NULL: it has finished */
    int number;              /* from 1 on, of all engines */
    int buckets;             /* of params, which may be freed before */
    struct ddp__params *params;
    struct ddp__engine_spec spec;
    struct ddp_optimizer optimizer;
    ddp_graph_t *graph;
    struct ddp__task_group group;
    int ranks, lane_begin, lane_end; /* that run steps; the lanes of this one */
    bool simulated;                  /* the other ranks are */
    struct ddp__lane *lane;          /* all, with buffers: own ones and 0 */
    const ddp_value_t **input;       /* of a sub-batch; owned */
    int inputs;
    int *input_of;                    /* by value id: its place among them */
    struct ddp__task_call *task_call; /* of the task being submitted */
    bool *grad_begun;       /* lane x bucket: written to in this step */
    bool *reached;          /* by bucket: a step of all nodes writes to it */
    int exchanged;          /* sums over ranks submitted, of this step */
    uint64_t last_exchange; /* its number, which all ranks give it; 0: none */
    _Atomic(double) given;  /* when the last bucket had this rank's part */
    atomic_uint wishes;     /* of this rank, for the steps to come */
    struct ddp__agreed *agreed; /* ring of run_ahead + 1 */
    double lane_bytes;          /* of a lane's accumulators */
    double sample_flops;        /* of convolutions and dense layers */
    struct ddp__handle *state;  /* of the optimizer, by bucket */
    float **state_memory;
    struct ddp__ema *ema;            /* owned; NULL: no averages */
    const struct ddp__ema *averages; /* replace the weights; not owned */
    struct ddp__handle norm;         /* of all gradients: DDP__NORMS */
    struct ddp__handle scaler;
    double scaler_memory[DDP__SCALERS];
    char why[256];            /* reason of the last skipped step */
    struct ddp__handle token; /* orders the last tasks of a step */
    float token_memory;
    struct ddp__call merge_stats, decide, end;
    struct ddp__call fence[DDP_MAX_BUFFERS];         /* by the last buffer */
    struct ddp__call *merge_bucket, *round, *sqnorm; /* by bucket */
    struct ddp__call *merge_sum;                     /* by sum of the graph */
    struct ddp__updates *updates;                    /* by bucket */
    struct ddp__strips *strips;                      /* by bucket */
    struct ddp__early *early;   /* owned; NULL: updates wait for the decision */
    struct ddp__slices *slices; /* owned; NULL: the decision needs all sums */
    int *owner;     /* by bucket: the worker it is merged and updated on */
    int *keeper;    /* by bucket: the rank with its state; NULL: all have it */
    int *checker;   /* by bucket: the rank that checks its sum and tells its
                       norm; keeper, or owned; NULL: each checks its slices */
    bool kept_sums; /* only it needs the sum of the gradients */
    struct ddp__lock lock;       /* of results */
    struct ddp__result *result;  /* ring of run_ahead + 1 */
    int64_t submitted, finished; /* steps */
    int64_t begun;               /* the first of them */
    int64_t failed;              /* the step that did, until settled; or -1 */
    double submit_s, first_submit, last_end, flops;
    struct ddp__host_memory common; /* packed weights that ranks share */
    struct ddp__near *near; /* gradients that they do; owned; NULL: none */
    bool torn;
    bool scarce; /* GPUs have no room for all gradients and the state: no task
                    needs those of several buckets */
};

int ddp__engine_new(struct ddp__engine **out, ddp_t *ddp, ddp_chain_t *chain,
                    const struct ddp__engine_spec *spec);
void ddp__engine_free(struct ddp__engine *e);

/* DDP_EINVAL once ddp_finish() has been called: an engine ends with its
 * context, and can only be freed then. */
int ddp__engine_check(const struct ddp__engine *e);

/* The next step gets the number `step`. */
void ddp__engine_begin(struct ddp__engine *e, int64_t step);

/* Trace the steps to come (NULL: no more), while no task runs. */
void ddp__engine_trace(struct ddp__engine *e, struct ddp__trace *t);

/* How many lanes a step of so many sub-batches uses. */
int ddp__engine_lanes(const struct ddp__engine *e, int subs);

/* Whether a lane is this rank's. */
bool ddp__engine_has_lane(const struct ddp__engine *e, int lane);

#endif
