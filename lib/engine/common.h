/* common.h - packed weights that the ranks of a host share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COMMON_H
#define DDP_COMMON_H

struct ddp__engine;

/* Have the engine's calls share them, before their first task; every rank calls
 * this.  DDP_EPEER, DDP_ENOMEM; it is no failure if memory cannot be
 * shared.  It is freed when the calls have been released. */
int ddp__common_new(struct ddp__engine *e);

#endif
