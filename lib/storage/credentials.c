/* credentials.c - who asks an S3 server
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/json_parse.h"
#include "storage/credentials.h"
#include "storage/http.h"
#include "storage/profile.h"
#include "storage/settings.h"

enum { METADATA_MS = 1000, ANSWER_MAX = 64 << 10 };

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int set(char *field, size_t size, const char *name, const char *value)
{
    if (snprintf(field, size, "%s", value ? value : "") < (int)size)
        return 0;
    return ddp__fail(DDP_EIO, "%s has %zu characters, expected fewer than %zu",
                     name, strlen(value), size);
}

#define SET(field, name, value) set(field, sizeof(field), name, value)

/* ---- the environment, a profile ----------------------------------------- */

static int from_environment(struct ddp__credentials *c)
{
    const char *id = variable("AWS_ACCESS_KEY_ID");
    const char *secret = variable("AWS_SECRET_ACCESS_KEY");
    int rc;

    if ((!id && !secret) || ddp__storage_place.profile)
        return 0; /* who names a profile means it */
    if (!id || !secret)
        return ddp__fail(DDP_EIO, "%s is set, and %s is not",
                         id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                         id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    if ((rc = SET(c->id, "AWS_ACCESS_KEY_ID", id)) < 0 ||
        (rc = SET(c->secret, "AWS_SECRET_ACCESS_KEY", secret)) < 0 ||
        (rc = SET(c->token, "AWS_SESSION_TOKEN",
                  variable("AWS_SESSION_TOKEN"))) < 0)
        return rc;
    return SET(c->source, "", "the environment's credentials");
}

static int from_profile(struct ddp__credentials *c)
{
    struct ddp__profile p;
    int rc = ddp__profile_read(&p);

    if (rc == 0 && *p.id && *p.secret) {
        memcpy(c->id, p.id, sizeof(p.id));
        memcpy(c->secret, p.secret, sizeof(p.secret));
        memcpy(c->token, p.token, sizeof(p.token));
        snprintf(c->source, sizeof(c->source), "the profile \"%.60s\"",
                 ddp__profile_name());
    } else if (rc == 0 && *p.other && !*p.id) {
        rc = ddp__fail(DDP_EIO,
                       "the profile \"%.60s\" gets its credentials by %s, "
                       "which libddp does not do: set them by eval \"$(aws "
                       "configure export-credentials --format env)\"",
                       ddp__profile_name(), p.other);
    }
    explicit_bzero(&p, sizeof(p));
    return rc;
}

/* ---- the role of a container or an instance ----------------------------- */

static time_t parse_time(const char *text)
{
    struct tm t = {0};

    if (!text || sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &t.tm_year, &t.tm_mon,
                        &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
        return 0;
    t.tm_year -= 1900;
    t.tm_mon--;
    return timegm(&t);
}

int ddp__role_read(struct ddp__credentials *c, const void *text, size_t len,
                   const char *source)
{
    json_error_t err;
    json_t *root = NULL;
    const char *id = NULL, *secret = NULL, *token = NULL, *expires = NULL;
    int rc = DDP_EDATA;

    if (ddp__json_parse(text, len, &root, &err) == 0 &&
        json_unpack(root, "{s:s, s:s, s?s, s?s}", "AccessKeyId", &id,
                    "SecretAccessKey", &secret, "Token", &token, "Expiration",
                    &expires) == 0)
        rc = 0;
    if (rc < 0)
        ddp__fail(rc, "the answer about %s is not understood", source);
    else if ((rc = SET(c->id, "AccessKeyId", id)) == 0 &&
             (rc = SET(c->secret, "SecretAccessKey", secret)) == 0 &&
             (rc = SET(c->token, "Token", token)) == 0)
        rc = SET(c->source, "", source);
    if (rc == 0)
        c->expires = parse_time(expires);
    json_decref(root);
    return rc;
}

/* Ask once; whether there is an answer. */
static bool ask(struct ddp__line *l, struct ddp__http *r, const char *host,
                const char *path)
{
    r->direct = true;
    r->patience_ms = METADATA_MS;
    r->most = ANSWER_MAX;
    if (asprintf(&r->url, "%s%s", host, path) < 0) {
        r->url = NULL;
        return false;
    }
    ddp__http_run(l, r);
    return r->rc == CURLE_OK && r->status == 200 && r->body.len;
}

/* A line of text from a file, which changes while the container runs. */
static int add_token_file(struct ddp__http *r, const char *file)
{
    struct ddp__bytes b = {0};
    int rc = ddp__file_load(file, ANSWER_MAX, &b);
    char *token = (char *)b.data;

    if (rc == 0) {
        while (b.len && strchr("\r\n \t", token[b.len - 1]))
            token[--b.len] = 0;
        rc = !b.len || strlen(token) != b.len || strpbrk(token, "\r\n")
                 ? ddp__fail(DDP_EIO,
                             "%s: expected the container's token, which is "
                             "one line",
                             file)
                 : ddp__http_header(r, "Authorization", token);
        explicit_bzero(b.data, b.len);
    }
    free(b.data);
    return rc;
}

static int add_token(struct ddp__http *r)
{
    const char *file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");

    if (file)
        return add_token_file(r, file);
    return token ? ddp__http_header(r, "Authorization", token) : 0;
}

static int from_container(struct ddp__credentials *c, struct ddp__line *l)
{
    const char *path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    struct ddp__http r = {0};
    int rc;

    if (!path && !full)
        return 0;
    if ((rc = add_token(&r)) == 0 &&
        !ask(l, &r, path ? "http://169.254.170.2" : full, path ? path : ""))
        rc = ddp__fail(
            DDP_EIO,
            "the container's role, which the environment names, "
            "does not answer%s",
            r.status == 401 || r.status == 403 ? ": it refuses the token" : "");
    if (rc == 0)
        rc = ddp__role_read(c, r.body.data, r.body.len, "the container's role");
    ddp__http_free(&r);
    return rc;
}

/* Two questions: which role, and its credentials.  Not to be answered is no
 * error: most machines are no instances. */
static int ask_instance(struct ddp__credentials *c, struct ddp__line *l,
                        const char *host, const char *token)
{
    static const char roles[] = "/latest/meta-data/iam/security-credentials/";
    static const char header[] = "X-aws-ec2-metadata-token";
    struct ddp__http name = {0}, role = {0};
    char path[256];
    int rc = 0;

    if (ddp__http_header(&name, header, token) == 0 &&
        ddp__http_header(&role, header, token) == 0 &&
        ask(l, &name, host, roles) &&
        snprintf(path, sizeof(path), "%s%.*s", roles,
                 (int)strcspn((char *)name.body.data, "\r\n"),
                 (char *)name.body.data) < (int)sizeof(path) &&
        ask(l, &role, host, path))
        rc = ddp__role_read(c, role.body.data, role.body.len,
                            "the instance's role");
    ddp__http_free(&name);
    ddp__http_free(&role);
    return rc;
}

static int from_instance(struct ddp__credentials *c, struct ddp__line *l)
{
    const char *off = variable("AWS_EC2_METADATA_DISABLED");
    const char *host = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    struct ddp__http token = {.verb = "PUT"};
    int rc = 0;

    if (off && !strcasecmp(off, "true"))
        return 0;
    if (!host)
        host = "http://169.254.169.254";
    if (ddp__http_header(&token, "X-aws-ec2-metadata-token-ttl-seconds",
                         "21600") == 0 &&
        ask(l, &token, host, "/latest/api/token"))
        rc = ask_instance(c, l, host, (const char *)token.body.data);
    ddp__http_free(&token);
    return rc;
}

/* ---- in order ----------------------------------------------------------- */

int ddp__credentials_find(struct ddp__credentials *c)
{
    struct ddp__line l = {0};
    int rc;

    *c = (struct ddp__credentials){.source = "no credentials"};
    if ((rc = from_environment(c)) < 0 || *c->id ||
        (rc = from_profile(c)) < 0 || *c->id)
        return rc;
    if ((rc = ddp__line_open(&l, NULL)) == 0 &&
        (rc = from_container(c, &l)) == 0 && !*c->id)
        rc = from_instance(c, &l);
    ddp__line_close(&l);
    return rc;
}

int ddp__aws_place(struct ddp__aws_place *place)
{
    const struct ddp__storage_place *chosen = &ddp__storage_place;
    const char *region = chosen->region;
    const char *endpoint = chosen->endpoint;
    struct ddp__profile p;
    int rc = ddp__profile_read(&p);

    if (!region && !(region = variable("AWS_REGION")) &&
        !(region = variable("AWS_DEFAULT_REGION")))
        region = *p.region ? p.region : "us-east-1";
    if (!endpoint && !(endpoint = variable("AWS_ENDPOINT_URL_S3")) &&
        !(endpoint = variable("AWS_ENDPOINT_URL")))
        endpoint = p.endpoint;
    if (rc == 0 && (rc = SET(place->region, "the region's name", region)) == 0)
        rc = SET(place->endpoint, "the endpoint's address", endpoint);
    explicit_bzero(&p, sizeof(p));
    return rc;
}
