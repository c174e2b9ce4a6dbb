/* host.h - memory that the ranks of a host share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HOST_H
#define DDP_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

/* Zeros at first; at NULL: there is none. */
struct ddp__host_memory {
    char *at;
    size_t size;
};

/* Map memory that the first rank of this host makes, with those of its ranks
 * that need as much of it for the same use; others get none.  Every rank calls
 * it.  DDP_EPEER, DDP_ENOMEM; it is no failure if memory cannot be
 * shared. */
int ddp__host_map(ddp_t *ddp, const char *name, size_t size, uint32_t use,
                  struct ddp__host_memory *m);
void ddp__host_unmap(struct ddp__host_memory *m);

#endif
