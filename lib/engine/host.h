/* host.h - memory that the ranks of a host share, for packed weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HOST_H
#define DDP_HOST_H

struct ddp__engine;

/* Have the engine's calls share it, before their first task; every rank calls
 * this.  DDP_EPEER; that memory cannot be shared is no failure. */
int ddp__host_share(struct ddp__engine *e);

/* When its calls have been released. */
void ddp__host_free(struct ddp__engine *e);

#endif
