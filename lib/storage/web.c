/* web.c - files of a web server
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * HTTP has no way to list a folder, so the folder has a list: index.txt, with
 * the size and the path of a file in each line, as
 *     find . -type f -printf '%s %P\n' >index.txt
 * writes it.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "storage/web.h"

static const char index_file[] = "index.txt";
static const size_t index_max = (size_t)1 << 30;

/* ---- asking ------------------------------------------------------------- */

static int make_get(struct ddp__server *s, const char *path,
                    struct ddp__http *r)
{
    char *url = ddp__http_encode(path, "/");
    int rc = 0;

    if (!url || asprintf(&r->url, "%s/%s", s->root, url) < 0) {
        r->url = NULL;
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a URL");
    }
    free(url);
    return rc;
}

static int refused(struct ddp__server *s, struct ddp__http *r)
{
    (void)s;
    if (r->status < 400)
        return ddp__server_fail_moved(r);
    if (r->status == 404 || r->status == 410)
        return ddp__fail(DDP_EDATA, "is not there: the server answered %ld",
                         r->status);
    return ddp__fail(DDP_EIO, "the server answered %ld", r->status);
}

/* ---- listing ------------------------------------------------------------ */

static int add_line(struct ddp__tree *t, char *line)
{
    char *end;
    int64_t size;

    errno = 0;
    size = strtoll(line, &end, 10);
    if (!isdigit((unsigned char)*line) || *end != ' ' || errno)
        return ddp__fail(DDP_EDATA, "expected a size and a path");
    end++;
    return ddp__tree_add(t, strncmp(end, "./", 2) ? end : end + 2, "", size);
}

int ddp__web_index(struct ddp__tree *t, char *text, size_t len)
{
    char *next;
    int number = 1, rc;

    if (memchr(text, 0, len))
        return ddp__fail(DDP_EDATA, "contains zero bytes, expected text");
    for (char *line = text; *line; line = next, number++) {
        size_t n = strcspn(line, "\n");

        next = line + n + (line[n] == '\n');
        line[n] = 0;
        if (n && line[n - 1] == '\r')
            line[n - 1] = 0;
        if (*line && (rc = add_line(t, line)) < 0)
            return ddp__fail(rc, "line %d: %s", number, ddp_errmsg());
    }
    return 0;
}

static int list_all(struct ddp__server *s, struct ddp__tree *t)
{
    struct ddp__object o = {s,  SIZE_MAX,  index_file, "",
                            -1, index_max, false,      0};
    struct ddp__line l = {0};
    struct ddp__bytes b = {0};
    int rc, tries;

    if ((rc = ddp__line_open(&l, NULL)) == 0 &&
        (rc = ddp__object_get(&l, &o, &b, &tries)) == 0 && b.len)
        rc = ddp__web_index(t, (char *)b.data, b.len);
    if (rc < 0)
        ddp__fail(rc, "%s: %s", index_file, ddp_errmsg());
    ddp__line_close(&l);
    free(b.data);
    return rc;
}

/* ---- opening ------------------------------------------------------------ */

static void free_web(struct ddp__server *s)
{
    (void)s;
}

static const struct ddp__server_ops ops = {
    .list = list_all,
    .make = make_get,
    .refused = refused,
    .free = free_web,
};

struct ddp__server *ddp__web_new(const char *root)
{
    struct ddp__server *s = calloc(1, sizeof(*s));

    if (s && !(s->root = strdup(root))) {
        free(s);
        s = NULL;
    }
    if (!s) {
        ddp__fail(DDP_ENOMEM, "out of memory for a server");
        return NULL;
    }
    s->ops = &ops;
    return s;
}
