/* copies.h - a folder of copies of something that takes long to get
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Several processes may share a folder.
 */
#ifndef DDP_COPIES_H
#define DDP_COPIES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "base/file.h"

enum { DDP__COPY_KEY = 4096 }; /* keys are shorter */

struct ddp__copies {
    const char *dir; /* that exists; not owned */
    int64_t limit;   /* bytes */
    /* Bytes written since the folder's were counted; held by who counts. */
    atomic_llong written;
    atomic_bool counted;
    pthread_mutex_t counting;
};

/* Read the copy that a key names, if there is one that is whole. */
bool ddp__copies_get(const struct ddp__copies *c, const char *key,
                     struct ddp__bytes *b);

/* Whether there may be one. */
bool ddp__copies_has(const struct ddp__copies *c, const char *key);

/* Keep a copy, whose bytes are in two parts.  False: it cannot be written; the
 * run does not need it. */
bool ddp__copies_put(struct ddp__copies *c, const char *key,
                     const struct iovec of[2]);

#endif
