/* csv.c - a table of numbers with a column of classes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/csv.h"
#include "base/error.h"
#include "data/class_names.h"
#include "data/dataset.h"
#include "storage/storage.h"

struct table {
    struct ddp_dataset d;
    float *x; /* count rows of width */
    int32_t *label;
    char **name; /* while reading: the rows' classes, in the text; owned */
    int width;
    int64_t room;
};

static int get_sample(ddp_dataset_t *d, int64_t index, uint64_t key,
                      struct ddp_sample *s)
{
    struct table *t = (struct table *)d;
    size_t width = (size_t)t->width;

    (void)key;
    memcpy(s->x, t->x + (size_t)index * width, width * sizeof(float));
    s->label = t->label[index];
    return 0;
}

static void free_table(ddp_dataset_t *d)
{
    struct table *t = (struct table *)d;

    free(t->x);
    free(t->label);
    free(t->name);
}

static uint32_t checksum(const ddp_dataset_t *d)
{
    const struct table *t = (const struct table *)d;
    size_t n = (size_t)d->count;
    uint32_t crc = ddp__crc32c(0, t->x, n * (size_t)t->width * sizeof(float));

    return ddp__crc32c(crc, t->label, n * sizeof(*t->label));
}

static int32_t label_of(const ddp_dataset_t *d, int64_t index)
{
    return ((const struct table *)d)->label[index];
}

static const struct ddp__dataset_ops ops = {
    .get = get_sample,
    .label = label_of,
    .checksum = checksum,
    .free = free_table,
};

/* ---- rows --------------------------------------------------------------- */

static int reserve_row(struct table *t)
{
    int64_t room = t->room ? 2 * t->room : 256;
    float *x;
    int32_t *label;
    char **name; /* while reading: the rows' classes, in the text; owned */

    if (t->d.count < t->room)
        return 0;
    x = realloc(t->x, (size_t)room * (size_t)t->width * sizeof(*x));
    if (x)
        t->x = x;
    label = realloc(t->label, (size_t)room * sizeof(*label));
    if (label)
        t->label = label;
    name = realloc(t->name, (size_t)room * sizeof(*name));
    if (name)
        t->name = name;
    if (!x || !label || !name)
        return ddp__fail(DDP_ENOMEM, "out of memory for a table");
    t->room = room;
    return 0;
}

static int add_row(struct table *t, const struct ddp__csv *c, char **column,
                   int label, locale_t plain)
{
    float *x;
    int rc;

    if (c->fields != t->width + 1)
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: %d fields, expected %d, as in "
                         "the header",
                         c->path, c->line, c->fields, t->width + 1);
    if ((rc = reserve_row(t)) < 0)
        return rc;
    x = t->x + t->d.count * t->width;
    for (int i = 0; i < c->fields; i++)
        if (i != label &&
            (rc = ddp__csv_number(c, i, column[i], plain, x++)) < 0)
            return rc;
    if (!*c->field[label])
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: column \"%s\" is empty, expected "
                         "a class",
                         c->path, c->line, column[label]);
    t->name[t->d.count++] = c->field[label];
    return 0;
}

/* The column called `name`; the message lists the existing columns. */
static int find_column(const struct ddp__csv *c, char **column, int n,
                       const char *name)
{
    char all[256] = "";
    size_t len = 0;

    for (int i = 0; i < n; i++)
        if (!strcmp(column[i], name))
            return i;
    for (int i = 0; i < n && len < sizeof(all); i++)
        len += (size_t)snprintf(all + len, sizeof(all) - len, "%s\"%s\"",
                                i ? ", " : "", column[i]);
    return ddp__fail(DDP_EINVAL, "%s:%ld: no column \"%s\": there is %s",
                     c->path, c->line, name, all);
}

static int read_rows(struct table *t, struct ddp__csv *c, char **column,
                     int label)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int rc;

    if (!plain)
        return ddp__fail(DDP_ENOMEM, "out of memory for a locale");
    while ((rc = ddp__csv_next(c)) > 0)
        if ((rc = add_row(t, c, column, label, plain)) < 0)
            break;
    freelocale(plain);
    if (rc == 0 && t->d.count == 0)
        rc = ddp__fail(DDP_EDATA, "%s: has a header and no rows", c->path);
    return rc;
}

static int read_table(struct table *t, struct ddp__csv *c, const char *label)
{
    int n = ddp__csv_next(c), at, rc;
    char **column;

    if (n < 0)
        return n;
    if (n < 2)
        return ddp__fail(DDP_EDATA,
                         "%s:%ld: expected a header of two columns "
                         "at least",
                         c->path, c->line);
    if (!(column = malloc((size_t)n * sizeof(*column))))
        return ddp__fail(DDP_ENOMEM, "out of memory for column names");
    memcpy(column, c->field, (size_t)n * sizeof(*column));
    t->width = n - 1;
    rc = at = find_column(c, column, n, label);
    if (at >= 0)
        rc = read_rows(t, c, column, at);
    free(column);
    return rc;
}

/* The class names of the rows point into the text of the file, so classes
 * are numbered before the file is closed. */
ddp_dataset_t *ddp_dataset_csv(const char *path, const char *label)
{
    struct ddp__bytes text = {0};
    struct ddp__csv csv;
    struct table *t;
    int rc;

    if (!path || !label) {
        ddp__fail(DDP_EINVAL, "a table needs a path and a label column");
        return NULL;
    }
    if (ddp__storage_load(path, DDP__CSV_MAX, &text) < 0 ||
        ddp__csv_open(&csv, path, &text) < 0)
        return NULL;
    if (!(t = (void *)ddp__dataset_new(sizeof(*t), &ops))) {
        ddp__csv_close(&csv);
        return NULL;
    }
    rc = read_table(t, &csv, label);
    if (rc == 0)
        rc = ddp__class_names_number(&t->d, t->d.count, t->name, t->label);
    free(t->name);
    t->name = NULL;
    ddp__csv_close(&csv);
    t->d.shape = (struct ddp_shape){1, 1, t->width};
    t->d.type = DDP_F32;
    if (rc == 0)
        rc = ddp__dataset_describe(
            &t->d, "%s, %lld rows of %d numbers, %d classes", path,
            (long long)t->d.count, t->width, t->d.classes);
    if (rc < 0) {
        ddp_dataset_free(&t->d);
        return NULL;
    }
    return &t->d;
}
