/* files.c - a data set of image files: paths, labels, and reading them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "data/dataset.h"
#include "data/files.h"
#include "image/cache.h"
#include "image/image.h"
#include "image/load.h"
#include "storage/storage.h"

enum { SKIPPED = 8, MAX_CONTENT = 64 << 20 };

struct files {
    struct ddp_dataset d;
    struct ddp_image_options o;
    struct ddp__kept kept;
    struct ddp__storage *in; /* where they are; owned */
    char *names;             /* all paths in it, concatenated; owned */
    size_t *at;              /* where each path begins; owned */
    int32_t *label;          /* owned */
    float *target;           /* (count, target_len); owned; may be NULL */
    int target_len;
    float *weight; /* of each file; owned; may be NULL */
    size_t names_len, names_room;
    int64_t room; /* of at and label */
    struct skipped {
        char end[12]; /* in lower case, with the dot; "": another one */
        int64_t n;
    } skipped[SKIPPED]; /* files that are no images, by extension */
    int64_t hidden;     /* files in whose path a name begins with a dot */
};

/* ---- the data set ------------------------------------------------------- */

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct files *f = (struct files *)d;
    const struct ddp__wanted wanted = {.o = &f->o,
                                       .key = key,
                                       .kept = &f->kept,
                                       .index = index,
                                       .count = d->count};

    s->label = f->label[index];
    if (f->weight)
        s->weight = f->weight[index];
    if (f->target && s->target)
        memcpy(s->target, f->target + (size_t)index * (size_t)f->target_len,
               (size_t)f->target_len * sizeof(*f->target));
    return ddp__image_load(f->in, f->names + f->at[index], &wanted, s->x);
}

static void begin_sample(ddp_dataset_t *d, int64_t index)
{
    struct files *f = (struct files *)d;

    if (!ddp__image_kept(f->in, f->names + f->at[index], NULL, &f->kept, index))
        f->in->ops->ahead(f->in, f->names + f->at[index], 0, 0);
}

static const char *path_of(const ddp_dataset_t *d, int64_t index)
{
    static _Thread_local char path[PATH_MAX];
    const struct files *f = (const struct files *)d;

    ddp__storage_name(f->in, f->names + f->at[index], path, sizeof(path));
    return path;
}

static void free_files(ddp_dataset_t *d)
{
    struct files *f = (struct files *)d;

    ddp__cache_drop(&f->kept);
    ddp__storage_close(f->in);
    free(f->names);
    free(f->at);
    free(f->label);
    free(f->target);
    free(f->weight);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct files *f = (const struct files *)d;
    uint32_t crc = ddp__crc32c(0, f->names, f->names_len);

    crc = ddp__crc32c(crc, f->label, (size_t)d->count * sizeof(*f->label));
    if (f->weight)
        crc =
            ddp__crc32c(crc, f->weight, (size_t)d->count * sizeof(*f->weight));
    return f->target ? ddp__crc32c(crc, f->target,
                                   (size_t)d->count * (size_t)f->target_len *
                                       sizeof(*f->target))
                     : crc;
}

static int content_of(const ddp_dataset_t *d, int64_t index,
                      struct ddp__content *c)
{
    const struct files *f = (const struct files *)d;
    struct ddp__bytes b = {0};
    int rc;

    c->name = f->names + f->at[index];
    if ((rc = ddp__storage_read(f->in, c->name, MAX_CONTENT, &b)) == 0)
        rc = ddp__identity_image(c, &b, f->o.max_pixels);
    free(b.data);
    return rc;
}

static int file_of(ddp_dataset_t *d, int64_t index, struct ddp__bytes *b)
{
    const struct files *f = (const struct files *)d;

    return ddp__storage_read(f->in, f->names + f->at[index], MAX_CONTENT, b);
}

static const char *name_of(const ddp_dataset_t *d, int64_t index)
{
    const struct files *f = (const struct files *)d;

    return f->names + f->at[index];
}

static int options(const ddp_dataset_t *d,
                   struct ddp_option o[DDP__IMAGE_OPTIONS])
{
    return ddp__image_list(&((const struct files *)d)->o, o);
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    return ((const struct files *)d)->label[index];
}

static const struct ddp__dataset_ops ops = {
    .get = get_sample,
    .ahead = begin_sample,
    .label = label_of,
    .path = path_of,
    .file = file_of,
    .name = name_of,
    .checksum = checksum,
    .content = content_of,
    .options = options,
    .free = free_files,
};

ddp_dataset_t *ddp__files_new(const char *dir,
                              const struct ddp_image_options *o)
{
    struct files *f = (void *)ddp__dataset_new(sizeof(*f), &ops);

    if (!f)
        return NULL;
    if (ddp__image_options(o, 224, &f->o) < 0 ||
        !(f->in = ddp__storage_open(dir))) {
        ddp_dataset_free(&f->d);
        return NULL;
    }
    ddp__dataset_set_images(&f->d, &f->o);
    f->d.far = f->in->ops->ahead;
    return &f->d;
}

/* ---- adding ------------------------------------------------------------- */

/* Three arrays grow, each assigned as soon as it has moved: after a failure
 * the data set still owns valid memory. */
static int reserve_path(struct files *f, size_t len)
{
    int64_t room = f->room ? 2 * f->room : 256;
    size_t bytes = 2 * (f->names_len + len) + 4096;
    void *p;

    if (f->names_room - f->names_len < len) {
        if (!(p = realloc(f->names, bytes)))
            goto nomem;
        f->names = p;
        f->names_room = bytes;
    }
    if (f->d.count == f->room) {
        if (!(p = realloc(f->at, (size_t)room * sizeof(*f->at))))
            goto nomem;
        f->at = p;
        if (!(p = realloc(f->label, (size_t)room * sizeof(*f->label))))
            goto nomem;
        f->label = p;
        f->room = room;
    }
    return 0;

nomem:
    return ddp__fail(DDP_ENOMEM, "out of memory for the paths of %lld files",
                     (long long)f->d.count);
}

int ddp__files_add(ddp_dataset_t *d, const char *path, int32_t label)
{
    struct files *f = (struct files *)d;
    size_t len = strlen(path) + 1;
    int rc = reserve_path(f, len);

    if (rc < 0)
        return rc;
    memcpy(f->names + f->names_len, path, len);
    f->at[d->count] = f->names_len;
    f->label[d->count++] = label;
    f->names_len += len;
    return 0;
}

int32_t *ddp__files_labels(ddp_dataset_t *d)
{
    return ((struct files *)d)->label;
}

void ddp__files_set_targets(ddp_dataset_t *d, float *target, int len)
{
    struct files *f = (struct files *)d;

    f->target = target;
    f->target_len = d->target_len = len;
}

void ddp__files_set_weights(ddp_dataset_t *d, float *weight)
{
    ((struct files *)d)->weight = weight;
}

/* ---- folders ------------------------------------------------------------ */

/* The files below one folder, before sorting. */
struct found {
    size_t folder;       /* bytes of its path */
    struct files *files; /* counts those that are no images, or hidden */
    char **path;         /* owned, each one too */
    size_t count, room;
};

bool ddp__files_is_image(const char *name)
{
    static const char *const end[] = {
        ".jpg", ".jpeg", ".jpe", ".jfif", ".png",  ".ppm",
        ".bmp", ".pgm",  ".tif", ".tiff", ".webp",
    };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof(end) / sizeof(*end); i++)
        if (!strcasecmp(dot, end[i]))
            return true;
    return dot && ddp__image_suffix(dot);
}

/* The row of an extension, which is the last one for those without room. */
static struct skipped *skipped_row(struct files *f, const char *end)
{
    int i = 0;

    while (i < SKIPPED - 1 && f->skipped[i].n && strcmp(f->skipped[i].end, end))
        i++;
    return &f->skipped[i];
}

static void count_skipped(struct files *f, const char *name)
{
    const char *dot = strrchr(name, '.');
    char end[sizeof(f->skipped->end)] = "";
    struct skipped *row;

    if (dot && strlen(dot) < sizeof(end))
        for (int i = 0; dot[i]; i++)
            end[i] = (char)tolower((unsigned char)dot[i]);
    ddp_printable(end);
    row = skipped_row(f, end);
    if (!row->n++)
        strcpy(row->end, end);
    else if (strcmp(row->end, end))
        row->end[0] = 0;
}

static int count_image(const char *name, bool folder, void *arg)
{
    *(int64_t *)arg += !folder && ddp__files_is_image(name);
    return 0;
}

int64_t ddp__files_count(const ddp_dataset_t *d)
{
    struct ddp__storage *in = ((const struct files *)d)->in;
    int64_t count = 0;
    int rc = in->ops->list(in, ".", count_image, &count);

    return rc < 0 ? rc : count;
}

static void put_skipped(char *text, int64_t n, const char *what)
{
    size_t len = strlen(text);

    if (n > 0)
        snprintf(text + len, DDP__SKIPPED_TEXT - len, "%s%lld %s",
                 len ? ", " : "; skipped files: ", (long long)n, what);
}

int ddp__files_skipped(const ddp_dataset_t *d, bool classes,
                       char text[DDP__SKIPPED_TEXT])
{
    const struct files *f = (const struct files *)d;
    int64_t outside = classes ? ddp__files_count(d) : 0;

    *text = 0;
    for (int i = 0; i < SKIPPED; i++)
        put_skipped(text, f->skipped[i].n,
                    f->skipped[i].end[0] ? f->skipped[i].end : "others");
    put_skipped(text, f->hidden, "hidden");
    put_skipped(text, outside, "outside of class folders");
    return outside < 0 ? (int)outside : 0;
}

/* By folder first, then by name: the order of torchvision's ImageFolder. */
static int by_path(const void *pa, const void *pb)
{
    const char *a = *(char *const *)pa, *b = *(char *const *)pb;
    const char *na = strrchr(a, '/') + 1, *nb = strrchr(b, '/') + 1;
    size_t la = (size_t)(na - a) - 1, lb = (size_t)(nb - b) - 1;
    int order = memcmp(a, b, la < lb ? la : lb);

    if (order == 0 && la != lb)
        return la < lb ? -1 : 1;
    return order ? order : strcmp(na, nb);
}

/* Takes path. */
static int found_add(struct found *f, char *path)
{
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 256;
        char **more = realloc(f->path, room * sizeof(*more));

        if (!more) {
            free(path);
            return ddp__fail(DDP_ENOMEM, "out of memory for a list of files");
        }
        f->path = more;
        f->room = room;
    }
    f->path[f->count++] = path;
    return 0;
}

static void found_free(struct found *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->path[i]);
    free(f->path);
}

static int find_image(const char *path, void *arg)
{
    struct found *f = arg;
    const char *name = strrchr(path, '/') + 1;
    char *copy;

    if (strstr(path + f->folder, "/.")) {
        f->files->hidden++;
        return 0;
    }
    if (!ddp__files_is_image(name)) {
        count_skipped(f->files, name);
        return 0;
    }
    if (!(copy = strdup(path)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a list of files");
    return found_add(f, copy);
}

int64_t ddp__files_add_folder(ddp_dataset_t *d, const char *name, int32_t label)
{
    struct found f = {.folder = strlen(name), .files = (struct files *)d};
    struct ddp__storage *in = f.files->in;
    int64_t count;
    int rc = in->ops->find(in, name, find_image, &f);

    count = (int64_t)f.count;
    if (f.count)
        qsort(f.path, f.count, sizeof(*f.path), by_path);
    for (size_t i = 0; rc == 0 && i < f.count; i++)
        rc = ddp__files_add(d, f.path[i], label);
    found_free(&f);
    return rc < 0 ? rc : count;
}

/* ---- images by their paths ---------------------------------------------- */

/* A folder stands for the images in it; a missing file becomes a bad sample. */
static int add_path(ddp_dataset_t *d, const char *path)
{
    size_t len = path ? strlen(path) : 0;
    struct stat st;
    char *folder;
    int64_t n;

    if (!len)
        return ddp__fail(DDP_EINVAL, "the path of an image is empty");
    if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return ddp__files_add(d, path, -1);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (!(folder = strndup(path, len)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    n = ddp__files_add_folder(d, folder, -1);
    free(folder);
    return n < 0 ? (int)n : 0;
}

static int describe_images(ddp_dataset_t *d)
{
    char skipped[DDP__SKIPPED_TEXT];
    int rc = ddp__files_skipped(d, false, skipped);

    return rc < 0 ? rc
                  : ddp__dataset_describe(d, "%lld images%s",
                                          (long long)d->count, skipped);
}

ddp_dataset_t *ddp_dataset_images(const char *const *path, int64_t n,
                                  const struct ddp_image_options *o)
{
    ddp_dataset_t *d = ddp__files_new(NULL, o);
    int rc = d ? 0 : DDP_EINVAL;

    if (rc == 0 && !path && n > 0)
        rc = ddp__fail(DDP_EINVAL, "the list of images is NULL");
    for (int64_t i = 0; rc == 0 && i < n; i++)
        rc = add_path(d, path[i]);
    if (rc == 0 && d->count == 0)
        rc = ddp__fail(DDP_EDATA, "the list of images is empty");
    if (rc == 0)
        rc = describe_images(d);
    if (rc == 0)
        return d;
    ddp_dataset_free(d);
    return NULL;
}
