/* visits.h - how often a search has been in each folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_VISITS_H
#define DDP_VISITS_H

#include <stddef.h>
#include <sys/stat.h>

/* A hash table of folders; all zeros: none. */
struct ddp__visits {
    struct ddp__visit {
        dev_t dev;
        ino_t ino;
        int times; /* 0: a free slot */
    } * slot;      /* owned */
    size_t count, room;
};

/* Count a visit: how many there were, this one included, or DDP_ENOMEM. */
int ddp__visits_count(struct ddp__visits *v, const struct stat *st);
void ddp__visits_free(struct ddp__visits *v);

#endif
