/* shared_pack.h - packed weights that the processes of a host make together
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * It begins with a head, is zeros at first, and may be mapped anywhere.
 */
#ifndef DDP_SHARED_PACK_H
#define DDP_SHARED_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ddp__packing;
struct ddp__shared_pack;

/* Bytes of a head and a copy of so many. */
size_t ddp__shared_pack_size(size_t copy);

void *ddp__shared_pack_data(struct ddp__shared_pack *s);

/* What names the n weights w that all ranks have made with update `common`.  A
 * few of them are in it: ranks that differ nevertheless share nothing. */
uint64_t ddp__shared_pack_key(uint64_t common, const float *w, size_t n);

/* Make the copy of how->key, whatever parts others have not begun.  Give it
 * back with ddp__shared_pack_put().  False: another is being read, or a process
 * is late or has ended: pack for yourself. */
bool ddp__shared_pack_get(struct ddp__shared_pack *s,
                          const struct ddp__packing *how);
void ddp__shared_pack_put(struct ddp__shared_pack *s);

#endif
