/* tar_index.h - which sample is where in the shards of a data set
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * index.csv has a line for each sample, shard by shard: the tar file's name,
 * where the image begins in it, its bytes, its class, its CRC-32C, and the name
 * that it had before.  classes.txt has the name of a class in each line.
 */
#ifndef DDP_TAR_INDEX_H
#define DDP_TAR_INDEX_H

#include "base/file.h"
#include "base/folder.h"

#define DDP__TAR_INDEX "index.csv"
#define DDP__TAR_CLASSES "classes.txt"

/* All zeros: empty. */
struct ddp__tar_index {
    struct ddp__member {
        int64_t at;
        uint32_t len, crc;
        int32_t label, shard;
        size_t name; /* where it begins in text */
    } * member;      /* owned */
    int64_t count, room;
    struct ddp__shard {
        char *file;             /* owned */
        int64_t first, samples; /* of member */
    } * shard;                  /* owned */
    int shards, shard_room;
    char *text; /* owned */
    size_t len, text_room;
};

/* Read the lines of a text, which it takes; path is what messages call it.
 * DDP_EDATA with path:line. */
int ddp__tar_index_read(struct ddp__tar_index *x, const char *path,
                        struct ddp__bytes *text, int classes);

/* Add a shard, behind the others; and a sample to the last shard, whose number
 * and name are set here. */
int ddp__tar_index_add_shard(struct ddp__tar_index *x, const char *file);
int ddp__tar_index_add(struct ddp__tar_index *x, const struct ddp__member *m,
                       const char *name);

void ddp__tar_index_free(struct ddp__tar_index *x);

/* The lines of classes.txt, two or more; n is empty after a failure. */
int ddp__tar_classes_read(struct ddp__names *n, const char *path,
                          const struct ddp__bytes *text);

#endif
