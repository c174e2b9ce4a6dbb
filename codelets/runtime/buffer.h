/* buffer.h - the memory of tasks, as StarPU handles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_BUFFER_H
#define DDP_BUFFER_H

#include <stdbool.h>

#include <starpu.h>

enum { DDP__MAIN_MEMORY = STARPU_MAIN_RAM };

/* A handle and what identifies its contents: version counts the writes that
 * were submitted.  common: the update that all ranks made last, with the same
 * result; 0: something else has written since. */
struct ddp__handle {
    starpu_data_handle_t h;
    uint64_t id, version, common;
    size_t size;
};

/* Register size bytes that StarPU allocates where and while they are needed,
 * or, with ptr, the memory there (not owned). */
void ddp__handle_register(struct ddp__handle *b, void *ptr, size_t size);
void ddp__handle_unregister(struct ddp__handle *b);

/* The same without waiting for the tasks that use it. */
void ddp__handle_unregister_later(struct ddp__handle *b);

/* The contents in main memory, for the host to read or (write) to change, once
 * the tasks submitted so far that use them are done; until close, later tasks
 * wait.  NULL: inside a task, where nothing may wait, `what` begins the
 * message; or there is no memory.  ddp_errcode() tells. */
void *ddp__handle_open(struct ddp__handle *b, bool write, const char *what);
void ddp__handle_close(struct ddp__handle *b);

/* Replace all of it.  DDP_EINVAL: from inside a task; DDP_ENOMEM. */
int ddp__handle_fill(struct ddp__handle *b, const void *data);

/* The contents in the memory with this number, without waiting: ready(arg) is
 * called, maybe at once and maybe by a worker, when ddp__handle_memory() is
 * valid; then release it.  write alone: the contents so far are not needed. */
void ddp__handle_acquire(struct ddp__handle *b, int node, bool read, bool write,
                         void (*ready)(void *arg), void *arg);
void ddp__handle_release(struct ddp__handle *b, int node);
/* NULL: there was no memory. */
void *ddp__handle_memory(const struct ddp__handle *b, int node);

/* Give up the contents once the tasks submitted so far are done. */
void ddp__handle_drop(struct ddp__handle *b);

/* The same for a buffer that got no memory, so that its next task asks again.
 * While no task uses it. */
void ddp__handle_drop_missing(struct ddp__handle *b);

/* DDP_ENOMEM, with the message that a buffer of this size gets no memory. */
int ddp__buffer_fail(size_t size);
int ddp__device_buffer_fail(size_t size);

#endif
