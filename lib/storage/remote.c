/* remote.c - the storage of servers: S3 and web servers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A program asks several questions about a data set before it opens one split
 * and then another.  So the list of a server is kept for a while after its last
 * user.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/thread.h"
#include "storage/fetch.h"
#include "storage/remote.h"
#include "storage/s3.h"
#include "storage/web.h"

enum { KEPT_S = 60, FAILED_S = 10 };

/* A server, or a folder of it. */
struct remote {
    struct ddp__storage s;
    struct ddp__server *server;
    char *dir;   /* owned */
    char *below; /* path of the folder with '/' at the end, or ""; owned */
};

/* All servers that are open, or were a moment ago. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ddp__server *servers;

/* ---- servers ------------------------------------------------------------ */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void free_server(struct ddp__server *s)
{
    atomic_store(&s->closing, true);
    ddp__fetch_forget(s);
    ddp__tree_free(&s->tree);
    s->ops->free(s);
    free(s->root);
    free(s);
}

/* With the lock. */
static void free_old_servers(void)
{
    for (struct ddp__server **at = &servers, *s; (s = *at);)
        if (!s->users && now() - s->unused > KEPT_S) {
            *at = s->next;
            free_server(s);
        } else {
            at = &s->next;
        }
}

/* A host, maybe with a port. */
static bool is_host(const char *host, size_t n)
{
    size_t name = *host == '['
                      ? strcspn(host, "]") + 1
                      : strspn(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "abcdefghijklmnopqrstuvwxyz0123456789._-");

    if (!n || name > n)
        return false;
    return name == n || (host[name] == ':' &&
                         strspn(host + name + 1, "0123456789") == n - name - 1);
}

/* An address may hold a secret: "user:password@", or a signature in a query.
 * Messages then must not have it. */
static int check_address(const char *address)
{
    const char *host = strstr(address, "://") + 3;

    if (strpbrk(address, "?#") || !is_host(host, strcspn(host, "/")))
        return ddp__fail(DDP_EINVAL,
                         "an address of data is %.*s, a host or bucket, and a "
                         "path; it must not have a name and password, or a "
                         "query (after '?')",
                         (int)(host - address), address);
    for (const char *p = address; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 127)
            return ddp__fail(DDP_EINVAL,
                             "%s: an address must not have spaces in it",
                             address);
    return 0;
}

/* A copy of the first n bytes without slashes that mean nothing. */
static char *clean_address(const char *address, size_t n)
{
    size_t start = (size_t)(strstr(address, "://") + 3 - address);
    char *copy = strndup(address, n), *out = copy ? copy + start : NULL;

    if (!copy) {
        ddp__fail(DDP_ENOMEM, "out of memory for an address");
        return NULL;
    }
    for (const char *in = out; *in; in++)
        if (*in != '/' || (in[1] != '/' && in[1]))
            *out++ = *in;
    *out = 0;
    return copy;
}

static struct ddp__server *new_server(const char *address)
{
    static const struct {
        const char *scheme;
        struct ddp__server *(*open)(const char *address);
    } kinds[] = {{"s3://", ddp__s3_new},
                 {"http://", ddp__web_new},
                 {"https://", ddp__web_new}};
    const char *host = strstr(address, "://") + 3;

    if (check_address(address) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strncmp(address, kinds[i].scheme, strlen(kinds[i].scheme)))
            return kinds[i].open(address);
    ddp__fail(DDP_EINVAL, "%.*s: expected a folder, s3://, http:// or https://",
              (int)(host - address), address);
    return NULL;
}

static int list_server(struct ddp__server *s)
{
    int rc = s->ops->list(s, &s->tree);

    if (rc == 0)
        rc = ddp__tree_sort(&s->tree);
    if (rc == 0 && !s->tree.count)
        rc = ddp__fail(DDP_EDATA, "there are no files below this address");
    if (rc < 0)
        return ddp__fail(rc, "%s: %s", s->root, ddp_errmsg());
    return 0;
}

/* With the lock: a server of which the address is a part, or NULL. */
static struct ddp__server *find_server(const char *address)
{
    for (struct ddp__server *s = servers; s; s = s->next) {
        size_t n = strlen(s->root);

        if (!strncmp(s->root, address, n) && (!address[n] || address[n] == '/'))
            return s;
    }
    return NULL;
}

/* The last address that could not be opened.  Who asks several questions about
 * it waits for the first answer only. */
static struct {
    char address[512], message[1024];
    int rc;
    double when;
} failed;

static void note_failure(const char *address, int rc)
{
    snprintf(failed.address, sizeof(failed.address), "%s", address);
    snprintf(failed.message, sizeof(failed.message), "%s", ddp_errmsg());
    failed.rc = rc;
    failed.when = now();
}

static bool failed_before(const char *address)
{
    if (!failed.rc || strcmp(failed.address, address) != 0 ||
        now() - failed.when > FAILED_S)
        return false;
    ddp__fail(failed.rc, "%s", failed.message);
    return true;
}

/* With the lock. */
static struct ddp__server *open_server(const char *address)
{
    struct ddp__server *s = find_server(address);
    int rc;

    if (s || failed_before(address) || !(s = new_server(address)))
        return s;
    if ((rc = list_server(s)) < 0) {
        note_failure(address, rc);
        free_server(s);
        return NULL;
    }
    s->next = servers;
    servers = s;
    return s;
}

static struct ddp__server *use_server(const char *address)
{
    struct ddp__server *s;

    ddp__thread_note_cores();
    pthread_mutex_lock(&lock);
    free_old_servers();
    if ((s = open_server(address)))
        s->users++;
    pthread_mutex_unlock(&lock);
    return s;
}

static void leave_server(struct ddp__server *s)
{
    pthread_mutex_lock(&lock);
    if (--s->users == 0)
        s->unused = now();
    pthread_mutex_unlock(&lock);
}

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
        leave_server(r->server);
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

    if (!r || !(r->dir = clean_address(dir, strlen(dir)))) {
        free(r);
        ddp__fail(DDP_ENOMEM, "out of memory for an address");
        return NULL;
    }
    r->s.ops = &ops;
    r->s.dir = r->dir;
    if ((r->server = use_server(r->dir)) && set_below(r) == 0)
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

static bool is_open(const char *dir)
{
    bool open;

    pthread_mutex_lock(&lock);
    open = find_server(dir);
    pthread_mutex_unlock(&lock);
    return open;
}

/* Read a file without a list of those next to it. */
static int load_alone(const char *dir, const char *name, size_t max,
                      struct ddp__bytes *b)
{
    struct ddp__server *s = new_server(dir);
    struct ddp__object o = {s, SIZE_MAX, name, "", -1, max, false, 0};
    int rc;

    if (!s)
        return ddp_errcode();
    ddp__thread_note_cores();
    rc = ddp__fetch(&o, b);
    free_server(s);
    return rc;
}

int ddp__remote_load(const char *path, size_t max, struct ddp__bytes *b)
{
    const char *name = strrchr(path, '/') + 1;
    const char *host = strstr(path, "://") + 3;
    struct remote *r = NULL;
    char *dir;
    int rc;

    if ((rc = check_address(path)) < 0)
        return rc;
    if (name == host || !*name)
        return ddp__fail(DDP_EINVAL, "%s: expected the address of a file",
                         path);
    if (!(dir = clean_address(path, (size_t)(name - path) - 1)))
        return DDP_ENOMEM;
    if (!is_open(dir))
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
