/* ops_backend.h - what a kind of device gives: its kernels, and their memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_OPS_BACKEND_H
#define DDP_OPS_BACKEND_H

#include "ops.h"

/* A kernel returns 0, or what ddp__fail() returned. */
typedef int (*ddp__kernel_f)(const struct ddp__task *t);

/* The machine, for choices that change no result. */
struct ddp__machine {
    int cores;         /* physical ones that this process may use */
    size_t l2_of_core; /* bytes of second-level cache for each; 0: unknown */
};

/* The memory of a kind of device, for one thread that is no worker.  Copies and
 * sums are made in their order, and are there after wait. */
struct ddp__space {
    int (*enter)(int device); /* the one that the calls to come are for */
    int (*copy)(void *to, const void *from, size_t size);
    int (*add)(float *to, const float *from, size_t n); /* as MERGE does */
    int (*wait)(void);
    /* Begin a copy between it and main memory, after those in the same
     * direction (out: from it); a ticket for those so far, whose memory is
     * freed once they have passed: 1; 0: not yet. */
    int (*carry)(void *to, const void *from, size_t size, bool out);
    int (*mark)(bool out, void **ticket);
    int (*passed)(void **ticket);
};

/* Kernels of a kind of device.  A backend that leaves kernel[op] NULL never
 * gets that op. */
struct ddp__backend {
    const char *name;
    /* After starpu_init(): per-worker state. */
    int (*init)(const struct ddp__machine *m);
    void (*fini)(void);
    const char *(*describe)(void); /* "oneDNN 2.6.3, bf16" */
    /* Calls that prepare will be asked for: what takes long can be made by many
     * threads now, for it to find.  What fails is left to it.  NULL: nothing
     * takes long. */
    void (*warm)(const struct ddp__call *const *c, int calls);
    /* Make what a call needs before its first task (primitives, scratch).
     * NULL: nothing.  DDP_ENODEV: this call goes to the next backend. */
    int (*prepare)(const struct ddp__call *c, void **plan);
    void (*release)(void *plan);
    /* Whether large batches of inference are faster in slices that caches can
     * hold; NULL: they are not. */
    bool (*slices)(void);
    /* Whether the kernel of a call of NORM_CONV_* pays, next to those of the
     * convolution and the norm; NULL: there is none. */
    bool (*normalises)(const struct ddp__call *c);
    /* Bytes of main memory that the call's kernels keep between its tasks, for
     * copies of weights; NULL: none. */
    size_t (*kept)(const struct ddp__call *c, const void *plan);
    /* Bytes of it that the processes of a host may have in common; and have the
     * call use these, zeros, from before its first task to its release.  NULL:
     * there are none. */
    size_t (*common)(const struct ddp__call *c, const void *plan);
    void (*share)(void *plan, void *memory);
    /* Bytes of main memory that a worker has for the time of the call, also if
     * it adds to a gradient; NULL: hardly any. */
    size_t (*room)(const struct ddp__call *c, const void *plan, bool adds);
    /* Calls have been prepared, and their first task comes: what they share
     * (scratch) is made.  No task is running.  NULL: nothing. */
    int (*ready)(void);
    /* The calls of a task have been made, on this worker: what they left to be
     * done for all at once.  NULL: nothing. */
    int (*settle)(void);
    size_t (*scratch)(void); /* of a worker, in bytes; NULL: none */
    /* Device memory in use by other processes that StarPU believes is free, in
     * bytes; the maximum over devices.  NULL: none. */
    size_t (*taken)(void);
    /* Page-lock host memory for DMA; NULL: no need.  After fini too. */
    int (*pin)(void *p, size_t size);
    void (*unpin)(void *p);
    /* Main memory that kernels and copies use like the device's own; NULL:
     * there is none. */
    void *(*map)(size_t size);
    void (*unmap)(void *p);
    /* Whether a device fails all calls; words: the driver's, if it does. Before
     * init too; NULL: none fails as a whole. */
    bool (*broken)(int device, char *words, size_t size);
    /* DDP_ENOMEM or DDP_EDEVICE, and the driver's words for its error. */
    int (*reason)(int error, char *words, size_t size);
    /* Sums and copies by the thread that carries messages, in its memory; NULL:
     * StarPU copies whole vectors to and from main memory. */
    const struct ddp__space *space;
    /* Whether it can work in that type, not f32 (asked after init); NULL: in
     * none. */
    bool (*computes)(enum ddp_dtype type);
    ddp__kernel_f kernel[DDP__OP_COUNT];
};

#endif
