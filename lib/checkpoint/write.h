/* write.h - from a copy of a run's state to a folder on disk
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_WRITE_H
#define DDP_CHECKPOINT_WRITE_H

#include "checkpoint/copy.h"
#include "checkpoint/lock.h"

/* A folder of checkpoints that one process at a time writes to. */
struct ddp__ckpt_dir {
    char *path; /* owned */
    struct ddp__ckpt_lock lock;
    int keep;           /* number of the newest ones to keep */
    int64_t keep_steps; /* also keep those after a multiple of it; 0: none */
};

/* Create the folder, lock it against other processes, and remove the remains of
 * a process that died. */
int ddp__ckpt_dir_open(struct ddp__ckpt_dir *d);

/* Write a copy as a folder in d, set the links and remove old checkpoints.  The
 * copy's tensors are in PyTorch's order of elements afterwards. */
int ddp__ckpt_write(const struct ddp__ckpt_dir *d, struct ddp__ckpt_copy *c);

#endif
