/* read.h - the checkpoints on disk: listed, verified and read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_READ_H
#define DDP_CHECKPOINT_READ_H

#include "checkpoint/changes.h"
#include "checkpoint/copy.h"

/* Steps of the checkpoints in dir, the newest first; their number, or a code.
 * *step is to be freed. */
int64_t ddp__ckpt_list(const char *dir, int64_t **step);

/* Read the checkpoint in the folder path into c, whose sets are allocated, and
 * verify that every byte is unchanged.  settings are those of this run.
 * Errors   DDP_EDATA, DDP_EIO: it is damaged; DDP_EINVAL, DDP_ESHAPE: it
 * belongs to another run. */
int ddp__ckpt_read(const char *path, const json_t *settings,
                   struct ddp__changes *changes, struct ddp__ckpt_copy *c);

#endif
