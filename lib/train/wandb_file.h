/* wandb_file.h - a file of records of Weights & Biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WANDB_FILE_H
#define DDP_WANDB_FILE_H

#include <sys/types.h>

#include "base/proto.h"

struct ddp__wandb_file {
    int fd;     /* -1: none, or it could not be written */
    char *path; /* owned */
    off_t size; /* of whole records */
    uint64_t count;
    struct ddp__proto record;
};

/* Make a new file; the path becomes the file's, also after a failure.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__wandb_create(struct ddp__wandb_file *f, char *path);

/* Whether a record is kept. */
typedef bool ddp__wandb_keeps(const unsigned char *record, size_t len,
                              void *arg);

/* The same for one that is there, which is cut off at the first record that
 * is not kept, or that is not whole.
 * Errors   DDP_EDATA: it is not such a file; DDP_EIO, DDP_ENOMEM. */
int ddp__wandb_reopen(struct ddp__wandb_file *f, char *path,
                      ddp__wandb_keeps *keeps, void *arg);
/* Also of one that was never opened, with fd -1. */
void ddp__wandb_close(struct ddp__wandb_file *f);

/* Append a record: a field of the message Record and what it has; `what` is
 * empty afterwards.  It is with the system when this returns.  After a failure,
 * nothing is written any more.
 * Errors   DDP_EIO, DDP_ENOMEM. */
int ddp__wandb_write(struct ddp__wandb_file *f, int field,
                     struct ddp__proto *what);

/* Cut off what came after the first `count` records, when the file had `size`
 * bytes. */
int ddp__wandb_cut(struct ddp__wandb_file *f, off_t size, uint64_t count);

#endif
