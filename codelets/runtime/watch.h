/* watch.h - whether MPI returns to the thread that carries messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WATCH_H
#define DDP_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ddp__net;

struct ddp__watch {
    pthread_t thread;
    pthread_cond_t end; /* with the net's lock */
    bool ended;
    _Atomic int64_t ticks;
};

/* Begin and end to watch the net's thread; by that thread.  If MPI does not
 * return to it because a rank is lost, the net breaks with DDP_EPEER meanwhile.
 */
int ddp__watch_begin(struct ddp__net *n);
void ddp__watch_end(struct ddp__net *n);

/* By the net's thread, now and then: it is not inside MPI. */
void ddp__watch_tick(struct ddp__net *n);

#endif
