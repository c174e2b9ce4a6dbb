/* classes.c - the numbers of classes, by their names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset.h"
#include "data/subset.h"

static bool same_classes(const ddp_dataset_t *d, int n, const char *const *name)
{
    if (d->classes != n)
        return false;
    for (int i = 0; i < n; i++)
        if (strcmp(d->class_name[i], name[i]))
            return false;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(**(const char *const *const *)a,
                  **(const char *const *const *)b);
}

/* Find class i of d in sorted, whose elements point into name. */
static int find_class(const ddp_dataset_t *d, int i, const char *const *name,
                      const char *const **sorted, int n, int32_t *label)
{
    const char *wanted = d->class_name[i];
    const char *const *key = &wanted;
    const char *const **at =
        bsearch(&key, sorted, (size_t)n, sizeof(*sorted), by_name);

    if (!at)
        return ddp__fail(
            DDP_EDATA,
            "the data have a class \"%.99s\", which is none of the "
            "%d expected: \"%.99s\", ...",
            wanted, n, name[0]);
    if ((at > sorted && !strcmp(*at[-1], wanted)) ||
        (at + 1 < sorted + n && !strcmp(*at[1], wanted)))
        return ddp__fail(DDP_EDATA,
                         "the data have a class \"%.99s\", and two of the "
                         "expected ones have this name",
                         wanted);
    *label = (int32_t)(*at - name);
    return 0;
}

static int map_classes(const ddp_dataset_t *d, int n, const char *const *name,
                       int32_t *label)
{
    const char *const **sorted = calloc((size_t)n, sizeof(*sorted));
    int rc = 0;

    if (!sorted)
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    for (int i = 0; i < n; i++)
        sorted[i] = &name[i];
    qsort(sorted, (size_t)n, sizeof(*sorted), by_name);
    for (int i = 0; rc == 0 && i < d->classes; i++)
        rc = find_class(d, i, name, sorted, n, &label[i]);
    free(sorted);
    return rc;
}

static char **copy_names(int n, const char *const *name)
{
    char **copy = calloc((size_t)n, sizeof(*copy));

    for (int i = 0; copy && i < n; i++)
        if (!(copy[i] = strdup(name[i]))) {
            for (; i > 0; i--)
                free(copy[i - 1]);
            free(copy);
            copy = NULL;
        }
    if (!copy)
        ddp__fail(DDP_ENOMEM, "out of memory for class names");
    return copy;
}

/* A second call maps the numbers that the first one gave. */
static void compose_labels(ddp_dataset_t *d, int32_t *label, int old)
{
    if (!d->label_of) {
        d->label_of = label;
        d->kind_classes = old;
        return;
    }
    for (int i = 0; i < d->kind_classes; i++)
        if (d->label_of[i] >= 0)
            d->label_of[i] = label[d->label_of[i]];
    free(label);
}

int ddp_dataset_set_classes(ddp_dataset_t *d, int n, const char *const *name)
{
    char **copy = NULL;
    int32_t *label;
    int rc;

    if (!d)
        return ddp__fail_null("data set");
    if (n < 1 || !name || !d->class_name)
        return ddp__fail(DDP_EINVAL, "the classes of the data, or those "
                                     "expected, have no names");
    if (same_classes(d, n, name))
        return 0;
    if (!(label = calloc((size_t)d->classes, sizeof(*label))))
        return ddp__fail(DDP_ENOMEM, "out of memory for classes");
    if ((rc = map_classes(d, n, name, label)) < 0 ||
        !(copy = copy_names(n, name))) {
        free(label);
        return rc < 0 ? rc : DDP_ENOMEM;
    }
    compose_labels(d, label, d->classes);
    for (int i = 0; i < d->classes; i++)
        free(d->class_name[i]);
    free(d->class_name);
    d->class_name = copy;
    d->classes = n;
    if (d->target_len)
        d->target_len = n;
    return 0;
}

/* ---- counts ------------------------------------------------------------- */

int ddp_dataset_class_counts(const ddp_dataset_t *d, int64_t *count)
{
    if (!d || !count)
        return ddp__fail_null(!d ? "d" : "count");
    if (!d->classes || !d->ops->label || ddp__dataset_has_several(d))
        return ddp__fail(DDP_EINVAL,
                         "the samples of each class cannot be counted: the "
                         "data %s",
                         d->classes && d->target_len
                             ? "have several classes for a sample"
                         : d->classes ? "do not tell classes without reading "
                                        "samples"
                                      : "have no classes");
    memset(count, 0, (size_t)d->classes * sizeof(*count));
    for (int64_t i = 0; i < d->count; i++) {
        int32_t label = ddp__dataset_label(d, i);

        if (label >= 0 && label < d->classes)
            count[label]++;
    }
    return 0;
}
