/* cache.c - copies of objects on a disk of this machine
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
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "storage/cache.h"
#include "storage/settings.h"

enum {
    FOLDERS = 256,
    KEY_MAX = 4096,
    FILE_MAX = 32,
    PARTS = 16, /* of the limit: one is written between two counts */
};
static const char magic[8] = "DDPCOPY1";

/* What a copy begins with; the key and the object follow. */
struct head {
    char magic[8];
    uint32_t key_len, crc; /* CRC-32C of key and object */
    uint64_t size;
};

/* Bytes written since the folder's were counted; held by who counts. */
static atomic_llong written;
static atomic_bool counted;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

/* ---- names -------------------------------------------------------------- */

/* What a copy is of, and the name of its file: 64 bits of the key's checksums.
 * Two keys with the same name replace each other. */
static bool make_key(const struct ddp__object *o, char key[KEY_MAX],
                     char name[FILE_MAX])
{
    int n = snprintf(key, KEY_MAX, "%s/%s %s %lld %lld", o->server->root,
                     o->path, o->etag, (long long)o->at, (long long)o->size);
    uint32_t a, b;

    if (!ddp__storage_settings()->cache_dir || !*o->etag || n >= KEY_MAX)
        return false;
    a = ddp__crc32c(0, key, (size_t)n);
    b = ddp__crc32c(0x9E3779B9, key, (size_t)n / 2);
    b = ddp__crc32c(b, key, (size_t)n);
    snprintf(name, FILE_MAX, "%02x/%06x%08x", a >> 24, a & 0xffffff, b);
    return true;
}

static int open_dir(void)
{
    return open(ddp__storage_settings()->cache_dir,
                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
static bool read_copy(int fd, const char *key, const struct ddp__object *o,
                      struct ddp__bytes *b)
{
    size_t len = strlen(key), size = (size_t)o->size;
    char stored[KEY_MAX];
    struct stat st;
    struct head h;

    if (fstat(fd, &st) < 0 || (uintmax_t)st.st_size != sizeof(h) + len + size ||
        !read_whole(fd, &h, sizeof(h)) ||
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

bool ddp__cache_get(const struct ddp__object *o, struct ddp__bytes *b)
{
    char key[KEY_MAX], name[FILE_MAX];
    struct ddp__error before = ddp__error_save();
    bool whole = false;
    int dir, fd;

    if (o->size < 0 || !make_key(o, key, name) || (dir = open_dir()) < 0)
        return false;
    if ((fd = openat(dir, name, O_RDWR | O_CLOEXEC)) >= 0) {
        whole = read_copy(fd, key, o, b);
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

/* ---- the limit ---------------------------------------------------------- */

struct copy {
    struct timespec when;
    int64_t size;
    char name[FILE_MAX];
};

struct copies {
    struct copy *copy; /* owned */
    size_t count, room;
    int64_t bytes;
};

static bool add_copy(struct copies *c, const char *folder, const char *file,
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

static bool list_copies(int dir, const char *folder, struct copies *c)
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
static void remove_oldest(int dir, struct copies *c, int64_t limit)
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
    struct copies c = {0};
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

static void note_written(int dir, int64_t bytes)
{
    int64_t limit = ddp__storage_settings()->cache_size;

    if (atomic_fetch_add(&written, bytes) + bytes <= limit / PARTS &&
        atomic_load(&counted))
        return;
    if (pthread_mutex_trylock(&counting) != 0)
        return;
    atomic_store(&written, 0);
    keep_limit(dir, limit);
    atomic_store(&counted, true);
    pthread_mutex_unlock(&counting);
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

static bool write_copy(int fd, const char *key, const struct ddp__bytes *b)
{
    size_t len = strlen(key);
    struct head h = {.key_len = (uint32_t)len, .size = b->len};
    struct iovec part[] = {
        {&h, sizeof(h)}, {(void *)(uintptr_t)key, len}, {b->data, b->len}};

    memcpy(h.magic, magic, sizeof(magic));
    h.crc = ddp__crc32c(ddp__crc32c(0, key, len), b->data, b->len);
    return write_whole(fd, part, 3);
}

/* Under a name of this process's and thread's own until it is whole. */
static bool add_file(int dir, const char *name, const char *key,
                     const struct ddp__bytes *b)
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
    whole = write_copy(fd, key, b);
    whole = close(fd) == 0 && whole && renameat(dir, temp, dir, name) == 0;
    if (!whole)
        unlinkat(dir, temp, 0);
    return whole;
}

void ddp__cache_put(const struct ddp__object *o, const struct ddp__bytes *b)
{
    char key[KEY_MAX], name[FILE_MAX];
    int dir;

    if (!make_key(o, key, name) || (dir = open_dir()) < 0)
        return;
    if (add_file(dir, name, key, b))
        note_written(dir,
                     (int64_t)(sizeof(struct head) + strlen(key) + b->len));
    close(dir);
}
