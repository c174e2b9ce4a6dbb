/* open.c - detect the kind of image data set in a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "data/cifar.h"
#include "data/image_folder.h"
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

static bool is_imagenet(const char *dir)
{
    return ddp__storage_has_file(dir, "LOC_synset_mapping.txt");
}

static bool is_cifar10(const char *dir)
{
    return ddp__storage_has_file(dir, "data_batch_1.bin") ||
           ddp__storage_has_folder(dir, "cifar-10-batches-bin");
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

bool ddp_dataset_has_splits(const char *dir)
{
    return dir &&
           (is_imagenet(dir) || is_cifar10(dir) || has_split_folders(dir));
}

int ddp_dataset_native_size(const char *dir)
{
    return dir && !is_imagenet(dir) && is_cifar10(dir) ? DDP__CIFAR_SIDE : 0;
}

ddp_dataset_t *ddp_dataset_open(const char *dir, enum ddp_split split,
                                const struct ddp_image_options *o)
{
    if (!dir || split < DDP_TRAIN || split > DDP_TEST) {
        ddp__fail(DDP_EINVAL, "a data set needs a folder and a split");
        return NULL;
    }
    if (ddp__storage_check(dir) < 0)
        return NULL;
    if (is_packed(dir, split_folder(dir, split)))
        return open_packed(dir, split_folder(dir, split), o);
    if (is_imagenet(dir))
        return ddp_dataset_imagenet(dir, split, o);
    if (is_cifar10(dir))
        return ddp_dataset_cifar10(dir, split, o);
    return open_folders(dir, split, o);
}
