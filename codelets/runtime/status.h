/* status.h - what this process is doing, for the other ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STATUS_H
#define DDP_STATUS_H

#include <pthread.h>
#include <stdatomic.h>

#include "ddp.h"

struct ddp__status {
    pthread_mutex_t lock; /* of all but what is atomic */
    enum ddp_phase phase;
    int64_t step;
    double since, begun, stepped; /* the phase; training; the last step */
    double loss, step_s, waited_s;
    _Atomic int64_t tasks;   /* run so far */
    atomic_int readers;      /* threads that read a sample now */
    _Atomic(double) read_at; /* when one last began or ended */
};

void ddp__status_init(struct ddp__status *s);
void ddp__status_fini(struct ddp__status *s);

/* Begin a phase, or begin it again.  Returns the one before. */
enum ddp_phase ddp__status_enter(struct ddp__status *s, enum ddp_phase phase);

/* A step is done. */
void ddp__status_step(struct ddp__status *s, int64_t step, double loss);
/* So many seconds had to be waited for other ranks. */
void ddp__status_wait(struct ddp__status *s, double seconds);
/* A thread begins (1) to read a sample, or has read it (-1). */
void ddp__status_read(struct ddp__status *s, int readers);

/* All but what only others know of this process. */
void ddp__status_get(struct ddp__status *s, struct ddp_rank_status *out);

#endif
