/* clock.h - seconds that no change of the date touches
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CLOCK_H
#define DDP_CLOCK_H

#include <pthread.h>
#include <time.h>

/* Seconds since some time in the past. */
double ddp__clock(void);

/* For pthread_cond_timedwait() with a condition of ddp__clock_condition(): in
 * so many seconds. */
struct timespec ddp__clock_after(double seconds);
void ddp__clock_condition(pthread_cond_t *c);

#endif
