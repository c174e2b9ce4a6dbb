/* profile.c - the files in which AWS's tools keep settings
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sections with lines "name = value"; an indented line belongs to the one
 * before it, and none of those is used here.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "storage/profile.h"
#include "storage/settings.h"

enum { LARGEST = 1 << 20 };

const char *ddp__profile_name(void)
{
    const char *name = getenv("AWS_PROFILE");

    if (ddp__storage_place.profile)
        return ddp__storage_place.profile;
    return name && *name ? name : "default";
}

/* ---- lines -------------------------------------------------------------- */

static char *trim(char *s)
{
    size_t n;

    s += strspn(s, " \t");
    for (n = strlen(s); n && strchr(" \t\r", s[n - 1]);)
        s[--n] = 0;
    return s;
}

/* Whether "[profile name]" is the section that is looked for.  The default one
 * has no prefix, and may have it. */
static bool is_section(char *line, const char *name, const char *prefix)
{
    char *end = strchr(line, ']'), *title;
    size_t n = strlen(prefix);

    if (!end)
        return false;
    *end = 0;
    title = trim(line + 1);
    if (n && !strncmp(title, prefix, n))
        return !strcmp(trim(title + n), name);
    return !strcmp(title, name) && (!n || !strcmp(name, "default"));
}

static int set_field(char *field, size_t size, const char *name,
                     const char *value)
{
    size_t n = strlen(value);

    if (n >= size)
        return ddp__fail(DDP_EDATA,
                         "the value of %s has %zu characters, "
                         "expected fewer than %zu",
                         name, n, size);
    memcpy(field, value, n + 1);
    return 0;
}

static int set_value(struct ddp__profile *p, const char *name,
                     const char *value)
{
    const struct {
        const char *name;
        char *field;
        size_t size;
    } known[] = {
        {"aws_access_key_id", p->id, sizeof(p->id)},
        {"aws_secret_access_key", p->secret, sizeof(p->secret)},
        {"aws_session_token", p->token, sizeof(p->token)},
        {"region", p->region, sizeof(p->region)},
        {"endpoint_url", p->endpoint, sizeof(p->endpoint)},
    };
    static const char *const others[] = {"sso_session", "sso_start_url",
                                         "role_arn", "credential_process",
                                         "login_session"};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(name, known[i].name))
            return set_field(known[i].field, known[i].size, name, value);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (!strcmp(name, others[i]))
            snprintf(p->other, sizeof(p->other), "%s", name);
    return 0;
}

int ddp__profile_parse(struct ddp__profile *p, const char *name,
                       const char *prefix, char *text)
{
    bool inside = false;
    char *next;
    int rc;

    for (char *line = text; *line; line = next) {
        size_t n = strcspn(line, "\n");
        char *sign;

        next = line + n + (line[n] == '\n');
        line[n] = 0;
        if (*line == '[') {
            inside = is_section(line, name, prefix);
            p->found |= inside;
        }
        if (!inside || strchr("[#; \t\r", *line) || !(sign = strchr(line, '=')))
            continue;
        *sign = 0;
        if ((rc = set_value(p, trim(line), trim(sign + 1))) < 0)
            return rc;
    }
    return 0;
}

/* ---- files -------------------------------------------------------------- */

static int path_of(const char *variable, const char *name, char **path)
{
    const char *given = getenv(variable), *home = getenv("HOME");

    *path = NULL;
    if (given && *given)
        *path = strdup(given);
    else if (!home || asprintf(path, "%s/.aws/%s", home, name) < 0)
        return 0;
    return *path ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for a path");
}

static int read_one(struct ddp__profile *p, const char *variable,
                    const char *file, const char *prefix)
{
    struct ddp__bytes b = {0};
    char *path;
    int rc = path_of(variable, file, &path);

    if (rc == 0 && path && ddp__file_exists("", path) &&
        (rc = ddp__file_load(path, LARGEST, &b)) == 0) {
        rc = ddp__profile_parse(p, ddp__profile_name(), prefix, (char *)b.data);
        if (rc < 0)
            ddp__fail(rc, "%s: %s", path, ddp_errmsg());
        explicit_bzero(b.data, b.len);
    }
    free(b.data);
    free(path);
    return rc;
}

int ddp__profile_read(struct ddp__profile *p)
{
    int rc;

    *p = (struct ddp__profile){0};
    if ((rc = read_one(p, "AWS_CONFIG_FILE", "config", "profile ")) < 0 ||
        (rc = read_one(p, "AWS_SHARED_CREDENTIALS_FILE", "credentials", "")) <
            0)
        return rc;
    if (p->found || !strcmp(ddp__profile_name(), "default"))
        return 0;
    return ddp__fail(DDP_EIO,
                     "%s is \"%.60s\", which is a profile neither of "
                     "~/.aws/credentials nor of ~/.aws/config",
                     ddp__storage_place.profile ? "the profile of the data set"
                                                : "AWS_PROFILE",
                     ddp__profile_name());
}
