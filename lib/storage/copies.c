/* copies.c - a folder of copies of something that takes long to get
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A copy is written under another name and renamed, so that others see it whole
 * or not at all; after a crash of the machine its checksum tells.  When the
 * folder becomes too large, the copies that were not used for the longest time
 * go.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "storage/copies.h"

enum {
    FOLDERS = 256,
    FILE_MAX = 32,
    PARTS = 16, /* of the limit: one is written between two counts */
};
static const char magic[8] = "DDPCOPY1";

/* What a copy begins with; the key and the bytes follow. */
struct head {
    char magic[8];
    uint32_t key_len, crc; /* CRC-32C of key and bytes */
    uint64_t size;
};

/* ---- names -------------------------------------------------------------- */

/* The name of a copy's file: 64 bits of its key's checksums.  Two keys with the
 * same name replace each other. */
static void make_name(const char *key, char name[FILE_MAX])
{
    size_t n = strlen(key);
    uint32_t a = ddp__crc32c(0, key, n);
    uint32_t b = ddp__crc32c(0x9E3779B9, key, n / 2);

    b = ddp__crc32c(b, key, n);
    snprintf(name, FILE_MAX, "%02x/%06x%08x", a >> 24, a & 0xffffff, b);
}

static int open_dir(const struct ddp__copies *c)
{
    return open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- reading ------------------------------------------------------------ */

static bool read_whole(int fd, void *to, size_t n)
{
    char *p = to;

    while (n) {
        ssize_t got = read(fd, p, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

/* Whether the open file is a whole copy, which is then in b. */
static bool read_copy(int fd, const char *key, struct ddp__bytes *b)
{
    size_t len = strlen(key), size;
    char stored[DDP__COPY_KEY];
    struct stat st;
    struct head h;

    if (fstat(fd, &st) < 0 || (uintmax_t)st.st_size < sizeof(h) + len)
        return false;
    size = (size_t)st.st_size - sizeof(h) - len;
    if (!read_whole(fd, &h, sizeof(h)) ||
        memcmp(h.magic, magic, sizeof(magic)) != 0 || h.key_len != len ||
        h.size != size || !read_whole(fd, stored, len) ||
        memcmp(stored, key, len) != 0 || ddp__bytes_reserve(b, size) < 0 ||
        !read_whole(fd, b->data, size) ||
        ddp__crc32c(ddp__crc32c(0, key, len), b->data, size) != h.crc)
        return false;
    b->data[size] = 0;
    b->len = size;
    return true;
}

bool ddp__copies_get(const struct ddp__copies *c, const char *key,
                     struct ddp__bytes *b)
{
    char name[FILE_MAX];
    struct ddp__error before = ddp__error_save();
    bool whole = false;
    int dir, fd;

    if (strlen(key) >= DDP__COPY_KEY || (dir = open_dir(c)) < 0)
        return false;
    make_name(key, name);
    if ((fd = openat(dir, name, O_RDWR | O_CLOEXEC)) >= 0) {
        whole = read_copy(fd, key, b);
        if (whole)
            futimens(fd, NULL);
        else
            unlinkat(dir, name, 0);
        close(fd);
    }
    close(dir);
    ddp__error_restore(&before);
    return whole;
}

bool ddp__copies_has(const struct ddp__copies *c, const char *key)
{
    char name[FILE_MAX];
    int dir = open_dir(c);
    bool has;

    if (dir < 0)
        return false;
    make_name(key, name);
    has = faccessat(dir, name, F_OK, 0) == 0;
    close(dir);
    return has;
}

/* ---- the limit ---------------------------------------------------------- */

struct copy {
    struct timespec when;
    int64_t size;
    char name[FILE_MAX];
};

struct list {
    struct copy *copy; /* owned */
    size_t count, room;
    int64_t bytes;
};

static bool add_copy(struct list *c, const char *folder, const char *file,
                     const struct stat *st)
{
    struct copy *one;

    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 1024;
        struct copy *more = realloc(c->copy, room * sizeof(*more));

        if (!more)
            return false;
        c->copy = more;
        c->room = room;
    }
    one = &c->copy[c->count];
    if (snprintf(one->name, sizeof(one->name), "%s/%s", folder, file) >=
        (int)sizeof(one->name))
        return true;
    one->when = st->st_mtim;
    one->size = st->st_size;
    c->bytes += st->st_size;
    c->count++;
    return true;
}

static bool list_copies(int dir, const char *folder, struct list *c)
{
    int fd = openat(dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    struct stat st;
    bool all = true;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return errno == ENOENT;
    }
    /* cppcheck-suppress readdirCalled ; each thread has its own stream */
    while (all && (e = readdir(d)))
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            all = add_copy(c, folder, e->d_name, &st);
    closedir(d);
    return all;
}

static int by_age(const void *pa, const void *pb)
{
    const struct timespec *a = &((const struct copy *)pa)->when;
    const struct timespec *b = &((const struct copy *)pb)->when;

    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

/* Until an eighth of the limit is free. */
static void remove_oldest(int dir, struct list *c, int64_t limit)
{
    qsort(c->copy, c->count, sizeof(*c->copy), by_age);
    for (size_t i = 0; i < c->count && c->bytes > limit - limit / 8; i++)
        if (unlinkat(dir, c->copy[i].name, 0) == 0 || errno == ENOENT)
            c->bytes -= c->copy[i].size;
}

/* Count the folder's bytes, which others change too, and have room for what is
 * written until they are counted again.  One process does at a time. */
static void keep_limit(int dir, int64_t limit)
{
    struct list c = {0};
    char folder[4];
    bool all = true;

    if (flock(dir, LOCK_EX | LOCK_NB) < 0)
        return;
    for (int i = 0; all && i < FOLDERS; i++) {
        snprintf(folder, sizeof(folder), "%02x", i);
        all = list_copies(dir, folder, &c);
    }
    if (c.bytes > limit - limit / PARTS)
        remove_oldest(dir, &c, limit);
    flock(dir, LOCK_UN);
    free(c.copy);
}

static void note_written(struct ddp__copies *c, int dir, int64_t bytes)
{
    if (atomic_fetch_add(&c->written, bytes) + bytes <= c->limit / PARTS &&
        atomic_load(&c->counted))
        return;
    if (pthread_mutex_trylock(&c->counting) != 0)
        return;
    atomic_store(&c->written, 0);
    keep_limit(dir, c->limit);
    atomic_store(&c->counted, true);
    pthread_mutex_unlock(&c->counting);
}

/* ---- writing ------------------------------------------------------------ */

static bool write_whole(int fd, struct iovec *part, int parts)
{
    while (parts) {
        ssize_t n = writev(fd, part, parts);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        for (; parts && (size_t)n >= part->iov_len; parts--, part++)
            n -= (ssize_t)part->iov_len;
        if (parts) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
        }
    }
    return true;
}

static bool write_copy(int fd, const char *key, const struct iovec of[2])
{
    size_t len = strlen(key);
    struct head h = {.key_len = (uint32_t)len,
                     .crc = ddp__crc32c(0, key, len),
                     .size = of[0].iov_len + of[1].iov_len};
    struct iovec part[] = {
        {&h, sizeof(h)}, {(void *)(uintptr_t)key, len}, of[0], of[1]};

    memcpy(h.magic, magic, sizeof(magic));
    for (int i = 0; i < 2; i++)
        h.crc = ddp__crc32c(h.crc, of[i].iov_base, of[i].iov_len);
    return write_whole(fd, part, 4);
}

/* Under a name of this process's and thread's own until it is whole. */
static bool add_file(int dir, const char *name, const char *key,
                     const struct iovec of[2])
{
    static atomic_uint number;
    char temp[64], folder[3] = {name[0], name[1], 0};
    bool whole;
    int fd;

    snprintf(temp, sizeof(temp), "%s/new-%d-%u", folder, (int)getpid(),
             atomic_fetch_add(&number, 1));
    if (mkdirat(dir, folder, 0777) < 0 && errno != EEXIST)
        return false;
    fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    whole = write_copy(fd, key, of);
    whole = close(fd) == 0 && whole && renameat(dir, temp, dir, name) == 0;
    if (!whole)
        unlinkat(dir, temp, 0);
    return whole;
}

bool ddp__copies_put(struct ddp__copies *c, const char *key,
                     const struct iovec of[2])
{
    size_t len = strlen(key);
    char name[FILE_MAX];
    bool added;
    int dir;

    if (len >= DDP__COPY_KEY || (dir = open_dir(c)) < 0)
        return false;
    make_name(key, name);
    if ((added = add_file(dir, name, key, of)))
        note_written(c, dir,
                     (int64_t)(sizeof(struct head) + len + of[0].iov_len +
                               of[1].iov_len));
    close(dir);
    return added;
}
