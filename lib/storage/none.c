/* none.c - the storage of servers, in a build without libcurl
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <string.h>

#include "base/error.h"
#include "storage/remote.h"

static int fail_missing(const char *name)
{
    return ddp__fail(DDP_EIO,
                     "%.*s: this build of libddp reads local files only: "
                     "install libcurl 7.87 or later and expat (Debian: "
                     "libcurl4-openssl-dev, libexpat1-dev), then run configure "
                     "and make again",
                     (int)strcspn(name, "?"), name);
}

struct ddp__storage *ddp__remote_open(const char *dir)
{
    fail_missing(dir);
    return NULL;
}

int ddp__remote_load(const char *path, size_t max, struct ddp__bytes *b)
{
    (void)max;
    (void)b;
    return fail_missing(path);
}

bool ddp__remote_has_folder(const char *dir, const char *name)
{
    (void)dir;
    (void)name;
    return false;
}

bool ddp__remote_has_file(const char *dir, const char *name)
{
    (void)dir;
    (void)name;
    return false;
}

int ddp__remote_folders(const char *dir, struct ddp__names *n)
{
    (void)n;
    return fail_missing(dir);
}
