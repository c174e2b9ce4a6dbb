/* tar_none.c - tar files, in a build without libarchive
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "storage/tar.h"

static int fail_missing(const char *path)
{
    return ddp__fail(DDP_EIO,
                     "%s: this build of libddp cannot write tar files: install "
                     "libarchive (Debian: libarchive-dev), then run configure "
                     "and make again",
                     path);
}

struct ddp__tar *ddp__tar_create(const char *path)
{
    fail_missing(path);
    return NULL;
}

int ddp__tar_add(struct ddp__tar *t, const char *name, const void *data,
                 size_t len)
{
    (void)t;
    (void)data;
    (void)len;
    return fail_missing(name);
}

int ddp__tar_finish(struct ddp__tar *t)
{
    (void)t;
    return fail_missing("tar");
}

void ddp__tar_drop(struct ddp__tar *t)
{
    (void)t;
}
