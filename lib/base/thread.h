/* thread.h - threads that take no signals
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_THREAD_H
#define DDP_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Start a thread that takes no signals and may run on every core, wherever the
 * one that starts it is bound.  An error number. */
int ddp__thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

/* Note the cores that the calling thread may run on: all of the process's,
 * before workers are bound. */
void ddp__thread_note_cores(void);

/* Call fn(arg, 0) to fn(arg, n - 1), each once, by so many threads at most and
 * one per core; this one is among them. */
void ddp__threads_each(int n, int most, void (*fn)(void *arg, int i),
                       void *arg);

/* Set so many bytes to 0.  The kernel takes a second to clear a GiB of fresh
 * pages, so all cores do it. */
void ddp__threads_zero(void *p, size_t size);

#endif
