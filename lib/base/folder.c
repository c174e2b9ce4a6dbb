/* folder.c - the contents of a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"

static int fail_errno(const char *path)
{
    return ddp__fail(ddp__errno_code(DDP_EIO), "%s: %s", path, strerror(errno));
}

static int visit_entries(DIR *dir, const char *path, ddp__entry_f fn, void *arg)
{
    const struct dirent *e;
    int rc;

    /* cppcheck-suppress readdirCalled ; each thread has its own stream */
    while (errno = 0, (e = readdir(dir)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
            (rc = fn(dirfd(dir), e, arg)) < 0)
            return rc;
    return errno ? fail_errno(path) : 0;
}

int ddp__folder_each(int root, const char *path, ddp__entry_f fn, void *arg)
{
    int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        rc = fail_errno(path);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    rc = visit_entries(dir, path, fn, arg);
    closedir(dir);
    return rc;
}

bool ddp__entry_is_folder(int fd, const struct dirent *e)
{
    struct stat st;

    if (e->d_type == DT_UNKNOWN || e->d_type == DT_LNK)
        return fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
    return e->d_type == DT_DIR;
}

/* ---- names -------------------------------------------------------------- */

int ddp__names_add(struct ddp__names *n, const char *name, size_t len)
{
    if (n->count % 64 == 0) { /* full, or new */
        char **more = realloc(n->name, ((size_t)n->count + 64) * sizeof(*more));

        if (!more)
            return ddp__fail(DDP_ENOMEM, "out of memory for names");
        n->name = more;
    }
    if (!(n->name[n->count] = strndup(name, len)))
        return ddp__fail(DDP_ENOMEM, "out of memory for names");
    n->count++;
    return 0;
}

/* ---- subfolders --------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_entry(int fd, const struct dirent *e, void *arg)
{
    struct ddp__names *n = arg;

    return !ddp__is_hidden(e->d_name) && ddp__entry_is_folder(fd, e)
               ? ddp__names_add(n, e->d_name, strlen(e->d_name))
               : 0;
}

int ddp__folder_list(const char *dir, struct ddp__names *n)
{
    int rc;

    *n = (struct ddp__names){0};
    if ((rc = ddp__folder_each(AT_FDCWD, dir, add_entry, n)) < 0)
        ddp__names_free(n);
    else if (n->count)
        qsort(n->name, (size_t)n->count, sizeof(*n->name), by_bytes);
    return rc;
}

int ddp__names_find(const struct ddp__names *n, const char *name)
{
    char **at = n->count ? bsearch(&name, n->name, (size_t)n->count,
                                   sizeof(*n->name), by_bytes)
                         : NULL;

    return at ? (int)(at - n->name) : -1;
}

void ddp__names_free(struct ddp__names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    *n = (struct ddp__names){0};
}
