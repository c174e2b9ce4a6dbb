/* image_folder.c - one folder of images per class
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/image_folder.h"
#include "storage/storage.h"

/* Move the class names to the data set; n is empty afterwards. */
static void take_names(ddp_dataset_t *d, struct ddp__names *n)
{
    d->class_name = n->name;
    d->classes = n->count;
    *n = (struct ddp__names){0};
    for (int i = 0; i < d->classes; i++)
        ddp_printable(d->class_name[i]);
}

enum { EMPTY_SHOWN = 5 }; /* names in a message */

/* Classes without an image. */
struct empty {
    int n;
    char names[EMPTY_SHOWN * 64];
};

static void add_empty(struct empty *e, const char *name)
{
    size_t len = strlen(e->names);

    if (e->n++ < EMPTY_SHOWN)
        snprintf(e->names + len, sizeof(e->names) - len, "%s%.60s",
                 len ? ", " : "", name);
}

static int fail_empty(const char *dir, const struct empty *e)
{
    char more[32] = "";

    if (e->n > EMPTY_SHOWN)
        snprintf(more, sizeof(more), " and %d more", e->n - EMPTY_SHOWN);
    return ddp__fail(DDP_EDATA,
                     "%s: %d %s without an image (.jpg, .jpeg, .jpe, .jfif, "
                     ".png): %s%s",
                     dir, e->n, e->n == 1 ? "class" : "classes", e->names,
                     more);
}

static int add_classes(ddp_dataset_t *d, const char *dir,
                       const struct ddp__names *folders,
                       const struct ddp__names *classes)
{
    struct empty empty = {0};

    for (int i = 0; i < folders->count; i++) {
        const char *name = folders->name[i];
        int label = ddp__names_find(classes, name);
        int64_t n;

        if (label < 0)
            return ddp__fail(DDP_EDATA,
                             "%s/%s: the training data do not have this class",
                             dir, name);
        if ((n = ddp__files_add_folder(d, name, label)) < 0)
            return (int)n;
        if (n == 0 && folders == classes)
            add_empty(&empty, name);
    }
    if (empty.n)
        return fail_empty(dir, &empty);
    if (d->count == 0)
        return ddp__fail(DDP_EDATA, "%s: no images in the class folders", dir);
    return 0;
}

/* Images of one class teach a network nothing. */
static int check_classes(const char *dir, const struct ddp__names *classes)
{
    if (classes->count > 1)
        return 0;
    if (classes->count == 0)
        return ddp__fail(DDP_EDATA, "%s: expected a folder for each class",
                         dir);
    return ddp__fail(DDP_EDATA,
                     "%s: \"%s\" is its only folder, expected one for each of "
                     "two or more classes; if they are in that folder, use "
                     "%s/%s",
                     dir, classes->name[0], dir, classes->name[0]);
}

/* classes: of like, or NULL. */
static ddp_dataset_t *add_folders(const char *dir, struct ddp__names *folders,
                                  struct ddp__names *classes,
                                  const struct ddp_image_options *o)
{
    ddp_dataset_t *d = ddp__files_new(dir, o);
    char skipped[DDP__SKIPPED_TEXT];

    if (!classes)
        classes = folders;
    if (!d || add_classes(d, dir, folders, classes) < 0)
        goto free_d;
    take_names(d, classes);
    if (ddp__files_skipped(d, true, skipped) < 0 ||
        ddp__dataset_describe(d, "%s, %lld images of %d classes (folders%s)",
                              dir, (long long)d->count, d->classes,
                              skipped) < 0)
        goto free_d;
    return d;

free_d:
    ddp_dataset_free(d);
    return NULL;
}

ddp_dataset_t *ddp__dataset_folder_like(const char *dir, const char *like,
                                        const struct ddp_image_options *o)
{
    struct ddp__names folders, classes = {0};
    ddp_dataset_t *d = NULL;

    if (ddp__storage_folders(dir, &folders) < 0)
        return NULL;
    if (like ? ddp__storage_folders(like, &classes) == 0 &&
                   check_classes(like, &classes) == 0
             : check_classes(dir, &folders) == 0)
        d = add_folders(dir, &folders, like ? &classes : NULL, o);
    ddp__names_free(&folders);
    ddp__names_free(&classes);
    return d;
}

ddp_dataset_t *ddp_dataset_folder(const char *dir,
                                  const struct ddp_image_options *o)
{
    if (!dir) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder");
        return NULL;
    }
    return ddp__dataset_folder_like(dir, NULL, o);
}
