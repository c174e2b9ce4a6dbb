/* peers.h - whether the other ranks live, and what they do
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each rank sends the others a beat now and then, and a last one when it ends.
 * By the net's thread, but for ddp__peers_inside(), _status() and _hurry().
 */
#ifndef DDP_PEERS_H
#define DDP_PEERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "ddp.h"
#include "wire.h"

struct ddp__net;

/* What a rank tells the others. */
struct ddp__beat {
    int64_t ops;   /* that it has begun or will begin */
    int64_t ready; /* the first so many of them wait for nothing of its own */
    int64_t tasks; /* that it has run */
    int64_t ended, failed;
    uint64_t machine; /* where its number of a process holds; 0: unknown */
    int64_t process;
    char why[512]; /* if failed: the rank that it lost; or "" */
    struct ddp_rank_status status;
};

struct ddp__peer {
    struct ddp__beat last, incoming, outgoing;
    uintptr_t receive, send; /* requests; receive 0: it has ended */
    double heard;            /* when; last is of then */
    double moved;            /* when it last did something */
    double died;             /* when that was noticed; 0: it lives */
    int process;             /* a descriptor; -1: none */
    bool lost;               /* messages to or from it fail */
};

struct ddp__peers {
    struct ddp__peer *peer; /* by rank; owned */
    pthread_mutex_t lock;   /* of what ddp__peers_status() reads */
    double timeout;         /* seconds; 0: none */
    atomic_int hurry;       /* milliseconds of silence after which a rank counts
                               as lost; 0: timeout alone does */
    double told, looked;    /* when */
};

/* Listen to the others.  What has failed is freed by ddp__peers_free(). */
int ddp__peers_new(struct ddp__net *n);
void ddp__peers_free(struct ddp__net *n);

/* Tell, listen and look who has died, if it is time to.  DDP_EPEER: a rank is
 * gone. */
int ddp__peers_tend(struct ddp__net *n);

/* While an operation that is ready waits for other ranks.  DDP_EPEER: one of
 * them will not or does not take part. */
int ddp__peers_missing(struct ddp__net *n, int64_t op);

/* After a message of the operation has failed: wait a few seconds for who is
 * gone.  DDP_EPEER, with its name; else with ddp_errmsg() as it was. */
int ddp__peers_blame(struct ddp__net *n, int64_t op);

/* By another thread: the net's has been inside MPI for so many seconds.
 * DDP_EPEER: since a rank is gone. */
int ddp__peers_inside(struct ddp__net *n, double seconds);

/* By any thread, and in signal handlers. */
void ddp__peers_hurry(struct ddp__net *n, double seconds);

/* Say that this rank ends; wait for all others to end, unless one has failed.
 * 1: all is well.  DDP_EPEER: a rank is gone. */
int ddp__peers_leave(struct ddp__net *n);

void ddp__peers_status(struct ddp__net *n, int rank,
                       struct ddp_rank_status *out);

#endif
