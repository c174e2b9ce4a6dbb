/* engine.h - a graph made ready to run in lanes, step after step */
#ifndef DDP_ENGINE_H
#define DDP_ENGINE_H

#include "context.h"
#include "graph.h"

/* What an engine is made of. */
struct ddp__engine_spec {
    struct ddp__graph_spec graph;
    int lanes;
    int run_ahead; /* steps submitted before the first of them is done */
    int ring;      /* input buffers of a lane: sub-batches read ahead */
    const struct ddp_optimizer *optimizer; /* NULL: weights stay */
};

/* One step: sub-batches of these sizes, sub-batch s in lane s mod lanes. */
struct ddp__step {
    int64_t number;
    int subs;
    const int *n;  /* subs sizes, 1..cap */
    uint64_t seed; /* of dropout */
    float lr;
    int64_t t;      /* which update this is, from 1 */
    bool update;    /* else gradients stay for ddp__engine_gradient() */
    uint64_t first; /* number of the first sub-batch: what fill() gets */
};

/* What a step gives. */
struct ddp__result {
    int64_t step; /* -1: none yet */
    double stats[DDP__STATS];
};

struct ddp__lane {
    struct ddp__handle *handle; /* by value id; bases of activations only */
    struct ddp__handle *grad;   /* by bucket */
    struct ddp__handle totals;
    struct ddp__handle *input; /* ring x inputs */
    int64_t subs;              /* sub-batches so far: place in the ring */
};

struct ddp__engine {
    ddp_t *ddp; /* not owned, like params */
    struct ddp__params *params;
    struct ddp__engine_spec spec;
    struct ddp_optimizer optimizer;
    ddp_graph_t *graph;
    struct ddp__flow flow;
    struct ddp__lane *lane;
    int inputs;
    int *input_of;       /* by value id: its place among a lane's inputs */
    bool *grad_begun;    /* lane x bucket: written to in this step */
    double sample_flops; /* of convolutions and dense layers */
    struct ddp__handle *state; /* of the optimizer, by bucket */
    float **state_memory;
    struct ddp__handle norm;  /* squared global norm of the gradients */
    struct ddp__handle token; /* what orders the last tasks of a step */
    float token_memory;
    struct ddp__call merge_stats, end;
    struct ddp__call fence[DDP_MAX_BUFFERS];         /* by number of buffers */
    struct ddp__call *merge_bucket, *optim, *sqnorm; /* by bucket */
    pthread_mutex_t lock;                            /* of results */
    pthread_cond_t done;
    struct ddp__result *result;  /* ring of run_ahead + 1 */
    int64_t submitted, finished; /* steps */
    double submit_s, first_submit, last_end, flops;
    bool torn;
};

int ddp__engine_new(struct ddp__engine **out, ddp_t *ddp, ddp_chain_t *chain,
                    const struct ddp__engine_spec *spec);
void ddp__engine_free(struct ddp__engine *e);

/* Submit a step; waits while run_ahead steps are unfinished. */
int ddp__engine_step(struct ddp__engine *e, const struct ddp__step *s);

/* Wait until step `number` (of those submitted) is done. */
int ddp__engine_wait(struct ddp__engine *e, int64_t number,
                     struct ddp__result *r);
int ddp__engine_wait_all(struct ddp__engine *e);

/* PULL: submit the forward half or the backward half of the graph for subs
 * sub-batches, one per lane; then wait. */
int ddp__engine_half(struct ddp__engine *e, const int *n, int subs,
                     bool backward);

/* The merged gradient of a parameter in PyTorch's order, times scale. */
int ddp__engine_gradient(struct ddp__engine *e, const char *name, float *out,
                         size_t len, double scale);

double ddp__now(void);

#endif
