/* shards.h - which tar files a name stands for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SHARDS_H
#define DDP_SHARDS_H

#include "base/folder.h"

struct ddp__shards {
    char *dir; /* the folder or address; owned */
    struct ddp__names file;
};

/* The tar files that NAME.tar, ranges in braces, or a text file stand for, in
 * the order in which they are named.  DDP_EDATA, DDP_EINVAL: what is wrong. */
int ddp__shards_find(struct ddp__shards *s, const char *name);
void ddp__shards_free(struct ddp__shards *s);

#endif
