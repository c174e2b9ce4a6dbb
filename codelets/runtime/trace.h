/* trace.h - what tasks of some steps do, when, where, and what they wait for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A group of tasks has a trace, or NULL, which costs nothing.  Tasks that are
 * submitted for its steps are recorded, by one thread; each notes by itself
 * when and where it ran.  All of them are done before a trace is written.
 */
#ifndef DDP_TRACE_H
#define DDP_TRACE_H

#include "runtime/task.h"

enum ddp__trace_track {
    DDP__TRACK_SUBMISSION,
    DDP__TRACK_EXCHANGE,
    DDP__TRACK_WEIGHTS
};

/* A task. */
struct ddp__traced {
    char name[64], shapes[128];
    int part; /* enum ddp_step_part, or DDP__PART_END */
    int64_t step;
    int lane, sub, samples, bucket; /* bucket: that it writes; -1: none */
    double submitted, begin, end;
    int worker; /* -1: no worker has run it */
};

/* A task waits for another, for what is in a buffer, or to change it. */
struct ddp__trace_edge {
    int from, to, bucket;
    bool data;
};

/* A task reads what another has written, of so many bytes: on another memory
 * there is a copy, if none has been made for `before`. */
struct ddp__trace_read {
    int from, to;
    int before; /* the read of the same contents before this one; -1: none */
    size_t size;
};

/* Who uses a buffer, by the order of submission. */
struct ddp__trace_user {
    uint64_t id; /* of the buffer; 0: the slot is free */
    int writer;  /* -1: none */
    int bucket;  /* -1: it is of none */
    int *reader; /* since then; owned */
    int readers, room;
    int read; /* the last one of its contents; -1: none */
};

/* What no worker did. */
struct ddp__trace_span {
    enum ddp__trace_track track;
    int64_t step;
    int bucket;
    double begin, end;
};

struct ddp__trace {
    int64_t first, steps;
    struct ddp__traced **task; /* each is owned, like what follows */
    int tasks, task_room;
    struct ddp__trace_edge *edge;
    int edges, edge_room;
    struct ddp__trace_read *read;
    int reads, read_room;
    struct ddp__trace_user *user; /* an open table */
    size_t users, slots;
    pthread_mutex_t lock; /* of spans */
    struct ddp__trace_span *span;
    int spans, span_room;
    double start, clock; /* the same moment; clock: of this machine */
};

/* Of `steps` steps from `first` on; NULL: no memory. */
struct ddp__trace *ddp__trace_new(int64_t first, int64_t steps);
void ddp__trace_free(struct ddp__trace *t);

/* After which step it has all. */
int64_t ddp__trace_end(const struct ddp__trace *t);

/* A buffer holds gradients, weights or state of a bucket. */
void ddp__trace_label(struct ddp__trace *t, const struct ddp__handle *h,
                      int bucket);

/* A task, before its submission.  NULL: it is of another step, or there is no
 * memory. */
struct ddp__traced *ddp__trace_task(struct ddp__trace *t,
                                    const struct ddp__submit *s);
void ddp__trace_ran(struct ddp__traced *task, int worker, double begin,
                    double end);

/* What no worker did, by any thread. */
void ddp__trace_span(struct ddp__trace *t, enum ddp__trace_track track,
                     int64_t step, int bucket, double begin, double end);

#endif
