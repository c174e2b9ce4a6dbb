/* undo.h - contents that buffers had, given back to them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_UNDO_H
#define DDP_UNDO_H

#include "runtime/buffer.h"

/* Give `b` what `kept` has, of the same size, before the tasks that use b and
 * are submitted but must not begin yet; those that used it are done.  Without
 * waiting: done(rc, arg) is called, maybe at once and maybe by a worker.  rc:
 * 0, or DDP_ENOMEM. */
void ddp__handle_undo(struct ddp__handle *b, struct ddp__handle *kept,
                      void (*done)(int rc, void *arg), void *arg);

/* Those tasks know b's version.  So that nothing which was derived from what is
 * undone is taken for current, tasks add this to all versions when they run. */
uint64_t ddp__undo_version(void);

#endif
