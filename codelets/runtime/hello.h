/* hello.h - the first message between ranks: whether they can work together
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HELLO_H
#define DDP_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* What a rank is; its layout never changes. */
struct ddp__hello {
    uint32_t order; /* of bytes: DDP__HELLO_ORDER to who has the same */
    char version[256], host[DDP__HOST_NAME];
};
#define DDP__HELLO_ORDER UINT32_C(0x01020304)

/* The first difference between the ranks, by name; DDP_EINVAL. */
int ddp__hello_compare(const struct ddp__hello *all, int ranks);

/* What processes of the same machine and the same namespace share, in
 * which numbers of processes and cores hold; 0: unknown. */
uint64_t ddp__hello_machine(void);

/* Tell all ranks what there is of this one in all, which is by rank, and wait
 * for what they tell, at most so many seconds (0: for ever).  After a failure
 * it must stay where it is. */
int ddp__hello_gather(struct ddp__wire *w, void *all, size_t size,
                      double seconds);

/* The same of who they are, and compare. */
int ddp__hello_exchange(struct ddp__wire *w, const char *version,
                        double seconds);

#endif
