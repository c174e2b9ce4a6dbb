/* server.c - fetch a file, and check that it is the one that was listed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "storage/cache.h"
#include "storage/server.h"
#include "storage/settings.h"

/* Room for what a server says in place of a file. */
enum { REASON_MAX = 64 << 10 };

/* Without the query: it may be a signature that opens the file. */
int ddp__server_fail_moved(const struct ddp__http *r)
{
    return ddp__fail(DDP_EIO,
                     "the server answered %ld and names another place, "
                     "\"%.*s\", which is not followed: use that address",
                     r->status, (int)strcspn(r->place, "?#"), r->place);
}

struct getting {
    const struct ddp__object *o;
    struct ddp__bytes *b;
};

static int make_get(struct ddp__http *r, void *arg)
{
    const struct ddp__object *o = ((struct getting *)arg)->o;
    char span[64];
    int rc;

    r->expected = o->size < 0 ? 0 : (size_t)o->size;
    r->most = (o->size < 0 ? o->most : (size_t)o->size) + REASON_MAX;
    if (*o->etag && (rc = ddp__http_header(r, "If-Match", o->etag)) < 0)
        return rc;
    snprintf(span, sizeof(span), "bytes=%lld-%lld", (long long)o->at,
             (long long)(o->at + o->size - 1));
    if (o->part && (rc = ddp__http_header(r, "Range", span)) < 0)
        return rc;
    return o->server->ops->make(o->server, o->path, r);
}

static int fail_changed(const struct ddp__object *o, const struct ddp__http *r)
{
    return ddp__fail(DDP_EIO,
                     "changed since its folder was listed (ETag %.60s, is "
                     "%.60s): a run must see the same data throughout; start "
                     "it again",
                     o->etag, *r->etag ? r->etag : "another");
}

static bool is_page(const struct ddp__http *r)
{
    return !strncasecmp(r->type, "text/html", 9);
}

/* A body that is too short comes from a connection that broke, so it is asked
 * for again; one that is too long does not. */
static int judge_size(const struct ddp__object *o, const struct ddp__http *r)
{
    size_t len = r->body.len;

    if (o->size < 0)
        return len <= o->most && !r->longer
                   ? 0
                   : ddp__fail(DDP_EDATA, "has more bytes than the limit %zu",
                               o->most);
    if (len == (size_t)o->size && !r->longer)
        return 0;
    if (is_page(r))
        return ddp__fail(DDP_EIO,
                         "the server sent an HTML page of %zu bytes for a file "
                         "of %lld: something else answers in its place, such "
                         "as a proxy or a login",
                         len, (long long)o->size);
    if (len > (size_t)o->size)
        return ddp__fail(DDP_EIO,
                         "the server sent more than the %lld bytes that it "
                         "listed",
                         (long long)o->size);
    ddp__fail(DDP_EIO, "the server sent %zu of %lld bytes", len,
              (long long)o->size);
    return DDP__AGAIN;
}

/* The part that was asked for, and no other. */
static int judge_span(const struct ddp__object *o, const struct ddp__http *r)
{
    char span[64];

    snprintf(span, sizeof(span), "bytes %lld-%lld/", (long long)o->at,
             (long long)(o->at + o->size - 1));
    if (r->status == 200)
        return ddp__fail(DDP_EIO, "the server sends whole files only: it does "
                                  "not answer requests for a part (Range)");
    if (strncmp(r->span, span, strlen(span)) != 0)
        return ddp__fail(DDP_EIO,
                         "the server sent the part \"%.60s\", expected \"%s\"",
                         r->span, span);
    return 0;
}

static int judge_get(struct ddp__http *r, void *arg)
{
    struct getting *g = arg;
    int rc;

    if (r->status == 412)
        return fail_changed(g->o, r);
    if (r->status >= 300)
        return g->o->server->ops->refused(g->o->server, r);
    if (r->status != 200 && !(g->o->part && r->status == 206))
        return ddp__fail(DDP_EIO, "the server answered %ld, expected %d",
                         r->status, g->o->part ? 206 : 200);
    if (*g->o->etag && *r->etag && strcmp(g->o->etag, r->etag) != 0)
        return fail_changed(g->o, r);
    if ((g->o->part && !is_page(r) && (rc = judge_span(g->o, r)) < 0) ||
        (rc = judge_size(g->o, r)) != 0)
        return rc;
    free(g->b->data);
    *g->b = r->body;
    r->body = (struct ddp__bytes){0};
    return 0;
}

/* From the cache, if there is one and it has the object. */
static bool get_copy(const struct ddp__object *o, struct ddp__bytes *b)
{
    struct ddp__storage_counts *c = &ddp__storage_counts;
    bool hit;

    if (!ddp__storage_settings()->cache_dir || !*o->etag)
        return false;
    hit = ddp__cache_get(o, b);
    atomic_fetch_add(hit ? &c->hits : &c->misses, 1);
    return hit;
}

int ddp__object_get(struct ddp__line *l, const struct ddp__object *o,
                    struct ddp__bytes *b, int *tries)
{
    struct getting g = {o, b};
    struct ddp__asking a = {make_get, judge_get, &g, 0};
    struct ddp__http r = {0};
    int rc;

    *tries = 0;
    if (get_copy(o, b))
        return 0;
    rc = ddp__http_ask(l, &r, &a);
    ddp__http_free(&r);
    *tries = a.tries;
    if (rc == 0)
        ddp__cache_put(o, b);
    return rc;
}
