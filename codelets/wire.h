/* wire.h - messages between ranks, as a module such as that of MPI carries them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WIRE_H
#define DDP_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum { DDP__HOST_NAME = 64 };

/* The messages from one rank to another with one tag arrive in the order in
 * which they were sent.  Nothing waits: send and recv begin a message, and
 * *request is 0 when test finds that it is over.  DDP_EPEER: a rank cannot be
 * reached. */
struct ddp__wire {
    int rank, count;             /* of this process; of all */
    int local_rank, local_count; /* the same among those of this host */
    /* Among those of this host that came with the same key, which is set before
     * the wire is opened and not negative: they share what they see. */
    int share_key, share_rank, share_count;
    int tags; /* tags are 0..tags-1; the last is for the end of a rank */
    int gpus; /* whether messages may be in the memory of GPUs */
    const char (*hosts)[DDP__HOST_NAME]; /* by rank, before any message */
    unsigned over;                       /* messages that have been found so */
    char about[96]; /* what carries the messages, and how */
    int (*send)(struct ddp__wire *w, int to, int tag, const void *data,
                size_t len, uintptr_t *request);
    int (*recv)(struct ddp__wire *w, int from, int tag, void *data, size_t len,
                uintptr_t *request);
    /* 1: over; 0: not yet. */
    int (*test)(struct ddp__wire *w, uintptr_t *request);
    void (*close)(struct ddp__wire *w); /* when no rank sends any more */
    void *arg;                          /* the module's own */
    char why[256];                      /* a function that failed (< 0) */
};

/* The only function of a module, ddp_wire_open(): fills in *w.  DDP_ENODEV,
 * with w->why. */
typedef int ddp__wire_open_f(struct ddp__wire *w);

#endif
