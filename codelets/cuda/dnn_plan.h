/* dnn_plan.h - from a graph of cuDNN to a plan that runs it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DNN_PLAN_H
#define DDP_DNN_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "dnn_graph.h"
#include "worker.h"

/* ---- dnn_target.c ------------------------------------------------------- */

/* A model of GPU that plans are for.  A process has one, unless its user has
 * asked for GPUs of several models. */
struct ddp__cudnn_target {
    char name[300];       /* of the device and all that a choice depends on */
    ddp__cudnn_desc prop; /* owned */
    int device; /* CUDA's number of its first GPU; plans are made with that
                   current */
    int architecture, units;
    bool tf32;      /* f32 may be multiplied as TF32 */
    bool fast;      /* choose by stopwatch, atomics allowed; the choice is
                       kept on disk, so that a later run repeats it */
    bool described; /* from a text, the device is not there: code that
                       cannot be loaded counts as built, but cannot run */
    atomic_int to_compile; /* described: of so many engines that are compiled by
                       cuDNN at run time; the others it offers are believed */
    unsigned char masks[DDP_F16 + 1]; /* by type, see ddp__cuda_masks_fit() */
};
enum { DDP__CUDNN_TARGETS = 16 };
extern struct ddp__cudnn_target ddp__cudnn_targets[DDP__CUDNN_TARGETS];
int ddp__cudnn_target_count(void);

/* That of a GPU, by CUDA's number. */
struct ddp__cudnn_target *ddp__cudnn_target_of(int device);

/* Plans for this GPU and its like alone. */
int ddp__cudnn_target_device(int device, bool tf32, bool fast);

/* Plans for the GPUs of all workers, if there is no target yet: DDP_TF32=1 and
 * DDP_TUNE=1 of the environment say the rest. */
int ddp__cudnn_targets_ready(void);

/* ", TF32", ", tuned", both or "": those of these two that are switched on. */
const char *ddp__cudnn_switches(void);

/* Plans for a device that cuDNN's JSON describes, to see what it offers. */
int ddp__cudnn_target_json(const char *name, const char *json, bool tf32,
                           bool fast);
void ddp__cudnn_targets_free(void);

/* Have the target be the calling thread's GPU, where it is not only described;
 * which it was before, for ddp__cudnn_target_leave(). */
int ddp__cudnn_target_enter(const struct ddp__cudnn_target *t);
void ddp__cudnn_target_leave(const struct ddp__cudnn_target *t, int before);

/* Another GPU of the target's model, by CUDA's number; NULL: failed. */
ddp__cudnn_desc ddp__cudnn_target_other(const struct ddp__cudnn_target *t,
                                        int device);

/* ---- plans -------------------------------------------------------------- */

/* A plan for any number of workers of a model of GPU.  cuDNN does not promise
 * that two threads may run one at a time, nor that a plan made for one GPU runs
 * on another: worker 0, whose GPU is the target, runs `desc`, the others a copy
 * each. */
struct ddp__cudnn_plan {
    struct ddp__cudnn_plan *next; /* in the cache */
    struct ddp__cudnn_target *target;
    struct ddp__cudnn_graph *graph; /* owned */
    ddp__cudnn_desc config, desc;   /* owned; config NULL: came from disk */
    ddp__cudnn_desc copy[DDP__CUDA_WORKERS]; /* by worker; owned */
    char *key;                               /* owned */
    uint64_t hash;                           /* of the key */
    size_t workspace;
    int64_t engine;
    int rc;     /* of the building; its message is `why` */
    bool ready; /* built, or failed */
    bool tensor_cores;
    bool runtime;  /* its engine is compiled at run time */
    bool believed; /* ... and was not, see to_compile */
    bool loaded;   /* from disk */
    char why[300];
    atomic_bool shared;   /* it cannot be copied: workers take turns */
    pthread_mutex_t lock; /* of copying, and of turns */
};

/* Build p->desc out of p->graph with at most `limit` bytes of workspace.  tune:
 * by stopwatch, if the target asks for that; takes memory and waits for it. */
int ddp__cudnn_build(struct ddp__cudnn_plan *p, size_t limit, bool tune);

/* The same from what ddp__cudnn_save() gave; text is only read. */
int ddp__cudnn_load(struct ddp__cudnn_plan *p, const char *text, size_t len);
char *ddp__cudnn_save(const struct ddp__cudnn_plan *p, size_t *len);

/* ---- dnn_cache.c ------------------------------------------------------- */

/* The plan of a graph for a target, which is taken, out of memory, from disk,
 * or built. Plans are kept until ddp__cudnn_plans_free().  Any number of
 * threads at a time.
 */
int ddp__cudnn_plan_get(struct ddp__cudnn_target *t, struct ddp__cudnn_graph *g,
                        size_t limit, bool tune, struct ddp__cudnn_plan **out);
void ddp__cudnn_plans_free(void);

/* Make those of its model that there are ready for a worker, the calling
 * thread. */
void ddp__cudnn_plans_for(const struct ddp__cuda_worker *w);

/* How many plans there are, and what became of them. */
struct ddp__cudnn_count {
    int plans, failed, from_disk, runtime, believed;
};
struct ddp__cudnn_count ddp__cudnn_plans_count(void);

/* p as it is for a worker, made the first time; only its thread may ask. */
ddp__cudnn_desc ddp__cudnn_plan_for(struct ddp__cudnn_plan *p,
                                    const struct ddp__cuda_worker *w);

/* ---- running ------------------------------------------------------------ */

/* ptr: by tensor, of all that are not virtual; others are not looked at.  What
 * the graph computes is written. */
int ddp__cudnn_run(struct ddp__cudnn_plan *p, struct ddp__cuda_worker *w,
                   const void *const *ptr, void *workspace);

#endif
