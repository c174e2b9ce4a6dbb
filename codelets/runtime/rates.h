/* rates.h - how fast workers are, and when they will be done
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All are estimates, of workers whose rate is known.
 */
#ifndef DDP_RATES_H
#define DDP_RATES_H

#include "runtime/claims.h"

/* How fast a worker is with a graph; 0: unknown. */
double ddp__rate_of(const struct ddp__claimer *w, int graph);

/* Seconds that a worker takes for u. */
double ddp__rate_seconds(const struct ddp__claimer *w,
                         const struct ddp__sched_sub *u);

/* When a worker is so late with what it does, or with u, that it could have
 * done one more. */
double ddp__rate_late(const struct ddp__claimer *w,
                      const struct ddp__sched_sub *u, double now);

/* Seconds until a worker should have ended what it claimed, of known rates. */
double ddp__rate_busy(const struct ddp__claimer *w, double now);

/* That of another worker, whose merges and updates are short; INFINITY if it is
 * late: nobody knows. */
double ddp__rate_free(const struct ddp__claimer *w,
                      const struct ddp__sched_sub *u, double now);

/* Seconds until a worker that is busy for so many would have ended u too. */
double ddp__rate_ends_in(const struct ddp__claims *c, int id,
                         const struct ddp__sched_sub *u, double busy);

/* How many sub-batches like u another worker ends within so many seconds. */
int ddp__rate_ends_within(const struct ddp__claims *c, int id,
                          const struct ddp__sched_sub *u, double seconds,
                          double now);

/* Note what is left of a worker's sub-batches. */
void ddp__rate_note(struct ddp__claims *c, int id);

/* Note that a task of an accelerator begins, whose data have come, and that one
 * of any worker ends, of sub-batch u or (NULL) of none. */
void ddp__rate_begin(struct ddp__claims *c, int id);
void ddp__rate_end(struct ddp__claims *c, int id, struct ddp__sched_sub *u);

/* Note that a worker has left a sub-batch to a faster one. */
void ddp__rate_left(struct ddp__claimer *w, const struct ddp__sched_sub *u);

/* Note how fast its worker was with a sub-batch that is done. */
void ddp__rate_done(struct ddp__claims *c, const struct ddp__sched_sub *u);

/* Seconds that the sums of u's lane would take from one worker to another. */
double ddp__rate_moves_in(const struct ddp__sched_sub *u, int worker, int id);

#endif
