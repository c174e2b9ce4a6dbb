/* messages.h - the messages of an exchange
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_MESSAGES_H
#define DDP_MESSAGES_H

#include <stdbool.h>

#include "wire.h"

struct ddp__messages {
    struct ddp__wire *wire; /* not owned */
    int tag, count;
    uintptr_t *request; /* owned */
};

/* At most so many at a time.  DDP_ENOMEM. */
int ddp__messages_new(struct ddp__messages *m, struct ddp__wire *w, int tag,
                      int most);

/* Begin a message, unless it is empty.  The error of the MPI module. */
int ddp__messages_send(struct ddp__messages *m, int to, const void *data,
                       size_t len);
int ddp__messages_receive(struct ddp__messages *m, int from, void *data,
                          size_t len);

/* 1: all so far are over, and others may follow; 0: not yet. */
int ddp__messages_poll(struct ddp__messages *m);

/* After a failure the module still uses what it has not finished. */
bool ddp__messages_over(const struct ddp__messages *m);

#endif
