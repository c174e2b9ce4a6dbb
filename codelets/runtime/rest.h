/* rest.h - workers without a task sleep
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REST_H
#define DDP_REST_H

#include <pthread.h>
#include <stdbool.h>

#include <starpu.h>

/* Of one worker. */
struct ddp__rest {
    pthread_cond_t called;
    double since; /* when it found nothing to do; its own */
};

void ddp__rest_init(struct ddp__rest *r);
void ddp__rest_fini(struct ddp__rest *r);

/* The worker has found nothing to do. */
void ddp__rest_idle(struct ddp__rest *r);

/* Whether that was long enough ago for it to sleep. */
bool ddp__rest_due(const struct ddp__rest *r);

/* Sleep without the lock, which the worker holds, until ddp__rest_end(), but
 * for so many seconds and some milliseconds at most. */
void ddp__rest_begin(struct ddp__rest *r, starpu_pthread_mutex_t *lock,
                     double seconds);

/* The worker is called; with the lock. */
void ddp__rest_end(struct ddp__rest *r);

#endif
