/* fuzz_storage.c - any bytes as what servers answer, and as AWS's settings
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "fuzz.h"

#ifndef HAVE_CURL
int main(void)
{
    skip_all("built without libcurl");
}
#else
#include "storage/credentials.h"
#include "storage/listing.h"
#include "storage/profile.h"
#include "storage/web.h"

/* ---- listings ----------------------------------------------------------- */

static int add_found(const char *key, const char *etag, int64_t size, void *arg)
{
    if (size < 0)
        abort();
    return etag ? ddp__tree_add(arg, key, etag, size) : 0;
}

static bool has_name(const char *path, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = path; (p = strstr(p, name)); p++)
        if ((p == path || p[-1] == '/') && (!p[len] || p[len] == '/'))
            return true;
    return false;
}

/* The paths of a listing lead nowhere else. */
static int check_tree(struct ddp__tree *t, int rc)
{
    if (rc == 0)
        rc = ddp__tree_sort(t);
    for (size_t i = 0; i < t->count; i++) {
        const char *path = ddp__tree_path(t, i);

        if (*path == '/' || strstr(path, "//") || has_name(path, ".") ||
            has_name(path, ".."))
            abort();
    }
    ddp__tree_free(t);
    return rc;
}

static int read_page(const char *path, const uint8_t *data, size_t len)
{
    struct ddp__tree t = {0};
    struct ddp__page p = {.found = add_found, .arg = &t};
    struct ddp__reason reason;

    (void)path;
    ddp__reason_read(data, len, &reason);
    return check_tree(&t, ddp__page_read(&p, data, len));
}

static void fuzz_listings(void)
{
    static const char page[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Prefix>a/</Prefix>"
        "<Contents><Key>a/b%20c+%C3%A9.jpg</Key><ETag>&quot;0f&quot;</ETag>"
        "<Size>1234</Size><Owner><ID>x</ID></Owner></Contents>"
        "<Contents><Key>a/e</Key><ETag>x</ETag><Size>0</Size></Contents>"
        "<CommonPrefixes><Prefix>a/d/</Prefix></CommonPrefixes>"
        "<IsTruncated>true</IsTruncated><NextContinuationToken>t"
        "</NextContinuationToken></ListBucketResult>";
    static const char *const word[] = {"<Key>", "</Key>", "%2F",         "../",
                                       "%00",   "&amp;",  "&#0;",        "-1",
                                       "9e9",   "<!--",   "<!DOCTYPE x", NULL};
    static const struct fuzz_reader r = {"listing", NULL, 1, read_page, word};

    fuzz(&r, "two files", page, sizeof(page) - 1);
}

/* ---- text --------------------------------------------------------------- */

static char *copy_text(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1);

    if (!text)
        abort();
    memcpy(text, data, len);
    text[len] = 0;
    return text;
}

static int read_index(const char *path, const uint8_t *data, size_t len)
{
    struct ddp__tree t = {0};
    char *text = copy_text(data, len);
    int rc = ddp__web_index(&t, text, len);

    (void)path;
    free(text);
    return check_tree(&t, rc);
}

static int read_profile(const char *path, const uint8_t *data, size_t len)
{
    struct ddp__profile p = {0};
    char *text = copy_text(data, len);
    int rc = ddp__profile_parse(&p, "work", "profile ", text);

    (void)path;
    free(text);
    return rc;
}

static int read_role(const char *path, const uint8_t *data, size_t len)
{
    struct ddp__credentials c = {0};

    (void)path;
    return ddp__role_read(&c, data, len, "the role");
}

static void fuzz_texts(void)
{
    static const char list[] = "12 ./train/a/b.jpg\r\n345 train/a c/d.jpg\n\n"
                               "0 LOC.txt\n";
    static const char profile[] =
        "[default]\nregion = x\n[profile work]\n# no\naws_access_key_id=AKIA\n"
        "aws_secret_access_key = s+/=\ns3 =\n  region = y\nregion=eu-1\n"
        "[ work ]\nrole_arn = z\n";
    static const char role[] =
        "{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA\",\"Token\":\"t+/=\","
        "\"SecretAccessKey\":\"s\",\"Expiration\":\"2026-11-23T13:30:00Z\"}";
    static const char *const word[] = {"\n", "[",   "]",  "=",        " ",
                                       "/",  "../", "-1", "profile ", NULL};
    static const struct fuzz_reader i = {"list of files", NULL, 1, read_index,
                                         word};
    static const struct fuzz_reader p = {"profile", NULL, 1, read_profile,
                                         word};
    static const struct fuzz_reader a = {"role", NULL, 1, read_role, NULL};

    fuzz(&i, "three files", list, sizeof(list) - 1);
    fuzz(&p, "two profiles", profile, sizeof(profile) - 1);
    fuzz(&a, "a role", role, sizeof(role) - 1);
}

int main(void)
{
    fuzz_listings();
    fuzz_texts();
    return done_testing();
}
#endif
