/* list.c - images that a CSV file lists, with classes or numbers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/error.h"
#include "data/class_names.h"
#include "data/dataset.h"
#include "data/files.h"
#include "storage/storage.h"

/* A list while it is read. */
struct list {
    ddp_dataset_t *d;
    struct ddp__csv csv;
    char **column; /* titles, in the text; owned */
    int columns;
    bool classes; /* the second column has them */
    bool several; /* of each image, or none */
    int numbers;  /* further columns: targets, or with classes a weight */
    locale_t plain;
    char **name;   /* the class, or classes, of each row, in the text; owned */
    float *number; /* numbers of each row; owned */
    int64_t room;  /* rows of both */
};

/* ---- rows --------------------------------------------------------------- */

static int reserve_row(struct list *l)
{
    int64_t room = l->room ? 2 * l->room : 256;
    size_t row = (size_t)l->numbers * sizeof(*l->number);
    char **name;
    float *number;

    if (l->d->count < l->room)
        return 0;
    if ((name = realloc(l->name, (size_t)room * sizeof(*name))))
        l->name = name;
    if ((number = realloc(l->number, (size_t)room * row + 1)))
        l->number = number;
    if (!name || !number)
        return ddp__fail(DDP_ENOMEM, "out of memory for a list of images");
    l->room = room;
    return 0;
}

/* A list may come from elsewhere, and must not lead out of its folder. */
static int check_path(const struct ddp__csv *c)
{
    if (ddp__path_is_below(c->field[0]))
        return 0;
    return ddp__fail(DDP_EDATA,
                     "%s:%ld: \"%.99s\", expected the path of an image below "
                     "the folder of the list",
                     c->path, c->line, c->field[0]);
}

static int read_numbers(struct list *l)
{
    float *x = l->number + l->d->count * l->numbers;
    int first = l->columns - l->numbers, rc = 0;

    for (int i = first; rc == 0 && i < l->columns; i++)
        rc = ddp__csv_number(&l->csv, i, l->column[i], l->plain, x++);
    if (rc == 0 && l->classes && l->numbers && x[-1] < 0)
        rc = ddp__fail(DDP_EDATA, "%s:%ld: weight %g, expected 0 or more",
                       l->csv.path, l->csv.line, (double)x[-1]);
    return rc;
}

static int read_class(struct list *l)
{
    char *name = l->csv.field[1];

    if (!*name && !l->several)
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: column \"%s\" is empty, expected a class",
                         l->csv.path, l->csv.line, l->column[1]);
    l->name[l->d->count] = name;
    return 0;
}

static int add_row(struct list *l)
{
    int rc;

    if (l->csv.fields != l->columns)
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: %d fields, expected %d, as in the header",
                         l->csv.path, l->csv.line, l->csv.fields, l->columns);
    if ((rc = check_path(&l->csv)) < 0 || (rc = reserve_row(l)) < 0 ||
        (rc = read_numbers(l)) < 0 || (rc = l->classes ? read_class(l) : 0) < 0)
        return rc;
    return ddp__files_add(l->d, l->csv.field[0], l->classes ? 0 : -1);
}

/* ---- several classes ---------------------------------------------------- */

/* The classes of all rows, one after the other: the names, in the text, and of
 * which row each is. */
struct marks {
    char **name;
    int64_t *row;
    int32_t *label;
    int64_t count;
};

/* Cut "a; b" into its names, without the blanks around them; returns how many.
 * to: NULL, only count them. */
static int64_t cut_names(char *text, char **to)
{
    int64_t n = 0;

    while (*text) {
        size_t len = strcspn(text, ";");
        char *end = text + len, *next = end + (*end == ';');

        text += strspn(text, " ");
        while (end > text && end[-1] == ' ')
            end--;
        if (end > text) {
            if (to) {
                *end = 0;
                to[n] = text;
            }
            n++;
        }
        text = next;
    }
    return n;
}

static int find_marks(struct list *l, struct marks *m)
{
    int64_t n = 0;

    for (int64_t i = 0; i < l->d->count; i++)
        n += cut_names(l->name[i], NULL);
    m->name = malloc((size_t)n * sizeof(*m->name) + 1);
    m->row = malloc((size_t)n * sizeof(*m->row) + 1);
    m->label = malloc((size_t)n * sizeof(*m->label) + 1);
    if (!m->name || !m->row || !m->label)
        return ddp__fail(DDP_ENOMEM, "out of memory for a list of images");
    for (int64_t i = 0; i < l->d->count; i++)
        for (n = cut_names(l->name[i], m->name + m->count); n > 0; n--)
            m->row[m->count++] = i;
    return 0;
}

/* A target of each image, with 1 for its classes; its first one is its label.
 */
static int set_several(struct list *l, const struct marks *m)
{
    int32_t *label = ddp__files_labels(l->d);
    size_t classes = (size_t)l->d->classes;
    float *target = calloc((size_t)l->d->count, classes * sizeof(*target));

    if (!target)
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for %lld images of %d "
                         "classes",
                         (long long)l->d->count, l->d->classes);
    for (int64_t i = 0; i < l->d->count; i++)
        label[i] = -1;
    for (int64_t i = m->count - 1; i >= 0; i--) {
        target[(size_t)m->row[i] * classes + (size_t)m->label[i]] = 1;
        label[m->row[i]] = m->label[i];
    }
    ddp__files_set_targets(l->d, target, l->d->classes);
    return 0;
}

static int number_several(struct list *l)
{
    struct marks m = {0};
    int rc = find_marks(l, &m);

    if (rc == 0 && !m.count)
        rc = ddp__fail(DDP_EDATA, "%s: no image has a class", l->csv.path);
    if (rc == 0 &&
        (rc = ddp__class_names_number(l->d, m.count, m.name, m.label)) == 0)
        rc = set_several(l, &m);
    free(m.name);
    free(m.row);
    free(m.label);
    return rc;
}

/* ---- the file ----------------------------------------------------------- */

static const char several[] = "labels"; /* the title of such a column */

static bool is_class(const char *title)
{
    return !strcmp(title, "label") || !strcmp(title, "class") ||
           !strcmp(title, several);
}

static int read_titles(struct list *l)
{
    int n = ddp__csv_next(&l->csv);

    if (n < 0)
        return n;
    if (!(l->column = malloc(((size_t)n + 1) * sizeof(*l->column))))
        return ddp__fail(DDP_ENOMEM, "out of memory for column names");
    if (n > 0) /* else the file is empty */
        memcpy(l->column, l->csv.field, (size_t)n * sizeof(*l->column));
    l->columns = n;
    l->classes = (n == 2 || (n == 3 && !strcmp(l->column[2], "weight"))) &&
                 is_class(l->column[1]);
    l->several = l->classes && !strcmp(l->column[1], several);
    l->numbers = n - 1 - l->classes;
    for (int i = 1; !l->classes && i < n; i++)
        if (is_class(l->column[i]))
            n = 0;
    return n >= 2 ? 0
                  : ddp__fail(DDP_EDATA,
                              "%s:%ld: expected a header: path,label or "
                              "path,labels, each also with weight, or path "
                              "and columns of numbers",
                              l->csv.path, l->csv.line);
}

static int finish_list(struct list *l)
{
    ddp_dataset_t *d = l->d;
    int rc;

    if (!d->count)
        return ddp__fail(DDP_EDATA, "%s: has a header and no rows",
                         l->csv.path);
    if (!l->classes) {
        ddp__files_set_targets(d, l->number, l->numbers);
        l->number = NULL;
        return ddp__dataset_describe(d, "%s, %lld images with %d numbers each",
                                     l->csv.path, (long long)d->count,
                                     d->target_len);
    }
    rc = l->several ? number_several(l)
                    : ddp__class_names_number(d, d->count, l->name,
                                              ddp__files_labels(d));
    if (rc < 0)
        return rc;
    if (d->classes < 2)
        return ddp__fail(DDP_EDATA,
                         "%s: all images are of class \"%s\", expected two "
                         "classes or more",
                         l->csv.path, d->class_name[0]);
    if (l->numbers) {
        ddp__files_set_weights(d, l->number);
        l->number = NULL;
    }
    return ddp__dataset_describe(d, "%s, %lld images of %d classes%s%s",
                                 l->csv.path, (long long)d->count, d->classes,
                                 l->several ? ", several each" : "",
                                 l->numbers ? ", with weights" : "");
}

static int read_list(struct list *l)
{
    int rc = read_titles(l);

    if (rc == 0 && !(l->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)))
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a locale");
    while (rc == 0 && (rc = ddp__csv_next(&l->csv)) > 0)
        rc = add_row(l);
    return rc < 0 ? rc : finish_list(l);
}

static void close_list(struct list *l)
{
    if (l->plain)
        freelocale(l->plain);
    free(l->column);
    free(l->name);
    free(l->number);
    ddp__csv_close(&l->csv);
}

/* A data set of the folder that the list is in, to be filled. */
static ddp_dataset_t *open_folder(const char *path,
                                  const struct ddp_image_options *o)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + (slash == path) : 0;
    char *dir = len ? strndup(path, len) : strdup(".");
    ddp_dataset_t *d = dir ? ddp__files_new(dir, o) : NULL;

    if (!dir)
        ddp__fail(DDP_ENOMEM, "out of memory for a path");
    free(dir);
    return d;
}

ddp_dataset_t *ddp_dataset_list(const char *csv,
                                const struct ddp_image_options *o)
{
    struct ddp__bytes text = {0};
    struct list l = {0};

    if (!csv) {
        ddp__fail(DDP_EINVAL, "a list of images needs a path");
        return NULL;
    }
    if (ddp__storage_load(csv, DDP__CSV_MAX, &text) < 0 ||
        ddp__csv_open(&l.csv, csv, &text) < 0)
        return NULL;
    if ((l.d = open_folder(csv, o)) && read_list(&l) < 0) {
        ddp_dataset_free(l.d);
        l.d = NULL;
    }
    close_list(&l);
    return l.d;
}
