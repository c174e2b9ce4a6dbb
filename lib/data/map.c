/* map.c - a data set whose classes are others, or some of them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/subset.h"

/* ---- classes ------------------------------------------------------------ */

static int check_map(const ddp_dataset_t *d, const int32_t *to, int classes)
{
    if (!to || classes < 1 || d->classes < 1)
        return ddp__fail(DDP_EINVAL,
                         "a map of classes needs data with classes, a number "
                         "for each of them, and one class at least");
    if (ddp__dataset_has_several(d))
        return ddp__fail(DDP_EINVAL, "classes of samples that have several "
                                     "cannot be mapped");
    for (int i = 0; i < d->classes; i++) {
        if (to[i] >= classes)
            return ddp__fail(DDP_EINVAL,
                             "class %d becomes class %d, expected less than %d",
                             i, (int)to[i], classes);
        if (to[i] < 0 && !d->ops->label)
            return ddp__fail(DDP_EINVAL,
                             "the classes of these data are known only by "
                             "reading them: none can be left out");
    }
    return 0;
}

/* The name given for class i; or that of the first class that became it. */
static const char *name_for(const ddp_dataset_t *of, const int32_t *to, int i,
                            const char *const *name)
{
    if (name)
        return name[i];
    for (int k = 0; of->class_name && k < of->classes; k++)
        if (to[k] == i)
            return of->class_name[k];
    return "";
}

static int set_classes(struct ddp__subset *p, const int32_t *to, int classes,
                       const char *const *name)
{
    ddp_dataset_t *d = &p->d;
    size_t n = (size_t)p->of->classes;

    d->classes = classes;
    d->kind_classes = p->of->classes;
    d->label_of = malloc(n * sizeof(*to));
    if (name || p->of->class_name)
        d->class_name = calloc((size_t)classes, sizeof(*d->class_name));
    if (!d->label_of || ((name || p->of->class_name) && !d->class_name))
        return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    memcpy(d->label_of, to, n * sizeof(*to));
    for (int i = 0; d->class_name && i < classes; i++)
        if (!(d->class_name[i] = strdup(name_for(p->of, to, i, name))))
            return ddp__fail(DDP_ENOMEM, "out of memory for class names");
    return 0;
}

/* ---- samples ------------------------------------------------------------ */

static int keep_samples(struct ddp__subset *p)
{
    for (int64_t i = 0; i < p->of->count; i++) {
        int32_t label = ddp__dataset_label(p->of, i);

        if (label < 0 || p->d.label_of[label] >= 0)
            p->index[p->d.count++] = i;
    }
    if (p->d.count)
        return 0;
    return ddp__fail(DDP_EINVAL, "%s: no sample has a class that is kept",
                     ddp_dataset_describe(p->of));
}

static int make_map(struct ddp__subset *p, const int32_t *to, int classes,
                    const char *const *name)
{
    int rc;

    if ((rc = set_classes(p, to, classes, name)) < 0 ||
        (rc = keep_samples(p)) < 0)
        return rc;
    return ddp__dataset_describe(&p->d, "%s; of these %lld, in %d classes",
                                 ddp_dataset_describe(p->of),
                                 (long long)p->d.count, classes);
}

ddp_dataset_t *ddp_dataset_map(ddp_dataset_t *d, const int32_t *to, int classes,
                               const char *const *name)
{
    struct ddp__subset *p;

    if (!d) {
        ddp__fail_null("data set");
        return NULL;
    }
    p = ddp__subset_new(d, d->count, check_map(d, to, classes));
    return p ? ddp__subset_finish(p, make_map(p, to, classes, name)) : NULL;
}
