/* class_names.c - classes that a table has by their names
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/class_names.h"
#include "data/dataset.h"

static bool is_whole(const char *s, long long *value)
{
    char *end;

    *value = strtoll(s, &end, 10);
    return *s && !*end;
}

/* Whole numbers by value, then other names by their bytes. */
static int by_name(const void *pa, const void *pb)
{
    const char *a = *(char *const *)pa, *b = *(char *const *)pb;
    long long va, vb;
    bool wa = is_whole(a, &va), wb = is_whole(b, &vb);

    if (wa != wb)
        return wa ? -1 : 1;
    if (wa && va != vb)
        return va < vb ? -1 : 1;
    return strcmp(a, b);
}

/* Turn the sorted names into class names; each is kept once. */
static int keep_classes(ddp_dataset_t *d, int64_t n, char **sorted)
{
    if (!(d->class_name = calloc((size_t)n, sizeof(*d->class_name))))
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0 && !strcmp(sorted[i], sorted[i - 1]))
            continue;
        if (!(d->class_name[d->classes] = strdup(sorted[i])))
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
        d->classes++;
    }
    return 0;
}

int ddp__class_names_number(ddp_dataset_t *d, int64_t n, char *const *name,
                            int32_t *label)
{
    char **sorted = malloc((size_t)n * sizeof(*sorted));
    int rc;

    if (!sorted)
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    memcpy(sorted, name, (size_t)n * sizeof(*sorted));
    qsort(sorted, (size_t)n, sizeof(*sorted), by_name);
    rc = keep_classes(d, n, sorted);
    free(sorted);
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        char **at = bsearch(&name[i], d->class_name, (size_t)d->classes,
                            sizeof(*at), by_name);

        label[i] = (int32_t)(at - d->class_name);
    }
    for (int i = 0; i < d->classes; i++)
        ddp_printable(d->class_name[i]);
    return rc;
}
