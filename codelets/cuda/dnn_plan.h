/* dnn_plan.h - from a graph of cuDNN to a plan that runs it */
#ifndef DDP_DNN_PLAN_H
#define DDP_DNN_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker.h"
#include "dnn_graph.h"

/* ---- dnn_target.c ------------------------------------------------------- */

/* What plans are for: the same for all of a process. */
struct ddp__cudnn_target {
    char name[300];       /* of the device and all that a choice depends on */
    ddp__cudnn_desc prop; /* owned */
    bool tf32;            /* f32 may be multiplied as TF32 */
    bool fast;            /* choose by stopwatch, atomics allowed; the choice is
                             kept on disk, so that a later run repeats it */
    bool described;       /* from a text, the device is not there: code that
                             cannot be loaded counts as built, but cannot run */
    atomic_int to_compile; /* described: of so many engines that are compiled by
                       cuDNN at run time; the others it offers are believed */
};
extern struct ddp__cudnn_target ddp__cudnn_target;

/* Plans for device 0 of this process; CUDA's others must be of its kind. */
int ddp__cudnn_target_device(bool tf32, bool fast);

/* The same if there is no target yet: DDP_TF32=1 and DDP_TUNE=1 of the
 * environment say the rest. */
int ddp__cudnn_target_ready(void);

/* Plans for a device that cuDNN's JSON describes, to see what it offers. */
int ddp__cudnn_target_json(const char *name, const char *json, bool tf32,
                           bool fast);
void ddp__cudnn_target_free(void);

/* ---- plans -------------------------------------------------------------- */

/* A plan for any number of workers.  cuDNN does not promise that two threads
 * may run one at a time, hence the lock. */
struct ddp__cudnn_plan {
    struct ddp__cudnn_plan *next;   /* in the cache */
    struct ddp__cudnn_graph *graph; /* owned */
    ddp__cudnn_desc config, desc;   /* owned; config NULL: came from disk */
    char *key;                      /* owned */
    uint64_t hash;                  /* of the key */
    size_t workspace;
    int64_t engine;
    int rc;     /* of the building; its message is `why` */
    bool ready; /* built, or failed */
    bool tensor_cores;
    bool runtime;  /* its engine is compiled at run time */
    bool believed; /* ... and was not, see to_compile */
    bool loaded;   /* from disk */
    char why[300];
    pthread_mutex_t lock;
};

/* Build p->desc out of p->graph with at most `limit` bytes of workspace.  tune:
 * by stopwatch, if the target wants that; takes memory and waits for it. */
int ddp__cudnn_build(struct ddp__cudnn_plan *p, size_t limit, bool tune);

/* The same from what ddp__cudnn_save() gave; text is only read. */
int ddp__cudnn_load(struct ddp__cudnn_plan *p, const char *text, size_t len);
char *ddp__cudnn_save(const struct ddp__cudnn_plan *p, size_t *len);

/* ---- dnn_cache.c ------------------------------------------------------- */

/* The plan of a graph, which is taken, out of memory, from disk, or built.
 * Plans stay until ddp__cudnn_plans_free().  Any number of threads at a time.
 */
int ddp__cudnn_plan_get(struct ddp__cudnn_graph *g, size_t limit, bool tune,
                        struct ddp__cudnn_plan **out);
void ddp__cudnn_plans_free(void);

/* How many plans there are, and what became of them. */
struct ddp__cudnn_count {
    int plans, failed, from_disk, runtime, believed;
};
struct ddp__cudnn_count ddp__cudnn_plans_count(void);

/* ---- running ------------------------------------------------------------ */

/* names: a letter for each pointer. */
int ddp__cudnn_run(struct ddp__cudnn_plan *p, struct ddp__cuda_worker *w,
                   const char *names, void *const *ptr, void *workspace);

#endif
