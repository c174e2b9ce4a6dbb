/* engine.h - a graph made ready to run in lanes, step after step */
#ifndef DDP_ENGINE_H
#define DDP_ENGINE_H

#include "graph/graph.h"
#include "runtime/context.h"

/* What an engine is made of. */
struct ddp__engine_spec {
    struct ddp__graph_spec graph;
    int lanes;
    int run_ahead; /* steps submitted before the first of them is done */
    int ring;      /* input buffers of a lane: sub-batches read ahead */
    const struct ddp_optimizer *optimizer; /* NULL: weights stay */
    double ema_decay; /* of averages of the weights; 0: there are none */
};

/* One step: sub-batches of these sizes, sub-batch s in lane s mod lanes. */
struct ddp__step {
    int64_t number;
    int subs;
    const int *n;  /* subs sizes, 1..cap */
    uint64_t seed; /* of dropout */
    float lr;
    bool update;    /* else gradients stay for ddp__engine_gradient() */
    uint64_t first; /* number of the first sub-batch: what fill() gets */
};

/* What a step gives. */
struct ddp__result {
    int64_t step; /* -1: none yet */
    double stats[DDP__STATS];
    bool skipped;                /* was to be applied, and was not */
    double scale;                /* of the loss, for the next step */
    int64_t skips, skips_in_row; /* so far */
    char why[256];               /* of a skipped one */
};

struct ddp__lane {
    struct ddp__handle *block; /* by segment that has one */
    struct ddp__handle *grad;  /* by bucket */
    struct ddp__handle totals;
    struct ddp__handle *input; /* ring x inputs */
    int64_t subs;              /* sub-batches so far: place in the ring */
};

/* Averages of all parameters, by bucket: ema.c. */
struct ddp__ema {
    struct ddp__params *params; /* not owned */
    bool begun;                 /* they have values */
    struct ddp__average {
        float *memory; /* owned */
        struct ddp__handle handle;
        struct ddp__call call;
    } * bucket; /* owned */
};

struct ddp__engine {
    ddp_t *ddp; /* not owned, like params */
    struct ddp__params *params;
    struct ddp__engine_spec spec;
    struct ddp_optimizer optimizer;
    ddp_graph_t *graph;
    struct ddp__flow flow;
    struct ddp__lane *lane;
    const ddp_value_t **input; /* of a sub-batch; owned */
    int inputs;
    int *input_of;             /* by value id: its place among them */
    struct ddp__part *part;    /* of the task being submitted */
    bool *grad_begun;          /* lane x bucket: written to in this step */
    double sample_flops;       /* of convolutions and dense layers */
    struct ddp__handle *state; /* of the optimizer, by bucket */
    float **state_memory;
    struct ddp__ema *ema;            /* owned; NULL: none are made */
    const struct ddp__ema *averages; /* taken for the weights; not owned */
    struct ddp__handle norm;         /* of all gradients: DDP__NORMS */
    struct ddp__handle guard;
    double guard_memory[DDP__GUARDS];
    char why[256];            /* the last step that was skipped, was */
    struct ddp__handle token; /* what orders the last tasks of a step */
    float token_memory;
    struct ddp__call merge_stats, decide, end;
    struct ddp__call fence[DDP_MAX_BUFFERS];         /* by number of buffers */
    struct ddp__call *merge_bucket, *optim, *sqnorm; /* by bucket */
    int *owner; /* by bucket: the worker it is merged and updated on */
    starpu_pthread_mutex_t lock; /* of results */
    starpu_pthread_cond_t done;
    struct ddp__result *result;  /* ring of run_ahead + 1 */
    int64_t submitted, finished; /* steps */
    int64_t begun;               /* the first of them */
    double submit_s, first_submit, last_end, flops;
    bool torn;
};

int ddp__engine_new(struct ddp__engine **out, ddp_t *ddp, ddp_chain_t *chain,
                    const struct ddp__engine_spec *spec);
void ddp__engine_free(struct ddp__engine *e);

/* The first step to come is number `step`. */
void ddp__engine_begin(struct ddp__engine *e, int64_t step);

/* The vectors, each as long as the weights, that an update keeps: how many,
 * and their names. */
int ddp__optimizer_state(const struct ddp_optimizer *o, const char *name[2]);

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

/* guard.c: whether a step is applied.  decide is a HOST call on (lane 0's
 * totals, norm, guard); its task's seed is the step's number. */
void ddp__guard_new(struct ddp__engine *e);
void ddp__guard_free(struct ddp__engine *e);

/* What a run must keep to go on as before: updates made (Adam counts them),
 * scale, good steps, skipped steps, those in a row.  Between steps. */
enum { DDP__GUARD_STATE = 5 };
int ddp__guard_get(struct ddp__engine *e, double state[DDP__GUARD_STATE]);
int ddp__guard_set(struct ddp__engine *e, const double state[DDP__GUARD_STATE]);

/* *out is to be freed also after a failure. */
int ddp__ema_new(struct ddp__ema **out, struct ddp__params *p, double decay);
void ddp__ema_free(struct ddp__ema *m);
/* Begin with the weights of now, unless that was done. */
int ddp__ema_begin(struct ddp__ema *m);

#endif
