/* remote.h - the storage of servers: S3 and web servers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A server is listed when it is first opened; those who open it, or a folder of
 * it, share the list and what was fetched ahead.
 */
#ifndef DDP_REMOTE_H
#define DDP_REMOTE_H

#include "storage/storage.h"

struct ddp__storage *ddp__remote_open(const char *dir);

/* storage.h says what these do. */
int ddp__remote_load(const char *path, size_t max, struct ddp__bytes *b);
bool ddp__remote_has_folder(const char *dir, const char *name);
bool ddp__remote_has_file(const char *dir, const char *name);
int ddp__remote_folders(const char *dir, struct ddp__names *n);

#endif
