/* events.h - an event file of TensorBoard
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_EVENTS_H
#define DDP_EVENTS_H

#include "base/proto.h"

struct ddp__events {
    int fd;     /* -1: none */
    char *path; /* owned */
    struct ddp__proto event;
};

/* Make the folder if it is missing, and a file in it that readers take after
 * those that are there.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__events_open(struct ddp__events *e, const char *dir);
/* Also of one that was never opened, with fd -1. */
void ddp__events_close(struct ddp__events *e);

/* Append an event of a step: a field of the message Event and what it has;
 * `what` is empty afterwards.  It is with the system when this returns.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__events_write(struct ddp__events *e, int64_t step, int field,
                      struct ddp__proto *what);

#endif
