/* class_subset.c - the option --classes: some classes of the data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "ddp.h"

#include "common/app.h"
#include "common/app_fail.h"
#include "class_subset.h"
#include "names.h"

/* Classes keep their order; to[i] is negative for those that go. */
static int map_classes(ddp_dataset_t **d, int32_t *to)
{
    int n = 0, classes = ddp_dataset_classes(*d);

    for (int i = 0; i < classes; i++)
        if (to[i] >= 0)
            to[i] = n++;
    if (n == classes)
        return OPTS_GO;
    *d = ddp_dataset_map(*d, to, n, NULL);
    return *d ? OPTS_GO : app_fail(ddp_errcode());
}

static int32_t *none_of(const ddp_dataset_t *d)
{
    int n = ddp_dataset_classes(d);
    int32_t *to = calloc((size_t)n + 1, sizeof(*to));

    for (int i = 0; to && i < n; i++)
        to[i] = -1;
    return to;
}

static int find_class(const ddp_dataset_t *d, const char *name)
{
    const char *have;

    for (int i = 0; (have = ddp_dataset_class_name(d, i)); i++)
        if (!strcmp(have, name))
            return i;
    return -1;
}

/* Choose the named classes.  The first name that the data do not have, or NULL.
 */
static const char *choose_names(const ddp_dataset_t *d, int64_t n,
                                const char *const *name, int32_t *to)
{
    const char *strange = NULL;

    for (int64_t i = 0; i < n; i++) {
        int at = find_class(d, name[i]);

        if (at >= 0)
            to[at] = 0;
        else if (!strange)
            strange = name[i];
    }
    return strange;
}

/* A name of the file that the data do not have is probably misspelt. */
static int choose_listed(const struct opts *o, const char *path,
                         const ddp_dataset_t *d, int32_t *to)
{
    struct names names = {0};
    int rc = names_read(&names, path);
    const char *strange =
        choose_names(d, names.count, (const char *const *)names.name, to);

    if (rc == OPTS_GO && strange) {
        opt_complain(o,
                     "--classes %s: the data have no class \"%.99s\"; imagenet "
                     "data check lists their classes",
                     path, strange);
        rc = EXIT_USAGE;
    } else if (rc == OPTS_GO && !names.count) {
        opt_complain(o,
                     "--classes %s: the file is empty, expected the name of a "
                     "class in each line",
                     path);
        rc = EXIT_USAGE;
    }
    names_free(&names);
    return rc;
}

static int choose_first(const struct opts *o, long long n,
                        const ddp_dataset_t *d, int32_t *to)
{
    if (n < 1 || n > ddp_dataset_classes(d)) {
        opt_complain(
            o,
            "--classes %lld: the data have %d classes, expected at most that",
            n, ddp_dataset_classes(d));
        return EXIT_USAGE;
    }
    memset(to, 0, (size_t)n * sizeof(*to));
    return OPTS_GO;
}

int class_subset_choose(const struct opts *o, const struct settings *s,
                        ddp_dataset_t **d)
{
    char *end;
    long long n = s->class_subset ? strtoll(s->class_subset, &end, 10) : 0;
    int32_t *to;
    int rc;

    if (!s->class_subset)
        return OPTS_GO;
    if (!(to = none_of(*d)))
        return app_exit_code(DDP_ENOMEM);
    rc = *end ? choose_listed(o, s->class_subset, *d, to)
              : choose_first(o, n, *d, to);
    if (rc == OPTS_GO)
        rc = map_classes(d, to);
    free(to);
    return rc;
}

int class_subset_match(const struct settings *s, int64_t n,
                       const char *const *name, ddp_dataset_t **d)
{
    int32_t *to;
    int rc;

    if (!s->class_subset)
        return OPTS_GO;
    if (!(to = none_of(*d)))
        return app_exit_code(DDP_ENOMEM);
    choose_names(*d, n, name, to);
    rc = map_classes(d, to);
    free(to);
    return rc;
}
