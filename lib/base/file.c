/* file.c - whole files in memory, and names from them
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
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

/* A read that fails for a reason that may pass is tried again after 20 ms, then
 * after four times as long each: 7 s in all.  Network file systems return such
 * errors while a server restarts. */
enum { TRIES = 6, FIRST_WAIT_MS = 20 };

static _Thread_local int64_t retries;

int64_t ddp__file_retries(void)
{
    return retries;
}

void ddp__file_retried(int n)
{
    retries += n;
}

/* Whether the fault is of the storage, not of this file. */
static bool is_storage_error(int error)
{
    static const int errors[] = {
        EIO,       ESTALE,       ETIMEDOUT,  EAGAIN,       ENODEV,      ENXIO,
        EBUSY,     ENETDOWN,     EHOSTDOWN,  ENETUNREACH,  ENOTCONN,    ENOLINK,
        EREMOTEIO, EHOSTUNREACH, ECONNRESET, ECONNREFUSED, ECONNABORTED};

    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (error == errors[i])
            return true;
    return false;
}

/* What is read of a file. */
struct span {
    size_t max; /* all of it, if it has no more bytes */
    int64_t at; /* or len bytes from here */
    size_t len; /* 0: all of it */
};

/* One attempt to read a file. */
struct attempt {
    int fault;    /* code of a fault of the file, such as a missing one */
    bool storage; /* it failed by a fault of the storage */
};

int ddp__errno_code(int fault)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? DDP_ENOMEM
                                                                 : fault;
}

/* Fail with errno's text; the code distinguishes a fault of the file from one
 * of the storage, and of the system. */
static int fail_errno(struct attempt *a, const char *what)
{
    int code = ddp__errno_code(a->fault);

    a->storage = is_storage_error(errno);
    return ddp__fail(a->storage ? DDP_EIO : code, "%s: %s", what,
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

static int read_all(struct attempt *a, int fd, struct ddp__bytes *b, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = read(fd, b->data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(a, "cannot be read");
        if (n == 0)
            return ddp__fail(a->fault, "became shorter while it was read");
        done += (size_t)n;
    }
    b->data[len] = 0;
    b->len = len;
    return 0;
}

static int check_size(const struct stat *st, const struct span *s)
{
    if (!S_ISREG(st->st_mode))
        return ddp__fail(DDP_EDATA, "is not a regular file");
    if (st->st_size == 0)
        return ddp__fail(DDP_EDATA, "is empty");
    if (!s->len && (uintmax_t)st->st_size > s->max)
        return ddp__fail(DDP_EDATA, "has %lld bytes, more than the limit %zu",
                         (long long)st->st_size, s->max);
    if (s->len && (s->at > st->st_size ||
                   s->len > (uintmax_t)st->st_size - (uintmax_t)s->at))
        return ddp__fail(DDP_EDATA,
                         "has %lld bytes, and %zu from byte %lld are expected",
                         (long long)st->st_size, s->len, (long long)s->at);
    return 0;
}

static int read_regular(struct attempt *a, int fd, const struct span *s,
                        struct ddp__bytes *b)
{
    struct stat st;
    size_t len;
    int rc;

    if (fstat(fd, &st) < 0)
        return fail_errno(a, "cannot be read");
    if ((rc = check_size(&st, s)) < 0)
        return rc;
    len = s->len ? s->len : (size_t)st.st_size;
    if (s->at && lseek(fd, s->at, SEEK_SET) < 0)
        return fail_errno(a, "cannot be read");
    if ((rc = ddp__bytes_reserve(b, len)) < 0)
        return rc;
    return read_all(a, fd, b, len);
}

static int read_once(struct attempt *a, int dir, const char *path,
                     const struct span *s, struct ddp__bytes *b)
{
    int rc, fd;

    /* Do not wait for a writer if the path is a pipe. */
    do
        fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return fail_errno(a, "cannot be opened");
    rc = read_regular(a, fd, s, b);
    close(fd);
    return rc;
}

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static int read_file(int fault, int dir, const char *path, const struct span *s,
                     struct ddp__bytes *b)
{
    const struct ddp__error before = ddp__error_save();
    long wait = FIRST_WAIT_MS;

    for (int i = 1;; i++, wait *= 4) {
        struct attempt a = {.fault = fault};
        int rc = read_once(&a, dir, path, s, b);

        if (rc == 0 && i > 1)
            ddp__error_restore(&before);
        if (!a.storage)
            return rc;
        if (i == TRIES)
            return ddp__fail(rc,
                             "%s, %d times: a fault of the storage, not of "
                             "this file",
                             ddp_errmsg(), i);
        retries++;
        sleep_ms(wait);
    }
}

int ddp__file_read(int dir, const char *path, size_t max, struct ddp__bytes *b)
{
    return read_file(DDP_EDATA, dir, path, &(struct span){.max = max}, b);
}

int ddp__file_read_part(int dir, const char *path, int64_t at, size_t len,
                        struct ddp__bytes *b)
{
    return read_file(DDP_EDATA, dir, path, &(struct span){.at = at, .len = len},
                     b);
}

int ddp__file_load(const char *path, size_t max, struct ddp__bytes *b)
{
    int rc = read_file(DDP_EIO, AT_FDCWD, path, &(struct span){.max = max}, b);

    return rc < 0 ? ddp__fail(rc, "%s: %s", path, ddp_errmsg()) : 0;
}

bool ddp__path_is_below(const char *path)
{
    for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
        if (*p == '/' || !strncmp(p, "../", 3) || !strcmp(p, ".."))
            return false;
    return *path;
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
    char path[PATH_MAX]; /* no memory must not look like no file */
    struct stat st;

    return snprintf(path, sizeof(path), "%s/%s", dir, name) <
               (int)sizeof(path) &&
           stat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

bool ddp__dir_exists(const char *dir, const char *name)
{
    return is_type(dir, name, S_IFDIR);
}

bool ddp__file_exists(const char *dir, const char *name)
{
    return is_type(dir, name, S_IFREG);
}
