/* lock.h - a folder of checkpoints that one process at a time writes to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_LOCK_H
#define DDP_CHECKPOINT_LOCK_H

/* Open a folder and lock it for this process, until the result is closed.
 * Errors   DDP_EINVAL: another one has locked it, and since when; DDP_EIO. */
int ddp__ckpt_lock(const char *path);

#endif
