/* named.c - data sets by the names that a Data.toml gives them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   DataSets.jl 0.2: a list of data sets, each with a name, a UUID and a
 *          storage, whose driver says what its other keys mean.
 */
#include "config.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/toml.h"
#include "ddp.h"
#include "storage/settings.h"

static const size_t max_text = 256 << 10;

#define DATA_TOML "Data.toml"

enum { NEWEST = 1 };
enum { NOT_HERE = 1 };

/* A Data.toml, and what is looked for in it. */
struct config {
    const char *path;
    json_t *root;       /* owned */
    char dir[PATH_MAX]; /* that it is in */
};

static const char *text_of(const json_t *table, const char *key)
{
    const char *text = json_string_value(json_object_get(table, key));

    return text && *text ? text : NULL;
}

/* ---- names -------------------------------------------------------------- */

static bool is_word(unsigned char c)
{
    return isalnum(c) || c >= 0x80;
}

/* Words of letters, digits, '-' and '_', divided by '.' and '/', each of which
 * begins with a letter or digit: so no name leads anywhere. */
static bool is_name(const char *name)
{
    bool begins = true;

    for (; *name; name++) {
        bool divides = *name == '.' || *name == '/';

        if (begins ? !is_word((unsigned char)*name)
                   : !divides && !is_word((unsigned char)*name) &&
                         *name != '-' && *name != '_')
            return false;
        begins = divides;
    }
    return !begins;
}

static bool is_uuid(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    if (!text || strlen(text) != strlen(form))
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'x' ? !isxdigit((unsigned char)text[i])
                           : text[i] != form[i])
            return false;
    return true;
}

/* ---- the file ----------------------------------------------------------- */

static int check_set(const struct config *c, const json_t *set, size_t number)
{
    const char *name = text_of(set, "name");
    const json_t *storage = json_object_get(set, "storage");

    if (!name || !is_name(name))
        return ddp__fail(DDP_EDATA,
                         "%s: data set %zu: the name \"%.99s\" must be words "
                         "of letters, digits, - and _, with / or . between",
                         c->path, number + 1, name ? name : "");
    if (!is_uuid(text_of(set, "uuid")))
        return ddp__fail(DDP_EDATA,
                         "%s: %s: expected a uuid such as "
                         "b498f769-a7f6-4f67-8d74-40b770398f26",
                         c->path, name);
    if (!json_is_object(storage) || !text_of(storage, "driver"))
        return ddp__fail(
            DDP_EDATA, "%s: %s: expected a table \"storage\" with a \"driver\"",
            c->path, name);
    return 0;
}

static int check_config(const struct config *c)
{
    const json_t *version = json_object_get(c->root, "data_config_version");
    const json_t *sets = json_object_get(c->root, "datasets");
    int rc = 0;

    if (!json_is_integer(version) || json_integer_value(version) < 0 ||
        json_integer_value(version) > NEWEST)
        return ddp__fail(
            DDP_EDATA, "%s: expected data_config_version = 1 (or 0)", c->path);
    if (!json_is_array(sets))
        return ddp__fail(DDP_EDATA, "%s: expected [[datasets]]", c->path);
    for (size_t i = 0; rc == 0 && i < json_array_size(sets); i++)
        rc = check_set(c, json_array_get(sets, i), i);
    return rc;
}

static int read_config(struct config *c)
{
    struct ddp__bytes text = {0};
    const char *slash = strrchr(c->path, '/');
    int rc;

    snprintf(c->dir, sizeof(c->dir), "%.*s",
             slash ? (int)(slash - c->path) + (slash == c->path) : 1,
             slash ? c->path : ".");
    if ((rc = ddp__file_load(c->path, max_text, &text)) < 0)
        return rc;
    c->root = ddp__toml_read(c->path, (char *)text.data, text.len);
    free(text.data);
    return c->root ? check_config(c) : ddp_errcode();
}

static int fail_unknown(const struct config *c, const json_t *sets,
                        const char *name)
{
    char names[512] = "";
    size_t len = 0;

    for (size_t i = 0; i < json_array_size(sets) && len < sizeof(names); i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
                                i ? ", " : "",
                                text_of(json_array_get(sets, i), "name"));
    return ddp__fail(DDP_EDATA, "%s: no data set \"%.99s\"; available: %s",
                     c->path, name, names);
}

static bool has_name(const struct config *c, const char *name)
{
    const json_t *sets = json_object_get(c->root, "datasets");

    for (size_t i = 0; i < json_array_size(sets); i++)
        if (!strcmp(text_of(json_array_get(sets, i), "name"), name))
            return true;
    return false;
}

/* The storage of the only data set of this name. */
static int find_storage(const struct config *c, const char *name,
                        const json_t **storage)
{
    const json_t *sets = json_object_get(c->root, "datasets");
    int n = 0;

    for (size_t i = 0; i < json_array_size(sets); i++) {
        const json_t *set = json_array_get(sets, i);

        if (strcmp(text_of(set, "name"), name) != 0)
            continue;
        *storage = json_object_get(set, "storage");
        n++;
    }
    if (n == 0)
        return fail_unknown(c, sets, name);
    if (n > 1)
        return ddp__fail(DDP_EDATA, "%s: two data sets are named \"%.99s\"",
                         c->path, name);
    return 0;
}

/* ---- storages ----------------------------------------------------------- */

/* Text in which "@__DIR__" stands for the folder of the Data.toml. */
static int put_path(const struct config *c, const char *path, char *where,
                    size_t size)
{
    static const char mark[] = "@__DIR__";
    size_t len = 0;

    while (*path && len < size) {
        const char *next = strstr(path, mark);
        int n = next ? (int)(next - path) : (int)strlen(path);

        len += (size_t)snprintf(where + len, size - len, "%.*s%s", n, path,
                                next ? c->dir : "");
        path += n + (next ? (int)strlen(mark) : 0);
    }
    return len < size
               ? 0
               : ddp__fail(DDP_EDATA, "%s: the path is too long", c->path);
}

static int locate_folder(const struct config *c, const json_t *storage,
                         char *where, size_t size)
{
    const char *path = text_of(storage, "path");

    return path ? put_path(c, path, where, size)
                : ddp__fail(DDP_EDATA, "%s: the driver FileSystem needs a path",
                            c->path);
}

static int locate_bucket(const struct config *c, const json_t *storage,
                         char *where, size_t size)
{
    const char *bucket = text_of(storage, "bucket");
    const char *prefix = text_of(storage, "prefix");
    const char *region = text_of(storage, "region");
    const char *profile = text_of(storage, "profile");

    if (!bucket)
        return ddp__fail(DDP_EDATA, "%s: the driver S3 needs a bucket",
                         c->path);
    if (snprintf(where, size, "s3://%s%s%s", bucket, prefix ? "/" : "",
                 prefix ? prefix : "") >= (int)size)
        return ddp__fail(DDP_EDATA, "%s: the prefix is too long", c->path);
    return ddp__storage_set_place(
        region ? region : text_of(storage, "bucket_region"),
        text_of(storage, "endpoint"),
        profile ? profile : text_of(storage, "aws_profile"));
}

static int locate(const struct config *c, const json_t *storage, char *where,
                  size_t size)
{
    static const struct {
        const char *driver;
        int (*locate)(const struct config *c, const json_t *storage,
                      char *where, size_t size);
    } drivers[] = {{"FileSystem", locate_folder},
                   {"S3", locate_bucket},
                   {"JuliaHubDataRepo", locate_bucket}};
    const char *driver = text_of(storage, "driver");
    const char *type = text_of(storage, "type");

    if (type && strcmp(type, "BlobTree") != 0)
        return ddp__fail(DDP_EDATA,
                         "%s: the type is \"%.40s\", expected a folder: "
                         "\"BlobTree\"",
                         c->path, type);
    for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++)
        if (!strcmp(driver, drivers[i].driver))
            return drivers[i].locate(c, storage, where, size);
    return ddp__fail(DDP_EDATA,
                     "%s: unknown driver \"%.40s\"; available: FileSystem, S3",
                     c->path, driver);
}

/* ---- by name ------------------------------------------------------------ */

/* "name#folder/inside": a folder of the data set. */
static int add_inside(const char *inside, char *where, size_t size)
{
    size_t len = strlen(where);

    if (!inside)
        return 0;
    if (!is_name(inside))
        return ddp__fail(DDP_EINVAL,
                         "\"%.99s\" is no path in a data set: expected words "
                         "of letters, digits, - and _, with / between",
                         inside);
    return snprintf(where + len, size - len, "/%s", inside) < (int)(size - len)
               ? 0
               : ddp__fail(DDP_EINVAL, "the path is too long");
}

/* What is looked for, and where the answer goes. */
struct search {
    char plain[256];    /* the name without what follows a '#' */
    const char *inside; /* which is this; or NULL */
    char *where;
    size_t size;
};

/* In one file.  With `maybe`, 1 if it has no data set of this name. */
static int search_file(const struct search *s, const char *file, bool maybe)
{
    struct config c = {.path = file};
    const json_t *storage = NULL;
    int rc;

    if ((rc = read_config(&c)) == 0) {
        if (maybe && !has_name(&c, s->plain))
            rc = NOT_HERE;
        else if ((rc = find_storage(&c, s->plain, &storage)) == 0 &&
                 (rc = locate(&c, storage, s->where, s->size)) == 0)
            rc = add_inside(s->inside, s->where, s->size);
    }
    json_decref(c.root);
    return rc;
}

/* The Data.toml of an entry of a search path, as DataSets.jl has them. */
static void file_of(const char *entry, char *file, size_t size)
{
    const char *home = getenv("HOME");

    if (!*entry)
        snprintf(file, size, "%s/.julia/datasets/" DATA_TOML, home ? home : "");
    else if (!strcmp(entry, "@"))
        snprintf(file, size, DATA_TOML);
    else
        snprintf(file, size, "%s%s", entry,
                 ddp__dir_exists(entry, ".") ? "/" DATA_TOML : "");
}

/* In the files of a search path, of which some may be missing. */
static int search_path(const struct search *s, const char *path)
{
    char entry[PATH_MAX], file[PATH_MAX + 32], last[PATH_MAX + 32] = "";

    for (const char *p = path;; p++) {
        int n = (int)strcspn(p, ":"), rc = NOT_HERE;

        snprintf(entry, sizeof(entry), "%.*s", n, p);
        file_of(entry, file, sizeof(file));
        if (access(file, F_OK) == 0) {
            rc = search_file(s, file, true);
            strcpy(last, file);
        }
        if (rc != NOT_HERE)
            return rc;
        if (!*(p += n))
            break;
    }
    return *last ? search_file(s, last, false)
                 : ddp__fail(DDP_EIO, "no " DATA_TOML " in the search path %s",
                             path);
}

static const char *path_of_user(void)
{
    const char *path = getenv("DDP_DATASETS_PATH");

    return path ? path : getenv("JULIA_DATASETS_PATH");
}

int ddp_dataset_find(const char *config, const char *name, char *where,
                     size_t size)
{
    struct search s = {.where = where, .size = size};

    if (!name || !where || !size)
        return ddp__fail(DDP_EINVAL, "a data set needs a name");
    if ((s.inside = strchr(name, '#')))
        s.inside++;
    if (snprintf(s.plain, sizeof(s.plain), "%.*s", (int)strcspn(name, "#"),
                 name) >= (int)sizeof(s.plain))
        return ddp__fail(DDP_EINVAL, "the name \"%.40s...\" is too long", name);
    *where = 0;
    if (config || !path_of_user())
        return search_file(&s, config ? config : DATA_TOML, false);
    return search_path(&s, path_of_user());
}

ddp_dataset_t *ddp_dataset_named(const char *config, const char *name,
                                 enum ddp_split split,
                                 const struct ddp_image_options *o)
{
    char where[PATH_MAX];

    return ddp_dataset_find(config, name, where, sizeof(where)) < 0
               ? NULL
               : ddp_dataset_open(where, split, o);
}
