/* file_write.c - files that appear whole or not at all
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file_write.h"

int ddp__write_all(struct ddp__sink *s, const void *data, size_t n)
{
    const char *p = data;

    s->crc = ddp__crc32c(s->crc, data, n);
    s->size += n;
    while (n > 0) {
        ssize_t done = write(s->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = EIO; /* it would be so forever */
        if (done <= 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Some file systems cannot sync a folder, which is not an error of what is in
 * it. */
int ddp__parent_sync(const char *path)
{
    char copy[PATH_MAX]; /* allocating could fail */
    int fd, rc;

    snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    rc = fsync(fd);
    if (rc < 0 && (errno == EINVAL || errno == ENOTSUP))
        rc = 0;
    close(fd);
    return rc;
}

/* Create a temporary file in the folder of path; its name is to be freed. */
static int open_temporary(const char *path, char **name)
{
    int fd;

    for (unsigned i = 0; i < 100; i++) {
        if (asprintf(name, "%s.%ld-%u.tmp", path, (long)getpid(), i) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        free(*name);
        *name = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static int fail_writing(const char *path, int error)
{
    return ddp__fail(error == ENOMEM ? DDP_ENOMEM : DDP_EIO,
                     "%s: cannot be written: %s", path, strerror(error));
}

/* The order makes it safe against crashes and power failures: a complete
 * temporary file is on the disk before it gets the name, and the name is in
 * the folder on the disk before success is returned. */
int ddp__file_replace(const char *path,
                      int (*fill)(struct ddp__sink *s, void *arg), void *arg,
                      struct ddp__sink *sum)
{
    char *name;
    struct ddp__sink s = {.fd = open_temporary(path, &name)};
    int error;

    if (s.fd < 0)
        return fail_writing(path, errno);
    error = fill(&s, arg) < 0 || fsync(s.fd) < 0 ? errno : 0;
    if (close(s.fd) < 0 && !error)
        error = errno;
    if (!error && rename(name, path) < 0)
        error = errno;
    if (error) {
        unlink(name);
        free(name);
        return fail_writing(path, error);
    }
    free(name);
    if (sum)
        *sum = s;
    if (ddp__parent_sync(path) < 0)
        return ddp__fail(DDP_EIO,
                         "%s: written, but a power failure may lose it: %s",
                         path, strerror(errno));
    return 0;
}
