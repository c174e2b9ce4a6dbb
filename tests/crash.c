/* crash.c - every call that changes the disk below a folder, one by one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The calls are made by number, for libc's functions of these names are hidden
 * behind ours.  A write is counted twice when copies are kept: the second copy
 * has half of it.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash.h"

enum { FDS = 1024, PATH = 4096 };

struct crash crash;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool
    ours[FDS]; /* descriptors of files and folders below the folder */
static __thread bool inside;

/* Files that were written to and folders that got a name, by inode, until they
 * are synced. */
static ino_t unsynced[FDS];

void crash_begin(enum crash_mode mode, const char *dir)
{
    crash.dir = dir;
    crash.count = crash.unsynced = 0;
    crash.what[0] = 0;
    memset(unsynced, 0, sizeof(unsynced));
    crash.mode = mode; /* other threads may see the rest now */
}

static void keep_copy(void)
{
    char cmd[2 * PATH];

    snprintf(cmd, sizeof(cmd), "cp -a '%s' '%s/%d'", crash.dir, crash.copies,
             crash.count);
    inside = true;
    if (system(cmd) != 0)
        abort();
    inside = false;
}

/* Returns whether the call is to fail, with errno set. */
static bool point(const char *what)
{
    bool fails = false;

    if (crash.mode == CRASH_OFF || inside)
        return false;
    if (crash.mode == CRASH_COPY && !strcmp(what, "fsync"))
        return false; /* leaves what the next call finds */
    pthread_mutex_lock(&lock);
    if (crash.mode == CRASH_COPY)
        keep_copy();
    if (crash.mode == CRASH_KILL && crash.count == crash.at)
        raise(SIGKILL);
    if (crash.mode == CRASH_FAIL)
        fails =
            crash.forever ? crash.count >= crash.at : crash.count == crash.at;
    if (fails && !crash.what[0])
        snprintf(crash.what, sizeof(crash.what), "%s", what);
    crash.count++;
    pthread_mutex_unlock(&lock);
    if (fails)
        errno = crash.error;
    return fails;
}

static void list_folder(const char *what, const char *path)
{
    if (crash.mode == CRASH_LIST && !inside)
        fprintf(stderr, "%s %s\n", what, path);
}

static void list_synced(int fd)
{
    char link[32], path[PATH];
    ssize_t n;

    if (crash.mode != CRASH_LIST)
        return;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if ((n = readlink(link, path, sizeof(path) - 1)) < 0)
        return;
    path[n] = 0;
    list_folder("fsync", path);
}

static bool below(int dir, const char *path)
{
    const char *folder = crash.dir;
    size_t n = folder ? strlen(folder) : 0;

    if (n && path[0] == '/')
        return !strncmp(path, folder, n);
    return dir >= 0 && dir < FDS && ours[dir];
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    bool mine = crash.dir && below(dir, path);
    int fd;

    if (mine && (flags & O_CREAT) && point("open"))
        return -1;
    fd = (int)syscall(SYS_openat, dir, path, flags, mode);
    if (fd >= 0 && fd < FDS)
        ours[fd] = mine;
    return fd;
}

static mode_t mode_of(int flags, va_list ap)
{
    return flags & O_CREAT ? va_arg(ap, mode_t) : 0;
}

/* ---- what is not on the disk yet ---------------------------------------- */

/* The place of an inode in the list; of 0: a free one. */
static ino_t *find_unsynced(ino_t inode)
{
    for (int i = 0; i < FDS; i++)
        if (unsynced[i] == inode)
            return &unsynced[i];
    return NULL;
}

static void note_synced(int fd, bool synced)
{
    struct stat st;
    ino_t *at;

    if (crash.mode != CRASH_COUNT || fstat(fd, &st) < 0)
        return;
    pthread_mutex_lock(&lock);
    at = find_unsynced(st.st_ino);
    if (synced && at)
        *at = 0;
    else if (!synced && !at && (at = find_unsynced(0)))
        *at = st.st_ino;
    pthread_mutex_unlock(&lock);
}

/* A name is given to the file at `path`: what it stands for must be on the
 * disk.  The folder of the name is `dir` or, for a path, that of `path`. */
static void note_name(int dir, const char *path)
{
    char parent[PATH];
    struct stat st;
    int fd;

    if (crash.mode != CRASH_COUNT || !below(dir, path) ||
        fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        S_ISLNK(st.st_mode)) /* links may be lost */
        return;
    if (find_unsynced(st.st_ino))
        crash.unsynced++;
    snprintf(parent, sizeof(parent), "%s", path);
    *(strrchr(parent, '/') ? strrchr(parent, '/') : parent) = 0;
    fd = (int)syscall(SYS_openat, dir, *parent ? parent : ".", O_RDONLY, 0);
    note_synced(fd, false);
    close(fd);
}

/* A link to something in this folder, which must not lose that again. */
static void note_link(int dir)
{
    struct stat st;

    if (crash.mode == CRASH_COUNT && fstat(dir, &st) == 0 &&
        find_unsynced(st.st_ino))
        crash.unsynced++;
}

/* ---- as a library that is preloaded ------------------------------------- */

static __attribute__((constructor)) void begin_from_environment(void)
{
    const char *text = getenv("DDP_CRASH");
    static char dir[PATH];
    char word[16] = "";

    if (!text || sscanf(text, "%15s %d %4000s", word, &crash.at, dir) != 3)
        return;
    crash.forever = strchr(word, '+');
    crash.error = !strncmp(word, "EIO", 3) ? EIO : ENOSPC;
    crash_begin(!strcmp(word, "kill")    ? CRASH_KILL
                : !strcmp(word, "count") ? CRASH_COUNT
                : !strcmp(word, "list")  ? CRASH_LIST
                                         : CRASH_FAIL,
                dir);
}

static __attribute__((destructor)) void tell_count(void)
{
    const char *text = getenv("DDP_CRASH");

    if (text && crash.count && !strncmp(text, "count", 5))
        fprintf(stderr, "calls=%d\n", crash.count);
    if (text && crash.what[0])
        fprintf(stderr, "failed=%s\n", crash.what);
}

/* ---- libc's names ------------------------------------------------------- */

int open(const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = mode_of(flags, ap);
    va_end(ap);
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = mode_of(flags, ap);
    va_end(ap);
    return open_at(dir, path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t n)
{
    const char *p = data;
    ssize_t half;

    if (fd < 0 || fd >= FDS || !ours[fd] || inside)
        return syscall(SYS_write, fd, data, n);
    if (point("write"))
        return -1;
    note_synced(fd, false);
    if (crash.mode != CRASH_COPY || n < 2)
        return syscall(SYS_write, fd, data, n);
    half = syscall(SYS_write, fd, p, n / 2);
    point("write");
    return half < 0 ? -1
                    : half + syscall(SYS_write, fd, p + half, n - (size_t)half);
}

int fsync(int fd)
{
    if (fd >= 0 && fd < FDS && ours[fd] && point("fsync"))
        return -1;
    list_synced(fd);
    note_synced(fd, true);
    return (int)syscall(SYS_fsync, fd);
}

int mkdir(const char *path, mode_t mode)
{
    if (below(-1, path) && point("mkdir"))
        return -1;
    list_folder("mkdir", path);
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rename(const char *from, const char *to)
{
    if (below(-1, to) && point("rename"))
        return -1;
    list_folder("rename", to);
    note_name(AT_FDCWD, from);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    if (below(b, to) && point("rename"))
        return -1;
    note_name(a, from);
    return (int)syscall(SYS_renameat2, a, from, b, to, flags);
}

int renameat(int a, const char *from, int b, const char *to)
{
    return renameat2(a, from, b, to, 0);
}

int symlinkat(const char *to, int dir, const char *path)
{
    if (below(dir, path) && point("symlink"))
        return -1;
    note_link(dir);
    return (int)syscall(SYS_symlinkat, to, dir, path);
}

int unlinkat(int dir, const char *path, int flags)
{
    if (below(dir, path) && point("unlink"))
        return -1;
    return (int)syscall(SYS_unlinkat, dir, path, flags);
}

/* Text by stdio is written at fflush(), if it is short.  libc opens and writes
 * it by itself: these two call libc's. */
FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    bool mine = mode[0] == 'w' && below(-1, path);
    FILE *f;

    if ((mine && point("open")) ||
        (crash.no_locks && !strcmp(path, "/proc/locks")))
        return NULL;
    if ((f = next(path, mode)) && fileno(f) < FDS)
        ours[fileno(f)] = mine;
    return f;
}

int fflush(FILE *f)
{
    int (*next)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
    int fd = f ? fileno(f) : -1;

    if (fd >= 0 && fd < FDS && ours[fd] && point("write"))
        return EOF;
    return next(f);
}

int unlink(const char *path)
{
    if (below(-1, path) && point("unlink"))
        return -1;
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
