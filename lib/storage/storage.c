/* storage.c - which kind of storage a name means
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "storage/local.h"
#include "storage/remote.h"
#include "storage/storage.h"

struct ddp__storage *ddp__storage_open(const char *dir)
{
    return dir && ddp__storage_is_remote(dir) ? ddp__remote_open(dir)
                                              : ddp__local_open(dir);
}

void ddp__storage_close(struct ddp__storage *s)
{
    if (s)
        s->ops->close(s);
}

int ddp__storage_check(const char *dir)
{
    struct ddp__storage *s;

    if (!ddp__storage_is_remote(dir))
        return 0;
    if (!(s = ddp__remote_open(dir)))
        return ddp_errcode();
    ddp__storage_close(s);
    return 0;
}

/* A scheme as RFC 3986 has it, and "://". */
bool ddp__storage_is_remote(const char *dir)
{
    size_t n = strspn(dir, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "abcdefghijklmnopqrstuvwxyz0123456789+.-");

    return n > 0 && !strncmp(dir + n, "://", 3);
}

void ddp__storage_name(const struct ddp__storage *s, const char *path,
                       char *name, size_t size)
{
    snprintf(name, size, "%s%s%s", s->dir ? s->dir : "", s->dir ? "/" : "",
             path);
}

int ddp__storage_read(struct ddp__storage *s, const char *path, size_t max,
                      struct ddp__bytes *b)
{
    return s->ops->read(s, path, max, b);
}

/* ---- by complete names -------------------------------------------------- */

int ddp__storage_load(const char *path, size_t max, struct ddp__bytes *b)
{
    return ddp__storage_is_remote(path) ? ddp__remote_load(path, max, b)
                                        : ddp__file_load(path, max, b);
}

bool ddp__storage_has_folder(const char *dir, const char *name)
{
    return ddp__storage_is_remote(dir) ? ddp__remote_has_folder(dir, name)
                                       : ddp__dir_exists(dir, name);
}

bool ddp__storage_has_file(const char *dir, const char *name)
{
    return ddp__storage_is_remote(dir) ? ddp__remote_has_file(dir, name)
                                       : ddp__file_exists(dir, name);
}

int ddp__storage_folders(const char *dir, struct ddp__names *n)
{
    return ddp__storage_is_remote(dir) ? ddp__remote_folders(dir, n)
                                       : ddp__folder_list(dir, n);
}
