/* webdataset.c - images in tar files without an index
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   github.com/webdataset/webdataset: files of a sample follow each
 *          other and have the same path up to the first dot of the name.
 *
 * The headers are read once, when it is opened, and give the index that tar
 * files of our own come with: so each sample of an epoch's order is known
 * beforehand, for any number of workers and ranks, and a run may resume at any.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "data/files.h"
#include "data/shards.h"
#include "data/tar_scan.h"
#include "data/tars.h"
#include "storage/storage.h"

enum { MOST_LABEL = (1 << 20) - 1, MOST_TEXT = 1 << 20 };
static const int64_t max_image = (int64_t)1 << 30;

/* What is read, and the sample that the last file belonged to. */
struct reader {
    struct ddp__tars_source s;
    const char *file; /* the tar file */
    char key[PATH_MAX];
    char image[PATH_MAX]; /* "": none yet */
    struct ddp__member member;
    bool labelled, by_number; /* by .cls, which goes before .json */
    int64_t without, others;  /* samples without an image; further images */
    int32_t most;             /* the largest label */
};

/* ---- samples ------------------------------------------------------------ */

static int fail_sample(const struct reader *r, const char *what)
{
    char name[PATH_MAX];

    ddp__storage_name(r->s.in, r->file, name, sizeof(name));
    return ddp__fail(DDP_EDATA, "%s: %.200s: %s", name, r->key, what);
}

static int end_sample(struct reader *r)
{
    int rc;

    if (!r->key[0])
        return 0;
    if (!r->image[0]) {
        r->without++;
        return 0;
    }
    if (!r->labelled)
        return fail_sample(r, "expected a file .cls with the number of its "
                              "class, or .json with \"label\"");
    if ((rc = ddp__tar_index_add(&r->s.x, &r->member, r->image)) < 0)
        return rc;
    r->most = r->member.label > r->most ? r->member.label : r->most;
    return 0;
}

/* The bytes of a path before the first dot of the name in it. */
static size_t key_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    return (size_t)(name - path) + strcspn(name, ".");
}

static bool is_key(const struct reader *r, const char *path, size_t len)
{
    return strlen(r->key) == len && !strncmp(r->key, path, len);
}

static void begin_sample(struct reader *r, const char *path, size_t len)
{
    snprintf(r->key, sizeof(r->key), "%.*s", (int)len, path);
    r->image[0] = 0;
    r->member = (struct ddp__member){0};
    r->labelled = r->by_number = false;
}

/* ---- labels ------------------------------------------------------------- */

static int set_label(struct reader *r, long long label, bool by_number)
{
    if (label < 0 || label > MOST_LABEL)
        return fail_sample(r, "its class is no number from 0 to 1048575");
    if (r->labelled && r->by_number && !by_number)
        return 0;
    r->member.label = (int32_t)label;
    r->labelled = true;
    r->by_number = by_number;
    return 0;
}

static int read_number(struct reader *r, const uint8_t *text, int64_t len)
{
    char number[32], *end;
    long long label;

    if (len >= (int64_t)sizeof(number))
        return fail_sample(r, "its file .cls has more than a number");
    snprintf(number, sizeof(number), "%.*s", (int)len, (const char *)text);
    label = strtoll(number, &end, 10);
    if (end == number || end[strspn(end, " \t\r\n")])
        return fail_sample(r, "its file .cls has no number");
    return set_label(r, label, true);
}

/* Without "label", the class may be in .cls. */
static int read_json(struct reader *r, const uint8_t *text, int64_t len)
{
    json_t *root = json_loadb((const char *)text, (size_t)len, 0, NULL);
    const json_t *label = json_object_get(root, "label");
    int rc = 0;

    if (!root)
        rc = fail_sample(r, "its file .json cannot be read");
    else if (json_is_integer(label))
        rc = set_label(r, json_integer_value(label), false);
    json_decref(root);
    return rc;
}

static int read_label(struct reader *r, struct ddp__tar_scan *t,
                      const struct ddp__tar_entry *e, bool number)
{
    const uint8_t *text;

    if (e->len < 1 || e->len > MOST_TEXT)
        return fail_sample(r, "the file with its class is empty or too large");
    if (!(text = ddp__tar_scan_bytes(t, e)))
        return ddp_errcode();
    return number ? read_number(r, text, e->len) : read_json(r, text, e->len);
}

/* ---- files -------------------------------------------------------------- */

static int take_image(struct reader *r, const struct ddp__tar_entry *e)
{
    if (r->image[0]) {
        r->others++;
        return 0;
    }
    if (e->len < 1 || e->len > max_image || !ddp__path_is_below(e->name))
        return fail_sample(r, "its image is empty, or its path leads out of a "
                              "folder");
    snprintf(r->image, sizeof(r->image), "%s", e->name);
    r->member.at = e->at;
    r->member.len = (uint32_t)e->len;
    return 0;
}

static int visit_file(struct ddp__tar_scan *t, const struct ddp__tar_entry *e,
                      void *arg)
{
    struct reader *r = arg;
    size_t len = key_length(e->name);
    const char *end = e->name + len;
    int rc;

    if (!*end || len == 0 || e->name[len - 1] == '/')
        return 0; /* hidden, or of no kind */
    if (!is_key(r, e->name, len)) {
        if ((rc = end_sample(r)) < 0)
            return rc;
        begin_sample(r, e->name, len);
    }
    if (!strcmp(end, ".cls") || !strcmp(end, ".json"))
        return read_label(r, t, e, !strcmp(end, ".cls"));
    return ddp__files_is_image(end) ? take_image(r, e) : 0;
}

static int read_shard(struct reader *r, const char *file)
{
    int rc = ddp__tar_index_add_shard(&r->s.x, file);

    r->file = file;
    r->key[0] = 0;
    if (rc == 0 && (rc = ddp__tar_scan(r->s.in, file, visit_file, r)) == 0)
        rc = end_sample(r);
    return rc;
}

/* ---- classes ------------------------------------------------------------ */

static int number_classes(struct reader *r)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i <= r->most; i++) {
        char name[16];
        int n = snprintf(name, sizeof(name), "%d", i);

        rc = ddp__names_add(&r->s.classes, name, (size_t)n);
    }
    return rc;
}

static int set_classes(struct reader *r, const char *dir)
{
    int rc = ddp__storage_has_file(dir, DDP__TAR_CLASSES)
                 ? ddp__tars_load_classes(&r->s, dir)
                 : number_classes(r);

    if (rc < 0)
        return rc;
    if (r->most >= r->s.classes.count)
        return ddp__fail(DDP_EDATA,
                         "%s/%s: has %d classes, and there are images of class "
                         "%d",
                         dir, DDP__TAR_CLASSES, r->s.classes.count,
                         (int)r->most);
    if (r->s.classes.count < 2)
        return ddp__fail(DDP_EDATA,
                         "%s: all images are of class 0, expected two classes "
                         "or more",
                         dir);
    return 0;
}

/* ---- the data set ------------------------------------------------------- */

static int read_shards(struct reader *r, const struct ddp__shards *s)
{
    int rc = 0;

    if (!(r->s.in = ddp__storage_open(s->dir)))
        return ddp_errcode();
    r->s.unchecked = true;
    for (int i = 0; rc == 0 && i < s->file.count; i++)
        rc = read_shard(r, s->file.name[i]);
    if (rc == 0 && !r->s.x.count)
        rc = ddp__fail(DDP_EDATA, "%s: there are no images in %s%s", s->dir,
                       s->file.name[0], s->file.count > 1 ? ", ..." : "");
    return rc < 0 ? rc : set_classes(r, s->dir);
}

static ddp_dataset_t *make_dataset(struct reader *r, const char *shards,
                                   const struct ddp_image_options *o)
{
    char more[128] = "", text[64];

    if (r->without) {
        snprintf(text, sizeof(text), "; %lld samples without an image",
                 (long long)r->without);
        strcat(more, text);
    }
    if (r->others) {
        snprintf(text, sizeof(text), "; %lld further images",
                 (long long)r->others);
        strcat(more, text);
    }
    return ddp__tars_new(&r->s, shards, more, o);
}

ddp_dataset_t *ddp_dataset_webdataset(const char *shards,
                                      const struct ddp_image_options *o)
{
    struct reader *r = calloc(1, sizeof(*r));
    struct ddp__shards s = {0};
    ddp_dataset_t *d = NULL;

    if (!r)
        ddp__fail(DDP_ENOMEM, "out of memory for a data set");
    else if (!shards)
        ddp__fail(DDP_EINVAL, "a data set needs the names of tar files");
    else if (ddp__shards_find(&s, shards) == 0 && read_shards(r, &s) == 0)
        d = make_dataset(r, shards, o);
    if (r)
        ddp__tars_source_free(&r->s);
    ddp__shards_free(&s);
    free(r);
    return d;
}
