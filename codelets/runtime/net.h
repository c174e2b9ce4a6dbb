/* net.h - the ranks of a training, and the thread that carries their messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NET_H
#define DDP_NET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "device.h"
#include "runtime/peers.h"
#include "runtime/status.h"
#include "runtime/topology.h"
#include "runtime/watch.h"
#include "wire.h"

/* Operations that are begun before others end: one at a time is the fastest
 * through shared memory, as what was sent last is still in caches. */
enum { DDP__NET_UNDER_WAY = 2 };

/* Something that all ranks do, in the same order: its messages. */
struct ddp__net_op {
    struct ddp__net_op *next;
    int64_t number; /* among all of this process */
    int tag;        /* its first */
    bool ready;     /* to begin */
    bool begun;
    bool
        pressing; /* once all before it are ready, none after it begins first */
    bool patient; /* tasks go on meanwhile */
    struct ddp__load load; /* for simulations */
    /* Called by the net's thread again and again once it is ready.  1: done; 0:
     * not yet; < 0: it failed, with ddp_errmsg(). */
    int (*poll)(struct ddp__net_op *op, struct ddp__wire *w);
    /* The last call; it may free the operation. */
    void (*done)(struct ddp__net_op *op, int rc);
};

struct ddp__net {
    struct ddp__wire wire; /* count is 1 without other ranks */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the list, an operation, the state */
    struct ddp__net_op *first, **end;
    int64_t ops;
    unsigned tag; /* of the next operation */
    bool started, closing, ended;
    bool stuck;    /* its thread is in MPI and uses this to the end */
    double moved;  /* when a message last arrived */
    atomic_int rc; /* of the failure that ended all communication, and why */
    char why[1024];
    struct ddp__peers peers;
    struct ddp__watch watch;
    struct ddp__cores own_cores, *cores; /* cores: by rank; owned */
    struct ddp__status *status;          /* of this process; not owned */
    void (*on_peer_lost)(const char *why, void *arg);
    void *arg;
};

/* Find out how this process was started, and join the other ranks.  An error if
 * it was started with others that cannot be reached; if n is stuck then, it
 * must stay where it is. */
int ddp__net_open(struct ddp__net *n, struct ddp__status *status,
                  const struct ddp_config *cfg, int share_key,
                  const struct ddp__topology *t);

/* Leave cores to the other ranks of this machine. */
int ddp__net_share_cores(const struct ddp__net *n, struct ddp__topology *t);

/* Wait for all ranks to end. */
void ddp__net_close(struct ddp__net *n);

/* Append an operation that uses so many tags.  Returns its number. */
int64_t ddp__net_add(struct ddp__net *n, struct ddp__net_op *op, int tags);
void ddp__net_ready(struct ddp__net *n, struct ddp__net_op *op);

/* Whether those after an operation have to wait for it.  To be asked for one
 * after another: *waits, false at first, is whether one so far is not ready. */
bool ddp__net_holds(const struct ddp__net_op *op, bool *waits);

/* How many operations there are, and how many of the first wait for nothing of
 * this rank. */
void ddp__net_counts(struct ddp__net *n, int64_t *ops, int64_t *ready);

/* What a rank does. */
int ddp__net_status(struct ddp__net *n, int rank, struct ddp_rank_status *s);

/* Whether all operations before it are done. */
bool ddp__net_is_oldest(struct ddp__net *n, const struct ddp__net_op *op);

/* By any thread: this rank can no longer do what the others do: all its
 * operations fail with rc and ddp_errmsg(), and so will those of the others. */
void ddp__net_abandon(struct ddp__net *n, int rc);

#endif
