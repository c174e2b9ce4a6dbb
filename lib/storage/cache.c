/* cache.c - copies of objects on a disk of this machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>

#include "storage/cache.h"
#include "storage/copies.h"
#include "storage/settings.h"

/* What a copy is of; NULL: it is not to be kept. */
static struct ddp__copies *find_folder(const struct ddp__object *o,
                                       char key[DDP__COPY_KEY])
{
    int n = snprintf(key, DDP__COPY_KEY, "%s/%s %s %lld %lld", o->server->root,
                     o->path, o->etag, (long long)o->at, (long long)o->size);

    return ddp__storage_copies.dir && *o->etag && n < DDP__COPY_KEY
               ? &ddp__storage_copies
               : NULL;
}

bool ddp__cache_get(const struct ddp__object *o, struct ddp__bytes *b)
{
    char key[DDP__COPY_KEY];
    const struct ddp__copies *c = o->size < 0 ? NULL : find_folder(o, key);

    return c && ddp__copies_get(c, key, b) && b->len == (size_t)o->size;
}

void ddp__cache_put(const struct ddp__object *o, const struct ddp__bytes *b)
{
    char key[DDP__COPY_KEY];
    struct ddp__copies *c = find_folder(o, key);
    const struct iovec of[2] = {{b->data, b->len}, {NULL, 0}};

    if (c)
        ddp__copies_put(c, key, of);
}
