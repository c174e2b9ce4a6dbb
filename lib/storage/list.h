/* list.h - list a server's folders, several at a time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A page of S3 has a thousand files and names the next one, so a folder's pages
 * come one after the other; folders do not.
 */
#ifndef DDP_LIST_H
#define DDP_LIST_H

#include "storage/http.h"
#include "storage/tree.h"

struct ddp__list;

/* List one folder: call the functions below for what is in it. */
typedef int (*ddp__list_f)(struct ddp__line *line, struct ddp__list *list,
                           const char *folder, void *arg);

/* Add what is below the folder to the tree. */
int ddp__list_run(struct ddp__tree *t, const char *folder, ddp__list_f fn,
                  void *arg);

int ddp__list_file(struct ddp__list *l, const char *path, const char *etag,
                   int64_t size);
int ddp__list_folder(struct ddp__list *l, const char *folder);

#endif
