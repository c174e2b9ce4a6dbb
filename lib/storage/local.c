/* local.c - the storage of this machine: folders of a file system
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "storage/local.h"
#include "storage/visits.h"

struct local {
    struct ddp__storage s;
    char *dir; /* owned; NULL: none */
    int fd;    /* of dir, or AT_FDCWD */
};

/* ---- listing ------------------------------------------------------------ */

struct listing {
    ddp__listed_f fn;
    void *arg;
};

static int list_entry(int fd, const struct dirent *e, void *arg)
{
    const struct listing *l = arg;

    return ddp__is_hidden(e->d_name)
               ? 0
               : l->fn(e->d_name, ddp__entry_is_folder(fd, e), l->arg);
}

static int list_folder(struct ddp__storage *s, const char *folder,
                       ddp__listed_f fn, void *arg)
{
    struct listing l = {fn, arg};

    return ddp__folder_each(((struct local *)s)->fd, folder, list_entry, &l);
}

/* ---- searching ---------------------------------------------------------- */

enum { MAX_DEPTH = 64, MAX_VISITS = 100 };

/* The folders above this one, to detect links that form a cycle. */
struct parent {
    const struct parent *up;
    dev_t dev;
    ino_t ino;
    int depth;
};

/* A search, and what it calls. */
struct search {
    int root;
    ddp__found_f fn;
    void *arg;
    struct ddp__visits visits;
};

/* The search of one folder. */
struct walk {
    struct search *search;
    const char *path; /* below the root */
    struct parent in;
};

static bool leads_back(const struct parent *p, const struct stat *st)
{
    for (; p; p = p->up)
        if (p->dev == st->st_dev && p->ino == st->st_ino)
            return true;
    return false;
}

static int search_folder(struct search *s, const char *path,
                         const struct parent *up);

static int visit_entry(int fd, const struct dirent *e, void *arg)
{
    const struct walk *w = arg;
    struct search *s = w->search;
    char *name = ddp__path_join(w->path, e->d_name);
    int rc;

    if (!name)
        return DDP_ENOMEM;
    rc = ddp__entry_is_folder(fd, e) ? search_folder(s, name, &w->in)
                                     : s->fn(name, s->arg);
    free(name);
    return rc;
}

static int search_folder(struct search *s, const char *path,
                         const struct parent *up)
{
    struct walk w = {s, path, {.up = up, .depth = up->depth + 1}};
    struct stat st;
    int visits;

    if (fstatat(s->root, path, &st, 0) < 0)
        return ddp__fail(ddp__errno_code(DDP_EIO), "%s: %s", path,
                         strerror(errno));
    if (w.in.depth > MAX_DEPTH)
        return ddp__fail(DDP_EDATA, "%s: folders more than %d deep", path,
                         MAX_DEPTH);
    if (leads_back(up, &st))
        return 0;
    if ((visits = ddp__visits_count(&s->visits, &st)) < 0)
        return visits;
    if (visits > MAX_VISITS)
        return ddp__fail(DDP_EDATA,
                         "%s: more than %d links lead to this folder", path,
                         MAX_VISITS);
    w.in.dev = st.st_dev;
    w.in.ino = st.st_ino;
    return ddp__folder_each(s->root, path, visit_entry, &w);
}

static int find_files(struct ddp__storage *storage, const char *folder,
                      ddp__found_f fn, void *arg)
{
    struct search s = {((struct local *)storage)->fd, fn, arg, {0}};
    struct stat st = {0};
    struct parent up = {0};
    int rc;

    if (s.root != AT_FDCWD && fstat(s.root, &st) < 0)
        return ddp__fail(ddp__errno_code(DDP_EIO), "%s: %s", folder,
                         strerror(errno));
    up.dev = st.st_dev;
    up.ino = st.st_ino;
    rc = search_folder(&s, folder, &up);
    ddp__visits_free(&s.visits);
    return rc;
}

/* ---- files -------------------------------------------------------------- */

static int64_t size_of(struct ddp__storage *s, const char *path)
{
    struct stat st;

    if (fstatat(((struct local *)s)->fd, path, &st, 0) < 0)
        return ddp__fail(ddp__errno_code(DDP_EIO), "%s", strerror(errno));
    return S_ISREG(st.st_mode) ? st.st_size
                               : ddp__fail(DDP_EDATA, "is not a regular file");
}

static int read_file(struct ddp__storage *s, const char *path, size_t max,
                     struct ddp__bytes *b)
{
    return ddp__file_read(((struct local *)s)->fd, path, max, b);
}

static int read_part(struct ddp__storage *s, const char *path, int64_t at,
                     size_t len, struct ddp__bytes *b)
{
    return ddp__file_read_part(((struct local *)s)->fd, path, at, len, b);
}

/* The time of the last change of the file's state is not set by programs that
 * keep that of its contents. */
static bool stamp_of(struct ddp__storage *s, const char *path,
                     char stamp[DDP__STAMP])
{
    struct stat st;

    if (fstatat(((struct local *)s)->fd, path, &st, 0) < 0)
        return false;
    snprintf(stamp, DDP__STAMP, "file %ju %ju %jd %jd.%09ld %jd.%09ld",
             (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, (intmax_t)st.st_size,
             (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
             (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    return true;
}

static void close_local(struct ddp__storage *s)
{
    struct local *l = (struct local *)s;

    if (l->fd >= 0)
        close(l->fd);
    free(l->dir);
    free(l);
}

static const struct ddp__storage_ops ops = {
    .list = list_folder,
    .find = find_files,
    .size = size_of,
    .read = read_file,
    .read_part = read_part,
    .stamp = stamp_of,
    .close = close_local,
};

static int open_dir(struct local *l, const char *dir)
{
    if (!dir)
        return 0;
    l->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->fd < 0)
        return ddp__fail(ddp__errno_code(DDP_EIO), "%s: %s", dir,
                         strerror(errno));
    if (!(l->s.dir = l->dir = strdup(dir)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    return 0;
}

struct ddp__storage *ddp__local_open(const char *dir)
{
    struct local *l = calloc(1, sizeof(*l));

    if (!l) {
        ddp__fail(DDP_ENOMEM, "out of memory for a folder");
        return NULL;
    }
    l->s.ops = &ops;
    l->fd = AT_FDCWD;
    if (open_dir(l, dir) == 0)
        return &l->s;
    close_local(&l->s);
    return NULL;
}
