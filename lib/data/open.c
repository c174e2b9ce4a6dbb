/* open.c - detect the kind of image data set in a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/cifar.h"
#include "data/image_folder.h"
#include "data/mnist.h"
#include "data/tar_index.h"
#include "storage/storage.h"

/* The subfolder that has a split, or NULL. */
static const char *split_folder(const char *dir, enum ddp_split split)
{
    enum { NAMES = 4 };
    static const char *const names[][NAMES] = {
        [DDP_TRAIN] = {"train"},
        [DDP_VAL] = {"val", "valid", "validation", "test"},
        [DDP_TEST] = {"test"},
    };

    for (int i = 0; i < NAMES && names[split][i]; i++)
        if (ddp__storage_has_folder(dir, names[split][i]))
            return names[split][i];
    return NULL;
}

static bool has_split_folders(const char *dir)
{
    return split_folder(dir, DDP_TRAIN) || split_folder(dir, DDP_VAL);
}

/* Not the class folders of dir itself: who asks for validation images has
 * probably trained on them. */
static void fail_split(const char *dir, enum ddp_split split)
{
    static const char *const expected[] = {[DDP_TRAIN] = "train",
                                           [DDP_VAL] = "val\", \"valid\", "
                                                       "\"validation\" or "
                                                       "\"test",
                                           [DDP_TEST] = "test"};

    ddp__fail(DDP_EDATA, "%s: expected a folder \"%s\" in it%s", dir,
              expected[split],
              has_split_folders(dir)
                  ? ""
                  : "; without, its folders are classes of training images");
}

static ddp_dataset_t *open_folders(const char *dir, enum ddp_split split,
                                   const struct ddp_image_options *o)
{
    const char *name = split_folder(dir, split);
    char *path, *like = NULL;
    ddp_dataset_t *d = NULL;

    if (split == DDP_TRAIN && !has_split_folders(dir))
        return ddp_dataset_folder(dir, o);
    if (!name) {
        fail_split(dir, split);
        return NULL;
    }
    if (!(path = ddp__path_join(dir, name)))
        return NULL;
    if (split == DDP_TRAIN || !split_folder(dir, DDP_TRAIN) ||
        (like = ddp__path_join(dir, "train")))
        d = ddp__dataset_folder_like(path, like, o);
    free(path);
    free(like);
    return d;
}

static unsigned folder_splits(const char *dir)
{
    unsigned splits = 0;

    for (int i = DDP_TRAIN; i <= DDP_TEST; i++)
        if (split_folder(dir, (enum ddp_split)i))
            splits |= 1U << i;
    return splits;
}

static bool is_imagenet(const char *dir)
{
    return ddp__storage_has_file(dir, "LOC_synset_mapping.txt");
}

/* Whoever needs no validation images may not have them. */
static unsigned imagenet_splits(const char *dir)
{
    char *path = ddp__path_join(dir, "ILSVRC/Data/CLS-LOC");
    unsigned splits = path ? folder_splits(path) & ~(1U << DDP_TEST) : 0;

    free(path);
    return splits;
}

/* A split that "imagenet data pack" wrote. */
static bool is_packed(const char *dir, const char *split)
{
    char *path = split ? ddp__path_join(dir, split) : NULL;
    bool there = path && ddp__storage_has_file(path, DDP__TAR_INDEX);

    free(path);
    return there;
}

static ddp_dataset_t *open_packed(const char *dir, const char *split,
                                  const struct ddp_image_options *o)
{
    char *path = ddp__path_join(dir, split);
    ddp_dataset_t *d = path ? ddp_dataset_tars(path, o) : NULL;

    free(path);
    return d;
}

/* ---- kinds -------------------------------------------------------------- */

typedef ddp_dataset_t *(*open_f)(const char *dir, enum ddp_split split,
                                 const struct ddp_image_options *o);

/* What publishers divide into splits, by the files that are in the folder. */
static const struct kind {
    bool (*is_there)(const char *dir);
    open_f open;
    int side; /* of all images; 0: they are photos */
} kinds[] = {
    {is_imagenet, ddp_dataset_imagenet, 0},
    {ddp__cifar_is_10, ddp_dataset_cifar10, DDP__CIFAR_SIDE},
    {ddp__cifar_is_100, ddp_dataset_cifar100, DDP__CIFAR_SIDE},
    {ddp__mnist_is_there, ddp_dataset_mnist, DDP__MNIST_SIDE},
};

typedef ddp_dataset_t *(*open_file_f)(const char *name,
                                      const struct ddp_image_options *o);

static const struct {
    const char *end;
    open_file_f open;
} file_kinds[] = {
    {".csv", ddp_dataset_list},
    {".tar", ddp_dataset_webdataset},
    {".txt", ddp_dataset_webdataset},
};

static const struct kind *kind_of(const char *dir)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i].is_there(dir))
            return &kinds[i];
    return NULL;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), len = strlen(end);

    return n > len && !strcmp(name + n - len, end);
}

/* What is one file, or several that are named as one, and has no splits, by its
 * name; NULL: a folder. */
static open_file_f file_kind(const char *name)
{
    if (!ddp__storage_is_remote(name) && ddp__dir_exists(name, "."))
        return NULL;
    for (size_t i = 0; i < sizeof(file_kinds) / sizeof(*file_kinds); i++)
        if (ends_with(name, file_kinds[i].end))
            return file_kinds[i].open;
    return NULL;
}

static ddp_dataset_t *open_file(open_file_f open, const char *name,
                                enum ddp_split split,
                                const struct ddp_image_options *o)
{
    if (split == DDP_TRAIN)
        return open(name, o);
    ddp__fail(DDP_EINVAL,
              "%s has no split: name another file for each, or divide it",
              name);
    return NULL;
}

unsigned ddp_dataset_splits(const char *dir)
{
    const struct kind *k;

    if (!dir || file_kind(dir))
        return 0;
    if (!(k = kind_of(dir)))
        return folder_splits(dir);
    return k->open == ddp_dataset_imagenet ? imagenet_splits(dir)
                                           : 1U << DDP_TRAIN | 1U << DDP_VAL;
}

int ddp_dataset_native_size(const char *dir)
{
    const struct kind *k = dir && !file_kind(dir) ? kind_of(dir) : NULL;

    return k ? k->side : 0;
}

ddp_dataset_t *ddp_dataset_open(const char *dir, enum ddp_split split,
                                const struct ddp_image_options *o)
{
    const struct kind *kind;
    open_file_f file;

    if (!dir || split < DDP_TRAIN || split > DDP_TEST) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder and a split");
        return NULL;
    }
    if ((file = file_kind(dir)))
        return open_file(file, dir, split, o);
    if (ddp__storage_check(dir) < 0)
        return NULL;
    if (is_packed(dir, split_folder(dir, split)))
        return open_packed(dir, split_folder(dir, split), o);
    kind = kind_of(dir);
    return kind ? kind->open(dir, split, o) : open_folders(dir, split, o);
}
