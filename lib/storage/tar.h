/* tar.h - write tar files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TAR_H
#define DDP_TAR_H

#include <stddef.h>

/* A tar file that is being written. */
struct ddp__tar;

/* Create the file at path, which must not exist.  NULL and a message that names
 * it. */
struct ddp__tar *ddp__tar_create(const char *path);

/* Add a file; the message of a failure names the tar file. */
int ddp__tar_add(struct ddp__tar *t, const char *name, const void *data,
                 size_t len);

/* End it and have it on disk; t is freed in any case. */
int ddp__tar_finish(struct ddp__tar *t);

/* Free it without ending it; NULL is nothing. */
void ddp__tar_drop(struct ddp__tar *t);

#endif
