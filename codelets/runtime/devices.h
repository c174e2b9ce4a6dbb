/* devices.h - the devices of a context: which backend runs a call, on what plan
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEVICES_H
#define DDP_DEVICES_H

#include "device.h"

/* Those that have workers: what trains comes first, the CPU is last. */
struct ddp__devices {
    struct ddp__used {
        const struct ddp__device *device;
        const struct ddp__backend *const *backends; /* to choose from */
    } used[2];
    int count;
    bool hybrid; /* the CPU trains too, else it does what the first cannot */
};

/* Start the context's accelerator, if it has one, and the CPU, with its
 * backends from `backend` on ("cpu", "ref"; NULL: the first).  After
 * starpu_init().  DDP_HYBRID=1 in the environment has both train. */
int ddp__devices_init(ddp_t *ddp, const char *backend);
void ddp__devices_fini(ddp_t *ddp);

/* The description of its first backend: "oneDNN 2.6.3, bf16". */
const char *ddp__devices_describe(const struct ddp__used *u);

/* Workers of a kind, and how many devices these belong to (NULL: not needed);
 * whether worker w is one of an accelerator. */
int ddp__device_workers(const struct ddp__device *d, int *devices);
bool ddp__worker_accelerates(const ddp_t *ddp, int w);

/* Entries of time_of[] of a group of tasks that StarPU's workers use. */
int ddp__worker_slots(void);

/* 0 if the devices that train compute in that type of activations; else
 * DDP_EINVAL or DDP_ENODEV. */
int ddp__devices_check(const ddp_t *ddp, enum ddp_dtype type);

/* When calls have been prepared and before their first task; waits for all
 * tasks of the context. */
int ddp__devices_ready(ddp_t *ddp);

/* Bytes of scratch that each worker of an accelerator has. */
size_t ddp__devices_scratch(const ddp_t *ddp);

/* Whether batches of inference go through a chain in slices. */
bool ddp__devices_slice(const ddp_t *ddp);

/* Whether a convolution and the norm before it are to be joined in this call of
 * NORM_CONV_*. */
bool ddp__devices_normalise(const ddp_t *ddp, const struct ddp__call *c);

/* Devices and memory are those of another machine. */
bool ddp__devices_simulated(void);

/* How many memories accelerators have (0: they work in main memory), and the
 * bytes of the smallest, less what other programs have of one. */
int ddp__devices_memory(const ddp_t *ddp, double *bytes);

/* Bytes of main memory that this process may have. */
double ddp__devices_main_memory(void);

/* Have a backend prepare the call; DDP_ENODEV if none can run it. */
int ddp__call_prepare(const ddp_t *ddp, struct ddp__call *c);

/* The same for an array of calls, by all cores.  After a failure some are
 * prepared. */
int ddp__calls_prepare(const ddp_t *ddp, struct ddp__call *const *c, int calls);

void ddp__call_release(struct ddp__call *c);

/* Bytes of main memory that the kernels of a prepared call keep for it. */
size_t ddp__call_kept(const struct ddp__call *c);

/* Of these, bytes that the ranks of a host may share; and that they do. */
size_t ddp__call_common(const struct ddp__call *c);
void ddp__call_use_common(const struct ddp__call *c, void *memory);

/* And that a worker has for the time of it, also if it adds to a gradient. */
size_t ddp__call_room(const struct ddp__call *c, bool adds);

/* About how many microseconds a call takes on n samples, on the device that
 * trains (ddp NULL: a CPU). */
double ddp__call_us(const ddp_t *ddp, const struct ddp__call *c, int n);

/* StarPU's bits of the workers that a prepared call may run on; STARPU_NOWHERE:
 * there is nothing to run; 0: no worker can run it. */
uint32_t ddp__call_where(const ddp_t *ddp, const struct ddp__call *c);

/* For which device such a worker runs the call, or would if it could. */
const struct ddp__device *ddp__call_device(const ddp_t *ddp,
                                           const struct ddp__call *c,
                                           enum starpu_worker_archtype worker);

#endif
