/* ahead.h - transfers that begin before a worker asks for them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Of the policy "ddp", whose lock is held but where a transfer begins.
 */
#ifndef DDP_AHEAD_H
#define DDP_AHEAD_H

#include "runtime/claims.h"

/* Whether data are sent to a worker before it asks for them. */
bool ddp__ahead_used(int id);

/* Begin the transfers of a task that will run on a worker. */
void ddp__ahead_task(struct starpu_task *t, int id);

/* Whether a memory has all that a task reads. */
bool ddp__ahead_has(struct starpu_task *t, unsigned node);

/* Whether a worker with this memory can run a task without waiting for data, or
 * nothing fetches them before it takes the task. */
bool ddp__ahead_arrived(struct starpu_task *t, unsigned node);

/* Note that the input of a sub-batch is in main memory.  Returns the worker
 * that will probably claim it; -1: nobody knows. */
int ddp__ahead_filled(struct ddp__claims *c, const struct ddp__sched_tag *tag,
                      starpu_data_handle_t input);

/* The sub-batch whose input a worker will probably need next and that shall be
 * sent, one at a time; NULL: none.  The first task of a sub-batch is not ready
 * before its lane's memory is free, and then the worker would wait for it.
 * Nobody claims it until `sending` is false again. */
struct ddp__sched_sub *ddp__ahead_expected(struct ddp__claims *c, int id);

/* Begin the transfer of its input, without the policy's lock. */
void ddp__ahead_input(starpu_data_handle_t input, int id);

#endif
