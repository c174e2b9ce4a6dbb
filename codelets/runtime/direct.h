/* direct.h - gradients of GPUs between ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DIRECT_H
#define DDP_DIRECT_H

#include <stdbool.h>

#include "ops_backend.h"
#include "runtime/buffer.h"
#include "runtime/task_group.h"

/* The memory that a vector is in while it is summed. */
struct ddp__direct {
    const struct ddp__space *space; /* NULL: the main one */
    int node, device; /* number of the memory, and of its device */
    bool messages;    /* are there too; false: in main memory */
};

/* The number of the memory in which the worker that owns a vector has it, by
 * the worker's number among those that train. */
int ddp__direct_home(const ddp_t *ddp, int owner);

/* Have a vector there before a task asks for it, once those submitted so far
 * are done. */
void ddp__direct_fetch(struct ddp__handle *h, int node,
                       struct ddp__task_group *g);

/* In that memory if the thread of the messages can use it, else in the main
 * one. */
void ddp__direct_to(const ddp_t *ddp, int node, struct ddp__direct *d);

#endif
