/* shards.c - which tar files a name stands for
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/shards.h"
#include "storage/storage.h"

enum { MOST_FILES = 1000000, MOST_DIGITS = 9 };

/* ---- ranges ------------------------------------------------------------- */

/* "{first..last}" in a name. */
struct range {
    size_t begin, end; /* the braces and what is between */
    long first, last;
    int digits; /* at least; 0: as many as are needed */
};

static int count_digits(const char *text)
{
    int n = 0;

    while (n <= MOST_DIGITS && isdigit((unsigned char)text[n]))
        n++;
    return n;
}

/* Like shells: zeros before a number ask for as many digits. */
static bool read_range(const char *name, struct range *r)
{
    const char *first = strchr(name, '{'), *last;
    int nf, nl;

    r->begin = (size_t)(first++ - name);
    nf = count_digits(first);
    if (nf == 0 || nf > MOST_DIGITS || strncmp(first + nf, "..", 2))
        return false;
    last = first + nf + 2;
    nl = count_digits(last);
    if (nl == 0 || nl > MOST_DIGITS || last[nl] != '}')
        return false;
    r->end = (size_t)(last + nl + 1 - name);
    r->first = strtol(first, NULL, 10);
    r->last = strtol(last, NULL, 10);
    r->digits = *first == '0' || *last == '0' ? (nf > nl ? nf : nl) : 0;
    return r->first <= r->last && r->last - r->first < MOST_FILES;
}

static int add_file(struct ddp__names *n, const char *name)
{
    if (!ddp__path_is_below(name))
        return ddp__fail(DDP_EDATA,
                         "\"%.99s\": expected the path of a tar file below the "
                         "folder",
                         name);
    if (n->count == MOST_FILES)
        return ddp__fail(DDP_EINVAL, "more than %d tar files", MOST_FILES);
    return ddp__names_add(n, name, strlen(name));
}

/* Add what a name stands for. */
static int add_names(struct ddp__names *n, const char *name)
{
    struct range r;
    int rc = 0;

    if (!strchr(name, '{'))
        return add_file(n, name);
    if (!read_range(name, &r))
        return ddp__fail(
            DDP_EINVAL, "\"%.99s\": expected a range such as {000..099}", name);
    for (long i = r.first; rc == 0 && i <= r.last; i++) {
        char *one;

        if (asprintf(&one, "%.*s%0*ld%s", (int)r.begin, name, r.digits, i,
                     name + r.end) < 0)
            return ddp__fail(DDP_ENOMEM, "out of memory for names");
        rc = add_names(n, one);
        free(one);
    }
    return rc;
}

/* ---- lists -------------------------------------------------------------- */

static int add_lines(struct ddp__names *n, const char *path, char *text)
{
    char *save, *line;
    int rc = 0;

    for (line = strtok_r(text, "\r\n", &save); rc == 0 && line;
         line = strtok_r(NULL, "\r\n", &save))
        rc = add_names(n, line);
    if (rc == 0 && !n->count)
        rc = ddp__fail(DDP_EDATA, "%s: names no tar files", path);
    return rc;
}

static int add_list(struct ddp__names *n, const char *path)
{
    struct ddp__bytes text = {0};
    int rc = ddp__storage_load(path, (size_t)64 << 20, &text);

    if (rc == 0 && memchr(text.data, 0, text.len))
        rc = ddp__fail(DDP_EDATA, "%s: contains zero bytes, expected text",
                       path);
    if (rc == 0)
        rc = add_lines(n, path, (char *)text.data);
    free(text.data);
    return rc;
}

/* ---- all ---------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each sample is to be in an epoch once. */
static int check_twice(const struct ddp__names *n)
{
    char **sorted = malloc((size_t)n->count * sizeof(*sorted));
    int rc = 0;

    if (!sorted)
        return ddp__fail(DDP_ENOMEM, "out of memory for names");
    memcpy(sorted, n->name, (size_t)n->count * sizeof(*sorted));
    qsort(sorted, (size_t)n->count, sizeof(*sorted), by_bytes);
    for (int i = 1; rc == 0 && i < n->count; i++)
        if (!strcmp(sorted[i], sorted[i - 1]))
            rc = ddp__fail(DDP_EDATA, "the tar file %.99s is named twice",
                           sorted[i]);
    free(sorted);
    return rc;
}

/* The folder that all are in: what is before the last '/', without braces. */
static size_t folder_length(const char *name)
{
    size_t len = strcspn(name, "{");

    while (len > 0 && name[len - 1] != '/')
        len--;
    return len;
}

int ddp__shards_find(struct ddp__shards *s, const char *name)
{
    size_t len = folder_length(name), n = strlen(name);
    bool list = n > 4 && !strcmp(name + n - 4, ".txt") && !strchr(name, '{');
    int rc;

    *s = (struct ddp__shards){0};
    s->dir = len ? strndup(name, len > 1 ? len - 1 : 1) : strdup(".");
    if (!s->dir)
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    if ((rc = list ? add_list(&s->file, name)
                   : add_names(&s->file, name + len)) == 0)
        rc = check_twice(&s->file);
    if (rc < 0)
        ddp__shards_free(s);
    return rc;
}

void ddp__shards_free(struct ddp__shards *s)
{
    free(s->dir);
    ddp__names_free(&s->file);
    *s = (struct ddp__shards){0};
}
