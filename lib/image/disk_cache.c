/* disk_cache.c - decoded images in a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "ddp.h"
#include "image/disk_cache.h"
#include "image/image.h"
#include "image/load.h"
#include "storage/storage.h"

/* What a copy begins with; the pixels follow. */
struct size {
    int32_t w, h, orientation;
};

static struct ddp__copies copies = {.counting = PTHREAD_MUTEX_INITIALIZER};
static char *folder; /* of it; owned; NULL: there is no such cache */

int ddp_image_cache_folder(const char *dir, int64_t bytes)
{
    char *own = NULL;

    if (dir && bytes < 1)
        return ddp__fail(DDP_EINVAL,
                         "a cache of %lld bytes in a folder, expected 1 or "
                         "more",
                         (long long)bytes);
    if (dir && mkdir(dir, 0777) < 0 && errno != EEXIST)
        return ddp__fail(DDP_EIO, "%s: cannot be created: %s", dir,
                         strerror(errno));
    if (dir && !(own = strdup(dir)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    free(folder);
    copies.dir = folder = own;
    copies.limit = bytes;
    return 0;
}

bool ddp__disk_used(void)
{
    return folder;
}

bool ddp__disk_key(struct ddp__storage *in, const char *path,
                   const struct ddp__part *p, char key[DDP__COPY_KEY])
{
    const char *file = p ? p->path : path;
    char stamp[DDP__STAMP];
    int n;

    if (!folder || !in->ops->stamp(in, file, stamp))
        return false;
    n = snprintf(key, DDP__COPY_KEY, "pixels of %s %lld %zu", stamp,
                 p ? (long long)p->at : 0, p ? p->len : 0);
    return n < DDP__COPY_KEY;
}

bool ddp__disk_has(const char *key)
{
    return ddp__copies_has(&copies, key);
}

static bool is_image(const struct ddp__bytes *b, const struct size *s)
{
    return s->w > 0 && s->h > 0 && s->orientation >= 1 && s->orientation <= 8 &&
           (uint64_t)s->w * (uint64_t)s->h == (b->len - sizeof(*s)) / 3 &&
           (b->len - sizeof(*s)) % 3 == 0;
}

bool ddp__disk_find(const char *key, struct ddp__decoded *d)
{
    struct ddp__bytes *b = ddp__image_file();
    struct size s;
    bool there = b && ddp__copies_get(&copies, key, b) && b->len > sizeof(s);

    if (there) {
        memcpy(&s, b->data, sizeof(s));
        there = is_image(b, &s);
    }
    if (there)
        *d = (struct ddp__decoded){s.w, s.h, s.orientation,
                                   (uint8_t *)b->data + sizeof(s)};
    ddp__cache_count(there, 0);
    return there;
}

void ddp__disk_keep(const char *key, const struct ddp__decoded *d)
{
    struct size s = {d->w, d->h, d->orientation};
    const struct iovec of[2] = {{&s, sizeof(s)},
                                {d->rgb, (size_t)d->w * (size_t)d->h * 3}};

    if (ddp__copies_put(&copies, key, of))
        ddp__cache_count(false, (int64_t)of[1].iov_len);
}
