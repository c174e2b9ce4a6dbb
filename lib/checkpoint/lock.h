/* lock.h - a folder of checkpoints that one process at a time writes to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_LOCK_H
#define DDP_CHECKPOINT_LOCK_H

struct ddp__ckpt_lock {
    int dir;                      /* the folder, open; -1: not locked */
    struct ddp__renewal *renewal; /* owned */
};

/* Open a folder and lock it for this process.  After a process on another
 * machine that did not unlock it, this takes half a minute: whether it lives is
 * seen only then.
 * Errors   DDP_EINVAL: another one has locked it, and since when; DDP_EIO;
 *          DDP_ENOMEM. */
int ddp__ckpt_lock(struct ddp__ckpt_lock *l, const char *path);
void ddp__ckpt_unlock(struct ddp__ckpt_lock *l);

/* DDP_EINVAL if a process on another machine took this one for dead, and has
 * the folder now. */
int ddp__ckpt_lock_check(const struct ddp__ckpt_lock *l, const char *path);

#endif
