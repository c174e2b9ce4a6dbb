/* remote.c - the storage of servers: S3 and web servers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "storage/fetch.h"
#include "storage/remote.h"
#include "storage/servers.h"

/* A server, or a folder of it. */
struct remote {
    struct ddp__storage s;
    struct ddp__server *server;
    char *dir;   /* owned */
    char *below; /* path of the folder with '/' at the end, or ""; owned */
};

/* ---- folders ------------------------------------------------------------ */

/* The path of a folder in the tree, with '/' at the end unless it is all. */
static char *path_below(const struct remote *r, const char *folder)
{
    char *path;
    int n = strcmp(folder, ".") ? asprintf(&path, "%s%s/", r->below, folder)
                                : asprintf(&path, "%s", r->below);

    if (n >= 0)
        return path;
    ddp__fail(DDP_ENOMEM, "out of memory for a path");
    return NULL;
}

static int fail_folder(const struct remote *r, const char *folder)
{
    return ddp__fail(DDP_EIO, "%s%s%s: no files are there", r->dir,
                     strcmp(folder, ".") ? "/" : "",
                     strcmp(folder, ".") ? folder : "");
}

/* Entries follow each other, files and what is in subfolders. */
static int list_folder(struct ddp__storage *s, const char *folder,
                       ddp__listed_f fn, void *arg)
{
    struct remote *r = (struct remote *)s;
    const struct ddp__tree *t = &r->server->tree;
    char *path = path_below(r, folder), *name = NULL;
    size_t i, end, len = path ? strlen(path) : 0;
    int rc = path ? 0 : DDP_ENOMEM;

    end = rc == 0 ? ddp__tree_below(t, path, &i) : (i = 0);
    if (rc == 0 && i == end)
        rc = fail_folder(r, folder);
    while (rc == 0 && i < end) {
        const char *at = ddp__tree_path(t, i) + len;
        size_t n = strcspn(at, "/"), skip;

        if (n && !(name = strndup(at, n)))
            rc = ddp__fail(DDP_ENOMEM, "out of memory for a name");
        else if (n && !ddp__is_hidden(name))
            rc = fn(name, at[n] == '/', arg);
        free(name);
        name = NULL;
        for (skip = i + 1; at[n] == '/' && skip < end; skip++)
            if (strncmp(ddp__tree_path(t, skip) + len, at, n + 1) != 0)
                break;
        i = skip;
    }
    free(path);
    return rc;
}

static int find_files(struct ddp__storage *s, const char *folder,
                      ddp__found_f fn, void *arg)
{
    struct remote *r = (struct remote *)s;
    const struct ddp__tree *t = &r->server->tree;
    char *path = path_below(r, folder);
    size_t i, end, skip = strlen(r->below);
    int rc = path ? 0 : DDP_ENOMEM;

    end = rc == 0 ? ddp__tree_below(t, path, &i) : (i = 0);
    for (; rc == 0 && i < end; i++) {
        const char *file = ddp__tree_path(t, i);

        if (file[strlen(file) - 1] != '/')
            rc = fn(file + skip, arg);
    }
    free(path);
    return rc;
}

/* ---- files -------------------------------------------------------------- */

/* Find a file; DDP_EDATA as for one of a folder of this machine. */
static int find_object(struct remote *r, const char *path, size_t max,
                       struct ddp__object *o)
{
    const struct ddp__tree *t = &r->server->tree;
    char *full;

    if (asprintf(&full, "%s%s", r->below, path) < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    *o = (struct ddp__object){.server = r->server};
    o->leaf = ddp__tree_find(t, full);
    free(full);
    if (o->leaf == SIZE_MAX)
        return ddp__fail(DDP_EDATA,
                         "cannot be opened: No such file or directory");
    o->path = ddp__tree_path(t, o->leaf);
    o->etag = ddp__tree_etag(t, o->leaf);
    o->size = t->leaf[o->leaf].size;
    o->most = max;
    if (o->size == 0)
        return ddp__fail(DDP_EDATA, "is empty");
    if ((uintmax_t)o->size > max)
        return ddp__fail(DDP_EDATA, "has %lld bytes, more than the limit %zu",
                         (long long)o->size, max);
    return 0;
}

/* The same for some of its bytes. */
static int find_part(struct remote *r, const char *path, int64_t at, size_t len,
                     struct ddp__object *o)
{
    int rc = find_object(r, path, SIZE_MAX, o);

    if (rc < 0)
        return rc;
    if (at > o->size || len > (uintmax_t)o->size - (uintmax_t)at)
        return ddp__fail(DDP_EDATA,
                         "has %lld bytes, and %zu from byte %lld are expected",
                         (long long)o->size, len, (long long)at);
    o->part = true;
    o->at = at;
    o->size = (int64_t)len;
    return 0;
}

static int64_t size_of(struct ddp__storage *s, const char *path)
{
    struct ddp__object o;
    int rc = find_object((struct remote *)s, path, SIZE_MAX, &o);

    return rc < 0 ? rc : o.size;
}

static int read_file(struct ddp__storage *s, const char *path, size_t max,
                     struct ddp__bytes *b)
{
    struct ddp__object o;
    int rc = find_object((struct remote *)s, path, max, &o);

    return rc < 0 ? rc : ddp__fetch(&o, b);
}

static int read_part(struct ddp__storage *s, const char *path, int64_t at,
                     size_t len, struct ddp__bytes *b)
{
    struct ddp__object o;
    int rc = find_part((struct remote *)s, path, at, len, &o);

    return rc < 0 ? rc : ddp__fetch(&o, b);
}

/* The reader will say what is wrong. */
static void fetch_ahead(struct ddp__storage *s, const char *path, int64_t at,
                        size_t len)
{
    struct remote *r = (struct remote *)s;
    struct ddp__error before = ddp__error_save();
    struct ddp__object o;

    if ((len ? find_part(r, path, at, len, &o)
             : find_object(r, path, SIZE_MAX, &o)) == 0)
        ddp__fetch_ahead(&o);
    ddp__error_restore(&before);
}

/* ---- opening ------------------------------------------------------------ */

static void close_remote(struct ddp__storage *s)
{
    struct remote *r = (struct remote *)s;

    if (r->server)
        ddp__server_leave(r->server);
    free(r->dir);
    free(r->below);
    free(r);
}

static bool stamp_of(struct ddp__storage *s, const char *path,
                     char stamp[DDP__STAMP])
{
    struct ddp__error before = ddp__error_save();
    struct ddp__object o = {0};
    int n;

    if (find_object((struct remote *)s, path, SIZE_MAX, &o) < 0) {
        ddp__error_restore(&before);
        return false;
    }
    n = snprintf(stamp, DDP__STAMP, "%s/%s %s %lld", o.server->root, o.path,
                 o.etag, (long long)o.size);
    return *o.etag && n < DDP__STAMP;
}

static const struct ddp__storage_ops ops = {
    .list = list_folder,
    .find = find_files,
    .size = size_of,
    .read = read_file,
    .read_part = read_part,
    .ahead = fetch_ahead,
    .stamp = stamp_of,
    .close = close_remote,
};

static int set_below(struct remote *r)
{
    const char *path = r->dir + strlen(r->server->root);

    path += *path == '/';
    if (asprintf(&r->below, "%s%s", path, *path ? "/" : "") >= 0)
        return 0;
    r->below = NULL;
    return ddp__fail(DDP_ENOMEM, "out of memory for a path");
}

static struct remote *open_remote(const char *dir)
{
    struct remote *r = calloc(1, sizeof(*r));

    if (!r || !(r->dir = ddp__address_clean(dir, strlen(dir)))) {
        free(r);
        ddp__fail(DDP_ENOMEM, "out of memory for an address");
        return NULL;
    }
    r->s.ops = &ops;
    r->s.dir = r->dir;
    if ((r->server = ddp__server_use(r->dir)) && set_below(r) == 0)
        return r;
    close_remote(&r->s);
    return NULL;
}

struct ddp__storage *ddp__remote_open(const char *dir)
{
    struct remote *r = open_remote(dir);

    return r ? &r->s : NULL;
}

/* ---- by complete names -------------------------------------------------- */

/* Read a file without a list of those next to it. */
static int load_alone(const char *dir, const char *name, size_t max,
                      struct ddp__bytes *b)
{
    struct ddp__server *s = ddp__server_new(dir);
    struct ddp__object o = {s, SIZE_MAX, name, "", -1, max, false, 0};
    int rc;

    if (!s)
        return ddp_errcode();
    ddp__thread_note_cores();
    rc = ddp__fetch(&o, b);
    ddp__server_free(s);
    return rc;
}

int ddp__remote_load(const char *path, size_t max, struct ddp__bytes *b)
{
    const char *name = strrchr(path, '/') + 1;
    const char *host = strstr(path, "://") + 3;
    struct remote *r = NULL;
    char *dir;
    int rc;

    if ((rc = ddp__address_check(path)) < 0)
        return rc;
    if (name == host || !*name)
        return ddp__fail(DDP_EINVAL, "%s: expected the address of a file",
                         path);
    if (!(dir = ddp__address_clean(path, (size_t)(name - path) - 1)))
        return DDP_ENOMEM;
    if (!ddp__server_is_open(dir))
        rc = load_alone(dir, name, max, b);
    else if ((r = open_remote(dir)))
        rc = read_file(&r->s, name, max, b);
    else
        rc = ddp_errcode();
    if (r)
        close_remote(&r->s);
    free(dir);
    return rc < 0 ? ddp__fail(rc, "%s: %s", path, ddp_errmsg()) : 0;
}

/* Whether dir has an entry of this name that is a folder, or a file. */
static bool has_entry(const char *dir, const char *name, bool folder)
{
    struct remote *r = open_remote(dir);
    bool found = false;
    char *path;
    size_t i, end;

    if (r && (path = path_below(r, name))) {
        if (!folder)
            path[strlen(path) - 1] = 0;
        end = ddp__tree_below(&r->server->tree, path, &i);
        found = folder ? i < end
                       : ddp__tree_find(&r->server->tree, path) != SIZE_MAX;
        free(path);
    }
    if (r)
        close_remote(&r->s);
    return found;
}

bool ddp__remote_has_folder(const char *dir, const char *name)
{
    return has_entry(dir, name, true);
}

bool ddp__remote_has_file(const char *dir, const char *name)
{
    return has_entry(dir, name, false);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(const char *name, bool folder, void *arg)
{
    struct ddp__names *n = arg;

    if (!folder)
        return 0;
    if (n->count % 64 == 0) { /* full, or new */
        char **more = realloc(n->name, ((size_t)n->count + 64) * sizeof(*more));

        if (!more)
            return ddp__fail(DDP_ENOMEM, "out of memory for folder names");
        n->name = more;
    }
    if (!(n->name[n->count] = strdup(name)))
        return ddp__fail(DDP_ENOMEM, "out of memory for folder names");
    n->count++;
    return 0;
}

int ddp__remote_folders(const char *dir, struct ddp__names *n)
{
    struct remote *r = open_remote(dir);
    int rc = r ? 0 : ddp_errcode();

    *n = (struct ddp__names){0};
    if (rc == 0)
        rc = list_folder(&r->s, ".", add_folder, n);
    if (rc < 0)
        ddp__names_free(n);
    else if (n->count)
        qsort(n->name, (size_t)n->count, sizeof(*n->name), by_bytes);
    if (r)
        close_remote(&r->s);
    return rc;
}
