/* folder.h - the contents of a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FOLDER_H
#define DDP_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Call fn for each entry of the folder path, relative to the open one root,
 * but for "." and ".."; fd is the folder's.  Stops at the first negative code
 * and returns it. */
struct dirent;
typedef int (*ddp__entry_f)(int fd, const struct dirent *e, void *arg);
int ddp__folder_each(int root, const char *path, ddp__entry_f fn, void *arg);

/* Whether it is a folder, or a link to one. */
bool ddp__entry_is_folder(int fd, const struct dirent *e);

/* Whether a name begins with a dot. */
static inline bool ddp__is_hidden(const char *name)
{
    return *name == '.';
}

/* The subfolders of dir that do not begin with a dot, sorted by bytes. */
struct ddp__names {
    char **name; /* owned */
    int count;
};
int ddp__folder_list(const char *dir, struct ddp__names *n);
/* Append a copy of len bytes. */
int ddp__names_add(struct ddp__names *n, const char *name, size_t len);
void ddp__names_free(struct ddp__names *n);
int ddp__names_find(const struct ddp__names *n, const char *name); /* or -1 */

#endif
