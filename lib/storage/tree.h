/* tree.h - the files of a server, by their paths
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TREE_H
#define DDP_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros: empty.  A path that ends with '/' is that of an empty folder. */
struct ddp__tree {
    struct ddp__leaf {
        size_t at; /* of its path in text, behind which its ETag is */
        int64_t size;
    } * leaf; /* sorted by bytes once all are added; owned */
    size_t count, room;
    char *text; /* owned */
    size_t len, text_room;
};

/* Add a file.  DDP_EDATA: the path is none; DDP_ENOMEM. */
int ddp__tree_add(struct ddp__tree *t, const char *path, const char *etag,
                  int64_t size);

/* Sort the files; DDP_EDATA: two have the same path. */
int ddp__tree_sort(struct ddp__tree *t);
void ddp__tree_free(struct ddp__tree *t);

const char *ddp__tree_path(const struct ddp__tree *t, size_t i);
const char *ddp__tree_etag(const struct ddp__tree *t, size_t i);

/* The number of a file, or SIZE_MAX. */
size_t ddp__tree_find(const struct ddp__tree *t, const char *path);

/* The files below a folder, whose path ends with '/' ("": all of them), are
 * those from *begin to before the result. */
size_t ddp__tree_below(const struct ddp__tree *t, const char *folder,
                       size_t *begin);

#endif
