/* codelets.h - from calls to StarPU tasks: what lib/ uses of codelets/ */
#ifndef DDP_CODELETS_H
#define DDP_CODELETS_H

#include <pthread.h>
#include <stdatomic.h>

#include "ops.h"
#include "runtime/buffer.h"
#include "runtime/scheduler.h"

/* Backends of CPU workers in order of preference, NULL at the end. */
extern const struct ddp__backend *const ddp__backends[];

/* Make the codelets for backends of CPU workers from `name` on ("cpu", "ref";
 * NULL: the first that was built) and that of GPUs (NULL: none), and start
 * them.  After starpu_init().  With DDP_HYBRID=1 in the environment both kinds
 * of workers train; else GPUs do what they can, and CPU workers the rest. */
int ddp__codelets_init(const char *name, const struct ddp__backend *gpu);
void ddp__codelets_fini(void);
const char *ddp__codelets_describe(enum ddp__kind k);
bool ddp__codelets_hybrid(void);
/* Whether the devices compute in that type of activations. */
bool ddp__codelets_type(enum ddp_dtype type);

/* When calls have been prepared and before their first task; waits for all
 * tasks. */
int ddp__codelets_ready(void);

/* Bytes of scratch that each GPU worker has. */
size_t ddp__codelets_scratch(void);

/* These calls will be prepared: the backends begin with what takes long. */
void ddp__calls_warm(const struct ddp__call *const *c, int calls);

/* Have a backend prepare the call; DDP_ENODEV if none can run it. */
int ddp__call_prepare(struct ddp__call *c);
void ddp__call_release(struct ddp__call *c);

/* About how many microseconds a call takes on n samples, on the kind of worker
 * that trains. */
double ddp__call_us(const struct ddp__call *c, int n);

/* STARPU_CPU, STARPU_CUDA, both or, nobody shall run it, STARPU_NOWHERE: where
 * a call that is prepared may run; 0: nowhere at all. */
uint32_t ddp__call_where(const struct ddp__call *c);

/* Multiply-adds times 2 of a convolution or dense call on n samples; 0 of any
 * other. */
double ddp__call_flops(const struct ddp__call *c, int n);

/* What a kind of worker is taken to do a second: for the estimates that
 * policies ask for, and in a simulation the time that tasks take. */
struct ddp__speed {
    double begin_us; /* before a kernel does anything */
    double flops, bytes;
};
extern struct ddp__speed ddp__speed[DDP__KINDS];

/* Seconds of the clock that tasks run by, which a simulation has of its own. */
double ddp__now(void);

enum { DDP__MAX_WORKERS = 128 };

static inline bool ddp__is_gpu_worker(int w)
{
    return w < (int)starpu_worker_get_count() &&
           starpu_worker_get_type(w) == STARPU_CUDA_WORKER;
}

/* What the tasks of one engine share: the first failure, which makes all
 * later tasks do nothing, and where the time went. */
struct ddp__flow {
    atomic_int rc;
    pthread_mutex_t lock; /* of message, and of writing failed_step */
    char message[1024];
    _Atomic int64_t failed_step;  /* its tasks, and later ones, do nothing */
    _Atomic int64_t updated_step; /* last step whose OPTIM has run */
    /* 1 + the worker that first met a loss or norm that is not finite, since
     * this was last set to 0; 0: nobody. */
    atomic_int seen_by;
    struct ddp__busy {
        double exec_s, data_s, gap_s; /* gap: between tasks of one lane */
        double last_end;
        int64_t last_step, tasks;
        int last_lane;
    } busy[DDP__MAX_WORKERS];
};

int ddp__flow_init(struct ddp__flow *f);
void ddp__flow_fini(struct ddp__flow *f);

/* Keep the first failure, in the order of steps; the message is ddp_errmsg() of
 * this thread. */
void ddp__flow_fail(struct ddp__flow *f, int64_t step, int rc, const char *op,
                    const char *device);

/* The failure, with its message as this thread's ddp_errmsg(); 0: none. */
int ddp__flow_error(struct ddp__flow *f);

/* A call, its buffers, and what is special about this run of it. */
struct ddp__part {
    struct ddp__task task; /* call, n, accumulate, seed, lr */
    struct ddp__handle *buf[DDP_MAX_BUFFERS];
    enum starpu_data_access_mode mode[DDP_MAX_BUFFERS];
};

/* A task: calls that are run one after another. */
struct ddp__submit {
    const struct ddp__part *part; /* not owned, like flow */
    int parts;
    struct ddp__flow *flow;
    struct ddp__sched_tag tag;
    int64_t step; /* for messages; tag.step orders lanes of all engines */
    int priority;
    bool always; /* run even after a failure */
};
int ddp__submit(const struct ddp__submit *s);

#endif
