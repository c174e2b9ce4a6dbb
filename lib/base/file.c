/* file.c - whole files in memory, and names from them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

/* Fail with errno's text; the code distinguishes a fault of the file from one
 * of the system. */
static int fail_errno(const char *what)
{
    bool system = errno == EMFILE || errno == ENFILE || errno == ENOMEM;

    return ddp__fail(system ? DDP_ENOMEM : DDP_EIO, "%s: %s", what,
                     strerror(errno));
}

int ddp__bytes_reserve(struct ddp__bytes *b, size_t len)
{
    uint8_t *data;

    if (b->room > len)
        return 0;
    if (!(data = malloc(len + len / 4 + 1)))
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu bytes", len);
    free(b->data);
    b->data = data;
    b->room = len + len / 4 + 1;
    return 0;
}

static int read_all(int fd, struct ddp__bytes *b, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, b->data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno("cannot be read");
        if (n == 0)
            return ddp__fail(DDP_EIO, "became shorter while it was read");
        done += (size_t)n;
    }
    b->data[len] = 0;
    b->len = len;
    return 0;
}

static int read_regular(int fd, size_t max, struct ddp__bytes *b)
{
    struct stat st;
    int rc;

    if (fstat(fd, &st) < 0)
        return fail_errno("cannot be read");
    if (!S_ISREG(st.st_mode))
        return ddp__fail(DDP_EDATA, "is not a regular file");
    if (st.st_size == 0)
        return ddp__fail(DDP_EDATA, "is empty");
    if ((uintmax_t)st.st_size > max)
        return ddp__fail(DDP_EDATA, "has %lld bytes, more than the limit %zu",
                         (long long)st.st_size, max);
    if ((rc = ddp__bytes_reserve(b, (size_t)st.st_size)) < 0)
        return rc;
    return read_all(fd, b, (size_t)st.st_size);
}

int ddp__file_read(int dir, const char *path, size_t max, struct ddp__bytes *b)
{
    int rc, fd;

    /* Do not wait for a writer if the path is a pipe. */
    do
        fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return fail_errno("cannot be opened");
    rc = read_regular(fd, max, b);
    close(fd);
    return rc;
}

int ddp__file_load(const char *path, size_t max, struct ddp__bytes *b)
{
    char why[256];
    int rc = ddp__file_read(AT_FDCWD, path, max, b);

    if (rc < 0) {
        snprintf(why, sizeof(why), "%s", ddp_errmsg());
        return ddp__fail(rc, "%s: %s", path, why);
    }
    return 0;
}

char *ddp__path_join(const char *dir, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        ddp__fail(DDP_ENOMEM, "out of memory for a path");
        return NULL;
    }
    return path;
}

static bool is_type(const char *dir, const char *name, mode_t type)
{
    char *path = ddp__path_join(dir, name);
    struct stat st;
    bool yes = path && stat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;

    free(path);
    return yes;
}

bool ddp__dir_exists(const char *dir, const char *name)
{
    return is_type(dir, name, S_IFDIR);
}

bool ddp__file_exists(const char *dir, const char *name)
{
    return is_type(dir, name, S_IFREG);
}

void ddp__printable(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
}
