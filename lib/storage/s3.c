/* s3.c - objects of S3 and of servers that speak its language
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * libcurl signs requests.  Its older versions sign a URL as it is given, newer
 * ones in the form that S3 wants, so URLs are made in that form: names encoded
 * but for unreserved characters, the query sorted.  A body is never signed.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "storage/credentials.h"
#include "storage/list.h"
#include "storage/listing.h"
#include "storage/s3.h"

enum { PAGE_MAX = 16 << 20, EARLY_S = 300 };

struct s3 {
    struct ddp__server s;
    char *bucket, *prefix; /* prefix: "", or with '/' at the end; owned */
    char *host;            /* address of the bucket; owned */
    struct ddp__aws_place place;
    pthread_mutex_t lock; /* of what follows */
    struct ddp__credentials who;
    time_t asked; /* when they were looked for; 0: not yet */
    char sign[64];
    bool moved; /* the region was corrected */
};

/* ---- who asks ----------------------------------------------------------- */

/* Those that are there stay as long as there are no others: a role's answer may
 * fail for a moment, and it is asked minutes before they expire. */
static int find_credentials(struct s3 *s)
{
    struct ddp__error before = ddp__error_save();
    struct ddp__credentials found;
    int rc = ddp__credentials_find(&found);
    bool keep = *s->who.id && (rc < 0 || !*found.id);

    if (keep)
        ddp__error_restore(&before);
    else
        s->who = found;
    explicit_bzero(&found, sizeof(found));
    if (rc < 0 && !keep)
        return rc;
    s->asked = time(NULL);
    return 0;
}

/* A copy, for other threads may renew them. */
static int copy_credentials(struct s3 *s, struct ddp__credentials *who,
                            char sign[64])
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (!s->asked || (s->who.expires && time(NULL) > s->who.expires - EARLY_S &&
                      time(NULL) > s->asked + EARLY_S / 10))
        rc = find_credentials(s);
    *who = s->who;
    memcpy(sign, s->sign, sizeof(s->sign));
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Whether there are others than those that were refused. */
static bool renew_credentials(struct s3 *s, const char *id)
{
    bool other = false;

    pthread_mutex_lock(&s->lock);
    if (id && strcmp(id, s->who.id) != 0)
        other = true;
    else if (s->who.expires && time(NULL) > s->asked + 1)
        other = find_credentials(s) == 0 && id && strcmp(id, s->who.id) != 0;
    pthread_mutex_unlock(&s->lock);
    return other;
}

static void set_region(struct s3 *s, const char *region)
{
    snprintf(s->sign, sizeof(s->sign), "aws:amz:%.31s:s3", region);
}

static bool is_region(const char *name)
{
    return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
                        strlen(name);
}

/* ---- asking ------------------------------------------------------------- */

/* What a request must keep until it is answered. */
struct signature {
    struct ddp__credentials who;
    char sign[64];
};

static _Thread_local struct signature signature;

/* Sign a request, if there is someone to sign it. */
static int sign_request(struct s3 *s, struct ddp__http *r)
{
    int rc = copy_credentials(s, &signature.who, signature.sign);

    if (rc < 0 || !*signature.who.id)
        return rc;
    r->sign = signature.sign;
    r->user = signature.who.id;
    r->secret = signature.who.secret;
    if ((rc = ddp__http_header(r, "x-amz-content-sha256", "UNSIGNED-PAYLOAD")) <
        0)
        return rc;
    return *signature.who.token ? ddp__http_header(r, "x-amz-security-token",
                                                   signature.who.token)
                                : 0;
}

static int set_url(struct ddp__http *r, const char *host, const char *path,
                   const char *query)
{
    if (asprintf(&r->url, "%s/%s%s", host, path, query) >= 0)
        return 0;
    r->url = NULL;
    return ddp__fail(DDP_ENOMEM, "out of memory for a URL");
}

static int make_get(struct ddp__server *server, const char *path,
                    struct ddp__http *r)
{
    struct s3 *s = (struct s3 *)server;
    char *key = NULL, *url = NULL;
    int rc = DDP_ENOMEM;

    if (asprintf(&key, "%s%s", s->prefix, path) < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a key");
    if ((url = ddp__http_encode(key, "/")) &&
        (rc = set_url(r, s->host, url, "")) == 0)
        rc = sign_request(s, r);
    free(key);
    free(url);
    return rc;
}

static const char *what_to_do(const char *code)
{
    if (!*signature.who.id)
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
               "AWS_PROFILE";
    if (!strcmp(code, "SignatureDoesNotMatch") ||
        !strcmp(code, "InvalidAccessKeyId"))
        return "check the access key and its secret";
    if (!strcmp(code, "ExpiredToken"))
        return "get new ones";
    return "they need the rights to list the bucket and to read its objects";
}

/* "no credentials": an address that needs some is refused like that. */
static int fail_denied(const struct ddp__http *r, const char *code)
{
    return ddp__fail(DDP_EIO,
                     "the server answered %ld%s%s: access with %s is denied: "
                     "%s",
                     r->status, *code ? " " : "", code, signature.who.source,
                     what_to_do(code));
}

/* Swift's 412 has no code: without a signature it does not take a request for
 * one of S3. */
static bool is_denied(const struct ddp__http *r, const char *code)
{
    return r->status == 401 || r->status == 403 ||
           !strcmp(code, "ExpiredToken") ||
           (r->status == 412 && !*code && !*signature.who.id);
}

/* The server knows in which region the bucket is. */
static bool correct_region(struct s3 *s, const struct ddp__http *r)
{
    bool now;

    pthread_mutex_lock(&s->lock);
    now = is_region(r->region) && (!s->moved || strstr(s->sign, r->region));
    if (now) {
        set_region(s, r->region);
        s->moved = true;
    }
    pthread_mutex_unlock(&s->lock);
    return now && !strstr(signature.sign, r->region);
}

static int refused(struct ddp__server *server, struct ddp__http *r)
{
    struct s3 *s = (struct s3 *)server;
    struct ddp__reason reason;
    const char *code = reason.code;

    ddp__reason_read(r->body.data, r->body.len, &reason);
    if (!*r->region) /* AWS also has it in a header */
        snprintf(r->region, sizeof(r->region), "%s", reason.region);
    if ((r->status == 301 || r->status == 307 || r->status == 400) &&
        *r->region && correct_region(s, r)) {
        ddp__fail(DDP_EIO, "the bucket is in the region %s", r->region);
        return DDP__AGAIN;
    }
    if (r->status < 400)
        return ddp__server_fail_moved(r);
    if (r->status == 404)
        return ddp__fail(DDP_EDATA, "is not there: the server answered 404%s%s",
                         *code ? " " : "", code);
    if (!strcmp(code, "RequestTimeTooSkewed"))
        return ddp__fail(DDP_EIO,
                         "the server answered %ld %s: set the clock "
                         "of this machine",
                         r->status, code);
    if (is_denied(r, code)) {
        int rc = fail_denied(r, code);

        return renew_credentials(s, r->user) ? DDP__AGAIN : rc;
    }
    return ddp__fail(DDP_EIO, "the server answered %ld%s%s", r->status,
                     *code ? " " : "", code);
}

/* ---- listing ------------------------------------------------------------ */

struct listing {
    struct s3 *s;
    const char *folder; /* with the prefix */
    struct ddp__page page;
    struct ddp__list *list;
    char last[1100]; /* key of the page before */
};

static int make_list(struct ddp__http *r, void *arg)
{
    struct listing *l = arg;
    char *prefix = ddp__http_encode(l->folder, "");
    char *token = ddp__http_encode(l->page.token, "");
    char *query = NULL;
    int rc = DDP_ENOMEM;

    r->most = PAGE_MAX;
    if (prefix && token &&
        asprintf(&query,
                 "?%s%s%sdelimiter=%%2F&encoding-type=url&list-type=2"
                 "&prefix=%s",
                 *token ? "continuation-token=" : "", token, *token ? "&" : "",
                 prefix) < 0) {
        query = NULL;
        ddp__fail(DDP_ENOMEM, "out of memory for a URL");
    }
    if (query && (rc = set_url(r, l->s->host, "", query)) == 0)
        rc = sign_request(l->s, r);
    free(prefix);
    free(token);
    free(query);
    return rc;
}

static int judge_list(struct ddp__http *r, void *arg)
{
    struct listing *l = arg;

    if (r->status >= 300)
        return refused(&l->s->s, r);
    if (r->status != 200 || r->longer)
        return ddp__fail(DDP_EIO,
                         "the server answered %ld and %s%d bytes to a request "
                         "for a list",
                         r->status, r->longer ? "more than " : "",
                         r->longer ? PAGE_MAX : (int)r->body.len);
    return 0;
}

/* A file or folder of the page, with the prefix. */
static int take_key(const char *key, const char *etag, int64_t size, void *arg)
{
    const struct listing *l = arg;
    size_t n = strlen(l->folder), skip = strlen(l->s->prefix);

    if (strncmp(key, l->folder, n) != 0)
        return ddp__fail(DDP_EDATA,
                         "the server lists \"%.200s\", which is not below "
                         "\"%.200s\"",
                         key, l->folder);
    if (!etag)
        return ddp__list_folder(l->list, key);
    if (!strcmp(key, l->s->prefix))
        return 0; /* a mark that the folder exists */
    return ddp__list_file(l->list, key + skip, etag, size);
}

/* One page; *more: there are others. */
static int list_page(struct ddp__line *line, struct listing *l)
{
    struct ddp__asking a = {make_list, judge_list, l, 0};
    struct ddp__http r = {0};
    char before[sizeof(l->page.token)];
    int rc;

    memcpy(before, l->page.token, sizeof(before));
    if ((rc = ddp__http_ask(line, &r, &a)) == 0)
        rc = ddp__page_read(&l->page, r.body.data, r.body.len);
    ddp__http_free(&r);
    if (rc == 0 && l->page.more &&
        (!*l->page.token || !strcmp(l->page.token, before)))
        rc = ddp__fail(DDP_EDATA, "the list has another page, and the server "
                                  "does not say which");
    return rc;
}

static int list_folder(struct ddp__line *line, struct ddp__list *list,
                       const char *folder, void *arg)
{
    struct listing l = {.s = arg, .folder = folder, .list = list};
    int rc;

    l.page.found = take_key;
    l.page.arg = &l;
    do
        rc = list_page(line, &l);
    while (rc == 0 && l.page.more);
    return rc;
}

static int list_all(struct ddp__server *server, struct ddp__tree *t)
{
    struct s3 *s = (struct s3 *)server;

    return ddp__list_run(t, s->prefix, list_folder, s);
}

/* ---- opening ------------------------------------------------------------ */

static void free_s3(struct ddp__server *server)
{
    struct s3 *s = (struct s3 *)server;

    free(s->bucket);
    free(s->prefix);
    free(s->host);
    explicit_bzero(&s->who, sizeof(s->who));
    pthread_mutex_destroy(&s->lock);
}

static const struct ddp__server_ops ops = {
    .list = list_all,
    .make = make_get,
    .refused = refused,
    .free = free_s3,
};

static int set_host(struct s3 *s)
{
    const char *end = s->place.endpoint, *region = s->place.region;
    int n = (int)strlen(end);

    if (!is_region(region))
        return ddp__fail(DDP_EIO,
                         "the region \"%.31s\" has characters that no "
                         "region has",
                         region);
    if (*end && ((strncmp(end, "http://", 7) != 0 &&
                  strncmp(end, "https://", 8) != 0) ||
                 strpbrk(end, "?#@ ")))
        return ddp__fail(DDP_EIO,
                         "the endpoint for S3 (AWS_ENDPOINT_URL_S3, "
                         "AWS_ENDPOINT_URL, endpoint_url) must be an address "
                         "such as https://host:port, without a name and "
                         "password in it");
    while (n && end[n - 1] == '/')
        n--;
    set_region(s, region);
    n = *end ? asprintf(&s->host, "%.*s/%s", n, end, s->bucket)
        : strchr(s->bucket, '.')
            ? asprintf(&s->host, "https://s3.%s.amazonaws.com%s/%s", region,
                       strncmp(region, "cn-", 3) ? "" : ".cn", s->bucket)
            : asprintf(&s->host, "https://%s.s3.%s.amazonaws.com%s", s->bucket,
                       region, strncmp(region, "cn-", 3) ? "" : ".cn");
    if (n >= 0)
        return 0;
    s->host = NULL;
    return ddp__fail(DDP_ENOMEM, "out of memory for an address");
}

static bool is_bucket(const char *name)
{
    return strlen(name) >= 3 && strlen(name) < 64 &&
           strspn(name,
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                  "abcdefghijklmnopqrstuvwxyz0123456789.-_") == strlen(name);
}

/* root: "s3://bucket" or "s3://bucket/prefix". */
static int set_root(struct s3 *s, const char *root)
{
    const char *name = root + strlen("s3://"), *slash = strchrnul(name, '/');
    const char *prefix = *slash ? slash + 1 : slash;
    int rc;

    s->s.root = strdup(root);
    s->bucket = strndup(name, (size_t)(slash - name));
    if (asprintf(&s->prefix, "%s%s", prefix, *prefix ? "/" : "") < 0)
        s->prefix = NULL;
    if (!s->s.root || !s->bucket || !s->prefix)
        return ddp__fail(DDP_ENOMEM, "out of memory for an address");
    if (!is_bucket(s->bucket))
        return ddp__fail(DDP_EINVAL,
                         "\"%.80s\" is no bucket's name: expected an address "
                         "such as s3://bucket/folder",
                         s->bucket);
    if ((rc = ddp__aws_place(&s->place)) < 0)
        return rc;
    return set_host(s);
}

struct ddp__server *ddp__s3_new(const char *root)
{
    struct s3 *s = calloc(1, sizeof(*s));

    if (!s) {
        ddp__fail(DDP_ENOMEM, "out of memory for a server");
        return NULL;
    }
    s->s.ops = &ops;
    pthread_mutex_init(&s->lock, NULL);
    if (set_root(s, root) == 0)
        return &s->s;
    free_s3(&s->s);
    free(s->s.root);
    free(s);
    return NULL;
}
