/* device.h - a kind of device: all that the runtime knows of it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A device is a folder that fills one struct ddp__device, a check in m4/, and a
 * row in runtime/device_rows.h.  Accelerators come before the CPU: the first
 * kind that is found trains.
 */
#ifndef DDP_CODELETS_DEVICE_H
#define DDP_CODELETS_DEVICE_H

#include <starpu.h>

#include "ops_backend.h"

enum { DDP__MAX_GPUS = 16 };

/* The accelerators of a kind that were found; none has been used so far. */
struct ddp__gpus {
    bool unlike;     /* asked for: several models may be used together */
    uint32_t chosen; /* bit i: GPU i may be used; 0: all may */
    int count, id[DDP__MAX_GPUS]; /* that can be used, by their driver */
    int seen;                     /* all of the machine */
    struct ddp__pci {             /* where each of them is */
        unsigned domain, bus, device;
    } pci[DDP__MAX_GPUS];
    struct ddp_gpu_info info[DDP__MAX_GPUS]; /* of those that can be used */
    char why[512]; /* why there are none, or fewer than seen; "": no reason */
};

/* Whether two are of one model: the same plans, and so the same bits. */
static inline bool ddp__gpus_alike(const struct ddp_gpu_info *a,
                                   const struct ddp_gpu_info *b)
{
    return a->architecture == b->architecture && a->units == b->units;
}

/* What a worker is assumed to do in a second: for the estimates that policies
 * ask for, and in a simulation the time that tasks take. */
struct ddp__speed {
    double begin_us; /* before a kernel does anything */
    double flops, bytes;
};

/* What a rank sends in an exchange, and as much comes back. */
struct ddp__load {
    double bytes;
    int messages, rounds; /* a round waits for the messages of the one before */
    /* Bytes that a GPU copies to or from main memory, most of them while others
     * travel; those before the first message, and those after the last. */
    double copied, before, after;
};

struct ddp__device {
    const char *name; /* of its workers, for people: "CUDA" */
    enum ddp_device kind;
    /* As StarPU has them: its workers, the bit of `where` for these, and the
     * memory they work in.  Kinds may share workers: these run a call for the
     * first kind that has prepared it. */
    enum starpu_worker_archtype workers;
    uint32_t where;
    enum starpu_node_kind memory;
    bool queues; /* a kernel puts its work on a stream and returns */
    struct ddp__speed speed;
    /* Microseconds that a call takes on n samples, where that is known; below
     * 0: it is not.  NULL: of no call. */
    double (*known_us)(const struct ddp__call *c, int n);
    /* How many times as long as that its device `number` takes.  NULL: 1. */
    double (*slowness)(int number);
    /* Seconds that it stops for, in this task.  NULL: 0. */
    double (*stalled)(int number, const void *task);
    int channels; /* images are widened to a multiple; 0: they are not */
    /* In order of preference, NULL at the end; of an accelerator once it has
     * been found. */
    const struct ddp__backend *const *backends;
    const char *count; /* environment variable with the number of devices */

    /* Before StarPU starts: look for the first `most` accelerators that can be
     * used (0: all), and load their backends.  It is no failure if
     * there is none: count is 0, and why has the reason.  NULL: this is the
     * CPU. */
    void (*find)(struct ddp__gpus *g, int most);
    /* Have StarPU use those that were found; count 0: none. */
    void (*configure)(struct starpu_conf *conf, const struct ddp__gpus *g);
    /* Have a codelet call `run` on these workers. */
    void (*attach)(struct starpu_codelet *cl, starpu_cpu_func_t run);
    /* The stream of the worker that calls; NULL: there are none. */
    void *(*stream)(void);
    /* A task of a step's lane (-1: of none) that would have taken `seconds`
     * has ended on a worker, on which nothing runs; NULL: it has run. */
    void (*simulated)(int64_t step, int lane, int worker, double seconds);
    /* Whether a buffer is far from a worker now, and how many microseconds
     * longer it takes to read `bytes` of one that is.  NULL: none is. */
    bool (*is_far)(int worker, uint64_t buffer);
    double (*far_us)(double bytes);
    /* A worker used `bytes` of a buffer of `size`, which was far when the task
     * began, in a task that was not run.  NULL: nobody counts. */
    void (*used)(int worker, uint64_t buffer, size_t size, double bytes,
                 enum ddp_access access, bool was_far);
    /* In a simulation of several nodes that all do the same: how many there
     * are.  NULL: this is the only one. */
    int (*nodes)(void);
    /* Then: have over(arg) called when what a node sends has been carried; one
     * load at a time. */
    void (*carry)(const struct ddp__load *l, void (*over)(void *arg),
                  void *arg);
    void (*close_nodes)(void); /* when there is nothing left to carry */
};

#endif
