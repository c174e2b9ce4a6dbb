/* tar_scan.h - the files in a tar file, one after the other
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TAR_SCAN_H
#define DDP_TAR_SCAN_H

#include "storage/storage.h"

struct ddp__tar_scan;

/* A regular file in it. */
struct ddp__tar_entry {
    const char *name;
    int64_t at, len; /* where its bytes are */
};

/* Called for an entry; a negative code ends the scan and is its result. */
typedef int (*ddp__tar_entry_f)(struct ddp__tar_scan *t,
                                const struct ddp__tar_entry *e, void *arg);

/* Call fn for each regular file of a tar file, in their order.  DDP_EDATA: it
 * is damaged or truncated; messages name it. */
int ddp__tar_scan(struct ddp__storage *in, const char *file,
                  ddp__tar_entry_f fn, void *arg);

/* The bytes of an entry, from fn, until its next call; NULL: it cannot be read.
 */
const uint8_t *ddp__tar_scan_bytes(struct ddp__tar_scan *t,
                                   const struct ddp__tar_entry *e);

#endif
