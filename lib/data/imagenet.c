/* imagenet.c - ImageNet as Kaggle's archive has it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Classes are the lines of LOC_synset_mapping.txt, from 0.  Images come from
 * class folders where there are some: LOC_train_solution.csv lists only the
 * training images that have boxes, which are less than half of them.
 */
#include "config.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/error.h"
#include "data/dataset.h"
#include "data/files.h"
#include "storage/storage.h"

static const char mapping_file[] = "LOC_synset_mapping.txt";

/* ---- classes ------------------------------------------------------------ */

struct synset {
    char *id;   /* in the mapping's text */
    char *name; /* the same */
    int label;
};

struct mapping {
    struct ddp__bytes text;
    struct synset *synset; /* sorted by id; owned */
    int count;
    bool sorted; /* also in the file: labels are torchvision's */
};

/* Ids become parts of paths, so they must not lead out of the folder. */
static bool is_id(const char *s)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789_.-";

    return *s && strspn(s, plain) == strlen(s) && strcmp(s, ".") &&
           strcmp(s, "..");
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct synset *)a)->id,
                  ((const struct synset *)b)->id);
}

static const struct synset *find_synset(const struct mapping *m, const char *id)
{
    struct synset key = {.id = (char *)(uintptr_t)id};

    return bsearch(&key, m->synset, (size_t)m->count, sizeof(key), by_id);
}

static int add_synset(struct mapping *m, const char *path, char *line)
{
    struct synset *s = &m->synset[m->count];
    size_t id = strcspn(line, " \t");

    s->name = line + id + strspn(line + id, " \t");
    line[id] = 0;
    s->id = line;
    s->label = m->count;
    if (!is_id(line))
        return ddp__fail(DDP_EDATA,
                         "%s:%d: expected a synset such as "
                         "n01440764 and its name",
                         path, m->count + 1);
    if (!*s->name)
        s->name = s->id;
    m->sorted = m->sorted && (m->count == 0 || strcmp(s[-1].id, s->id) < 0);
    m->count++;
    return 0;
}

/* A zero byte would end the list there. */
static int check_text(const struct mapping *m, const char *path)
{
    const char *zero = memchr(m->text.data, 0, m->text.len);
    int line = 1;

    if (!zero)
        return 0;
    for (const char *p = (const char *)m->text.data; p < zero; p++)
        line += *p == '\n';
    return ddp__fail(DDP_EDATA,
                     "%s:%d: contains a zero byte, expected text: the file is "
                     "damaged",
                     path, line);
}

static int split_lines(struct mapping *m, const char *path)
{
    char *at = (char *)m->text.data, *next;
    int rc, lines = 1;

    for (const char *p = at; *p; p++)
        lines += *p == '\n';
    if (!(m->synset = calloc((size_t)lines, sizeof(*m->synset))))
        return ddp__fail(DDP_ENOMEM, "out of memory for classes");
    m->sorted = true;
    for (; *at; at = next) {
        size_t len = strcspn(at, "\n");

        next = at + len + (at[len] == '\n');
        at[len] = 0;
        if (len > 0 && at[len - 1] == '\r')
            at[len - 1] = 0;
        if ((*at || next[strspn(next, "\r\n")]) &&
            (rc = add_synset(m, path, at)) < 0)
            return rc;
    }
    return 0;
}

static int sort_synsets(struct mapping *m, const char *path)
{
    qsort(m->synset, (size_t)m->count, sizeof(*m->synset), by_id);
    for (int i = 1; i < m->count; i++)
        if (!strcmp(m->synset[i].id, m->synset[i - 1].id))
            return ddp__fail(DDP_EDATA, "%s:%d: %s is also in line %d", path,
                             m->synset[i].label + 1, m->synset[i].id,
                             m->synset[i - 1].label + 1);
    if (m->count > 1)
        return 0;
    return ddp__fail(DDP_EDATA, "%s: has %s, expected two or more", path,
                     m->count ? "one class" : "no classes");
}

static int mapping_read(struct mapping *m, const char *dir)
{
    char *path = ddp__path_join(dir, mapping_file);
    int rc;

    if (!path)
        return DDP_ENOMEM;
    if ((rc = ddp__storage_load(path, (size_t)64 << 20, &m->text)) == 0 &&
        (rc = check_text(m, path)) == 0 && (rc = split_lines(m, path)) == 0)
        rc = sort_synsets(m, path);
    free(path);
    return rc;
}

static void mapping_free(struct mapping *m)
{
    free(m->text.data);
    free(m->synset);
}

static int set_classes(ddp_dataset_t *d, const struct mapping *m)
{
    if (!(d->class_name = calloc((size_t)m->count, sizeof(*d->class_name))))
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    d->classes = m->count;
    for (int i = 0; i < m->count; i++) {
        char *name = strdup(m->synset[i].name);

        if (!name)
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
        ddp_printable(name);
        d->class_name[m->synset[i].label] = name;
    }
    return 0;
}

/* ---- images by class folders -------------------------------------------- */

/* Counts of what was found, for the description. */
struct tally {
    int64_t files;      /* in a flat folder */
    int64_t rows;       /* of the CSV */
    int64_t mixed;      /* skipped: several classes */
    int64_t unknown;    /* skipped: no class of the mapping */
    int folders, empty; /* of the mapping's classes: those with a folder, those
                           without images */
    int strange;        /* folders that are not classes */
};

static int add_folders(ddp_dataset_t *d, const struct mapping *m,
                       const struct ddp__names *n, struct tally *t)
{
    for (int i = 0; i < n->count; i++) {
        const struct synset *s = find_synset(m, n->name[i]);
        int64_t images;

        if (!s)
            continue;
        if ((images = ddp__files_add_folder(d, s->id, s->label)) < 0)
            return (int)images;
        t->empty += images == 0;
    }
    return 0;
}

static void count_folders(const struct mapping *m, const struct ddp__names *n,
                          struct tally *t)
{
    for (int i = 0; i < n->count; i++)
        if (find_synset(m, n->name[i]))
            t->folders++;
    t->strange = n->count - t->folders;
}

/* ---- images by a list --------------------------------------------------- */

enum { SEVERAL = -1, UNKNOWN = -2, NO_LIST = -3 };

/* The class of "synset x y x y synset x y x y ...", where boxes may be missing,
 * or one of the above. */
static int boxes_label(const struct mapping *m, char *boxes)
{
    int label = NO_LIST, numbers = 0;
    char *save, *word;

    for (word = strtok_r(boxes, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        const struct synset *s;

        if (word[strspn(word, "-0123456789.")] == 0) {
            numbers++;
            continue;
        }
        if (numbers % 4 || (label == NO_LIST && numbers) || !is_id(word))
            return NO_LIST;
        if (!(s = find_synset(m, word)))
            return UNKNOWN;
        if (label != NO_LIST && label != s->label)
            return SEVERAL;
        label = s->label;
    }
    return numbers % 4 ? NO_LIST : label;
}

/* A row of several or unknown classes is counted and left out; a malformed
 * one means that the file is damaged or another list, which is an error. */
static int add_row(ddp_dataset_t *d, const struct mapping *m,
                   const struct ddp__csv *c, struct tally *t)
{
    char name[NAME_MAX + 1];
    int label;

    if (c->fields != 2)
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: %d fields, expected ImageId and "
                         "PredictionString",
                         c->path, c->line, c->fields);
    if (!is_id(c->field[0]) || snprintf(name, sizeof(name), "%s.JPEG",
                                        c->field[0]) >= (int)sizeof(name))
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: ImageId \"%.60s\", expected "
                         "letters, digits, '_', '.' and '-' only",
                         c->path, c->line, c->field[0]);
    label = boxes_label(m, c->field[1]);
    if (label == NO_LIST)
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: expected a synset and four "
                         "numbers, once or more",
                         c->path, c->line);
    t->rows++;
    t->mixed += label == SEVERAL;
    t->unknown += label == UNKNOWN;
    return label < 0 ? 0 : ddp__files_add(d, name, label);
}

static int add_rows(ddp_dataset_t *d, const struct mapping *m,
                    struct ddp__csv *c, struct tally *t)
{
    int rc = ddp__csv_next(c);

    if (rc < 0)
        return rc;
    if (rc != 2 || strcmp(c->field[0], "ImageId") ||
        strcmp(c->field[1], "PredictionString"))
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: expected the header "
                         "ImageId,PredictionString",
                         c->path, c->line);
    while ((rc = ddp__csv_next(c)) > 0)
        if ((rc = add_row(d, m, c, t)) < 0)
            return rc;
    return rc;
}

static int add_list(ddp_dataset_t *d, const struct mapping *m, const char *dir,
                    const char *list, struct tally *t)
{
    char *path = ddp__path_join(dir, list);
    struct ddp__bytes text = {0};
    struct ddp__csv csv;
    int rc = path ? ddp__storage_load(path, DDP__CSV_MAX, &text) : DDP_ENOMEM;

    if (rc == 0 && (rc = ddp__csv_open(&csv, path, &text)) == 0) {
        rc = add_rows(d, m, &csv, t);
        ddp__csv_close(&csv);
    }
    free(path);
    return rc;
}

/* ---- the data set ------------------------------------------------------- */

static __attribute__((format(printf, 3, 4))) void
append(char *text, size_t room, const char *fmt, ...)
{
    size_t len = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + len, room - len, fmt, ap);
    va_end(ap);
}

/* Counts every kind of image that is left out, so that a wrong folder or
 * list is noticed before training. */
static int describe_dataset(ddp_dataset_t *d, const struct mapping *m,
                            const char *split, const char *list,
                            const struct tally *t)
{
    char more[768] = "", skipped[DDP__SKIPPED_TEXT];
    int left = m->count - t->folders + t->empty;
    int rc = ddp__files_skipped(d, t->folders > 0, skipped);

    if (rc < 0)
        return rc;

    append(more, sizeof(more), "%s", t->folders ? "folders" : list);
    if (t->folders && left)
        append(more, sizeof(more), "; %d classes have no images", left);
    if (t->folders && t->strange)
        append(more, sizeof(more),
               "; %d folders are not classes and are skipped", t->strange);
    if (t->files > t->rows && !t->folders)
        append(more, sizeof(more), "; lists only %lld of %lld files",
               (long long)t->rows, (long long)t->files);
    if (t->mixed)
        append(more, sizeof(more),
               "; %lld rows with several classes are skipped",
               (long long)t->mixed);
    if (t->unknown)
        append(more, sizeof(more),
               "; %lld rows with unknown classes are skipped",
               (long long)t->unknown);
    append(more, sizeof(more), "%s", skipped);
    if (!m->sorted)
        append(more, sizeof(more),
               "; classes are not sorted: their numbers differ from "
               "torchvision's");
    return ddp__dataset_describe(d,
                                 "ImageNet %s, %lld images of %d classes "
                                 "(%s)",
                                 split, (long long)d->count, d->classes, more);
}

/* Fill d, whose folder is `images`. */
static int add_images(ddp_dataset_t *d, const char *dir, const char *images,
                      bool train, const struct mapping *m)
{
    const char *list =
        train ? "LOC_train_solution.csv" : "LOC_val_solution.csv";
    struct ddp__names n;
    struct tally t = {0};
    int rc;

    if ((rc = ddp__storage_folders(images, &n)) < 0)
        return rc;
    count_folders(m, &n, &t);
    if (t.folders)
        rc = add_folders(d, m, &n, &t);
    else if ((rc = add_list(d, m, dir, list, &t)) == 0 &&
             (t.files = ddp__files_count(d)) < 0)
        rc = (int)t.files;
    ddp__names_free(&n);
    if (rc == 0 && d->count == 0)
        rc = ddp__fail(DDP_EDATA, "%s: no images of the classes in %s/%s",
                       t.folders ? images : list, dir, mapping_file);
    if (rc == 0)
        rc = set_classes(d, m);
    return rc < 0 ? rc
                  : describe_dataset(d, m, train ? "train" : "val", list, &t);
}

static ddp_dataset_t *open_split(const char *dir, bool train,
                                 const struct mapping *m,
                                 const struct ddp_image_options *o)
{
    char *images = ddp__path_join(dir, train ? "ILSVRC/Data/CLS-LOC/train"
                                             : "ILSVRC/Data/CLS-LOC/val");
    ddp_dataset_t *d = images ? ddp__files_new(images, o) : NULL;

    if (d && add_images(d, dir, images, train, m) < 0) {
        ddp_dataset_free(d);
        d = NULL;
    }
    free(images);
    return d;
}

ddp_dataset_t *ddp_dataset_imagenet(const char *dir, enum ddp_split split,
                                    const struct ddp_image_options *o)
{
    struct mapping m = {0};
    ddp_dataset_t *d = NULL;

    if (!dir)
        ddp__fail(DDP_EINVAL, "a data set needs a folder");
    else if (split != DDP_TRAIN && split != DDP_VAL)
        ddp__fail(DDP_EINVAL,
                  "ImageNet's test images have no labels: use those for "
                  "validation");
    else if (mapping_read(&m, dir) == 0)
        d = open_split(dir, split == DDP_TRAIN, &m, o);
    mapping_free(&m);
    return d;
}
