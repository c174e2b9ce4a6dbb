/* tree.c - the files of a server, by their paths
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "storage/tree.h"

const char *ddp__tree_path(const struct ddp__tree *t, size_t i)
{
    return t->text + t->leaf[i].at;
}

const char *ddp__tree_etag(const struct ddp__tree *t, size_t i)
{
    const char *path = ddp__tree_path(t, i);

    return path + strlen(path) + 1;
}

void ddp__tree_free(struct ddp__tree *t)
{
    free(t->leaf);
    free(t->text);
    *t = (struct ddp__tree){0};
}

/* ---- adding ------------------------------------------------------------- */

static int reserve_leaf(struct ddp__tree *t, size_t len)
{
    void *p;

    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 256;

        if (!(p = realloc(t->leaf, room * sizeof(*t->leaf))))
            goto nomem;
        t->leaf = p;
        t->room = room;
    }
    if (t->text_room - t->len < len) {
        size_t room = 2 * (t->len + len) + 4096;

        if (!(p = realloc(t->text, room)))
            goto nomem;
        t->text = p;
        t->text_room = room;
    }
    return 0;

nomem:
    return ddp__fail(DDP_ENOMEM, "out of memory for a list of %zu files",
                     t->count);
}

/* Names that a file system could not have, or that lead out of the folder,
 * must not become paths. */
static int check_path(const char *path)
{
    size_t n;

    for (const char *p = path; *p; p += n + (p[n] == '/')) {
        n = strcspn(p, "/");
        if (n == 0)
            return ddp__fail(DDP_EDATA,
                             "\"%.200s\" has an empty name in its path", path);
        if (!strncmp(p, "..", n) && n <= 2)
            return ddp__fail(DDP_EDATA,
                             "\"%.200s\" has the name \"%.*s\" in its path",
                             path, (int)n, p);
    }
    if (!*path)
        return ddp__fail(DDP_EDATA, "a file has no name");
    return 0;
}

int ddp__tree_add(struct ddp__tree *t, const char *path, const char *etag,
                  int64_t size)
{
    size_t n = strlen(path) + 1, m = strlen(etag) + 1;
    int rc = check_path(path);

    if (rc < 0 || (rc = reserve_leaf(t, n + m)) < 0)
        return rc;
    memcpy(t->text + t->len, path, n);
    memcpy(t->text + t->len + n, etag, m);
    t->leaf[t->count++] = (struct ddp__leaf){t->len, size};
    t->len += n + m;
    return 0;
}

static int by_path(const void *a, const void *b, void *text)
{
    const struct ddp__leaf *x = a, *y = b;

    return strcmp((const char *)text + x->at, (const char *)text + y->at);
}

int ddp__tree_sort(struct ddp__tree *t)
{
    if (t->count)
        qsort_r(t->leaf, t->count, sizeof(*t->leaf), by_path, t->text);
    for (size_t i = 1; i < t->count; i++)
        if (!strcmp(ddp__tree_path(t, i - 1), ddp__tree_path(t, i)))
            return ddp__fail(DDP_EDATA, "\"%.200s\" is listed twice",
                             ddp__tree_path(t, i));
    return 0;
}

/* ---- finding ------------------------------------------------------------ */

/* The first file that does not sort before the path. */
static size_t lower_bound(const struct ddp__tree *t, const char *path)
{
    size_t lo = 0, hi = t->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(ddp__tree_path(t, mid), path) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t ddp__tree_find(const struct ddp__tree *t, const char *path)
{
    size_t i = lower_bound(t, path);

    return i < t->count && !strcmp(ddp__tree_path(t, i), path) ? i : SIZE_MAX;
}

size_t ddp__tree_below(const struct ddp__tree *t, const char *folder,
                       size_t *begin)
{
    size_t len = strlen(folder), hi = t->count, lo;

    *begin = lo = lower_bound(t, folder);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (!strncmp(ddp__tree_path(t, mid), folder, len))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}
