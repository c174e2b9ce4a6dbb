/* unpack.c - write the files of a data set into a folder for each class
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_write.h"
#include "data/dataset.h"

/* A class as the name of a folder: it must be one, and not a hidden one. */
static void folder_of(const ddp_dataset_t *d, int32_t label, char *name,
                      size_t size)
{
    snprintf(name, size, "%s", d->class_name[label]);
    for (char *p = name; *p; p++)
        if (*p == '/' || *p == '\\')
            *p = '_';
    if (*name == '.' || !*name)
        *name = '_';
}

/* "CLASS/x.jpg": the name without the folder that it was in, which may be of
 * another name; deeper ones stay. */
static int path_of(ddp_dataset_t *d, int64_t i, const char *dir, char *path,
                   size_t size)
{
    const char *name = d->ops->name(d, i), *slash = strchr(name, '/');
    char folder[256];

    folder_of(d, ddp__dataset_label(d, i), folder, sizeof(folder));
    if (snprintf(path, size, "%s/%s/%s", dir, folder,
                 slash ? slash + 1 : name) < (int)size)
        return 0;
    return ddp__fail(DDP_EIO, "%s: the path is too long", name);
}

/* Create the folders of a path below dir. */
static int make_folders(char *path, size_t dir)
{
    for (char *p = path + dir; (p = strchr(p + 1, '/'));) {
        int rc;

        *p = 0;
        rc = mkdir(path, 0777) < 0 && errno != EEXIST
                 ? ddp__fail(DDP_EIO, "%s: cannot be created: %s", path,
                             strerror(errno))
                 : 0;
        *p = '/';
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Not synced, for a million files would take hours: who loses power unpacks
 * again. */
static int write_file(const char *path, const struct ddp__bytes *b)
{
    struct ddp__sink s = {
        .fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
    bool bad;

    if (s.fd < 0)
        return ddp__fail(DDP_EIO, "%s: cannot be created: %s", path,
                         strerror(errno));
    bad = ddp__write_all(&s, b->data, b->len) < 0;
    bad |= close(s.fd) < 0;
    return bad ? ddp__fail(DDP_EIO, "cannot write %s: %s", path,
                           strerror(errno))
               : 0;
}

static int unpack_one(ddp_dataset_t *d, int64_t i, const char *dir,
                      struct ddp__bytes *b)
{
    char path[PATH_MAX];
    int64_t k, last = ddp__dataset_block(i, 0, d->count, &k);
    int rc = path_of(d, i, dir, path, sizeof(path));

    for (; d->far && k < last; k++)
        d->ops->ahead(d, k);
    if (rc < 0 || (rc = make_folders(path, strlen(dir))) < 0)
        return rc;
    if ((rc = d->ops->file(d, i, b)) < 0)
        return ddp__fail(rc, "%s: %s", ddp_dataset_path(d, i), ddp_errmsg());
    return write_file(path, b);
}

int ddp_dataset_unpack(ddp_dataset_t *d, const char *dir, ddp_count_f on_count,
                       void *arg)
{
    struct ddp__bytes b = {0};
    int rc = 0;

    if (!d)
        return ddp__fail_null("data set");
    if (!dir || !d->ops->file || !d->class_name)
        return ddp__fail(DDP_EINVAL, "only image files of classes can be "
                                     "unpacked, and into a folder");
    if (mkdir(dir, 0777) < 0)
        return ddp__fail(errno == EEXIST ? DDP_EINVAL : DDP_EIO,
                         "%s: cannot be created: %s", dir, strerror(errno));
    for (int64_t i = 0; rc == 0 && i < d->count; i++)
        if ((rc = unpack_one(d, i, dir, &b)) == 0 && on_count)
            on_count(i + 1, d->count, arg);
    free(b.data);
    return rc;
}
