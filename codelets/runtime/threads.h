/* threads.h - whether as many threads as StarPU needs can be started
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_THREADS_H
#define DDP_THREADS_H

/* Start so many threads at once, with address space left for what they will
 * allocate, and end them.  StarPU starts one per worker and aborts where it
 * cannot.  Fails with DDP_ENOMEM. */
int ddp__threads_check(int count);

#endif
