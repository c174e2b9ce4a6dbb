/* storage.h - where files of data are: a folder of this machine, or a server
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Data sets read through this table only.  Paths are relative to the storage,
 * with '/' between names; "." is all of it.  Several threads may use a storage
 * at once.
 */
#ifndef DDP_STORAGE_H
#define DDP_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/folder.h"

struct ddp__storage;

/* Called for an entry; a negative code ends the search and is its result. */
typedef int (*ddp__found_f)(const char *path, void *arg);
typedef int (*ddp__listed_f)(const char *name, bool folder, void *arg);

enum { DDP__STAMP = 2048 };

/* The kinds fill this. */
struct ddp__storage_ops {
    /* The entries directly in a folder, without those that begin with a dot. */
    int (*list)(struct ddp__storage *s, const char *folder, ddp__listed_f fn,
                void *arg);
    /* The files below a folder at any depth, in no order, with those. */
    int (*find)(struct ddp__storage *s, const char *folder, ddp__found_f fn,
                void *arg);
    /* The bytes of a file; or DDP_EDATA, DDP_EIO. */
    int64_t (*size)(struct ddp__storage *s, const char *path);
    /* A whole file of up to max bytes, as ddp__file_read(). */
    int (*read)(struct ddp__storage *s, const char *path, size_t max,
                struct ddp__bytes *b);
    /* len bytes of it from byte `at`, as ddp__file_read_part(). */
    int (*read_part)(struct ddp__storage *s, const char *path, int64_t at,
                     size_t len, struct ddp__bytes *b);
    /* Begin to fetch what will be read soon: a file (len 0), or a part of it;
     * NULL: nothing is gained. */
    void (*ahead)(struct ddp__storage *s, const char *path, int64_t at,
                  size_t len);
    /* Which file this is, of all there are, and in which state: another text
     * once it has changed.  False: unknown. */
    bool (*stamp)(struct ddp__storage *s, const char *path,
                  char stamp[DDP__STAMP]);
    void (*close)(struct ddp__storage *s);
};

/* The first member of each kind's own struct. */
struct ddp__storage {
    const struct ddp__storage_ops *ops;
    const char *dir; /* what messages call it; NULL: paths are complete */
};

/* Open the folder dir, which may be the address of a server's (s3://, http://,
 * https://); NULL: this machine, with paths as they are.  NULL and a message,
 * which names dir, after a failure. */
struct ddp__storage *ddp__storage_open(const char *dir);
void ddp__storage_close(struct ddp__storage *s);

/* Whether the server that dir is an address of can be asked; 0 for a folder of
 * this machine, there or not. */
int ddp__storage_check(const char *dir);

/* Whether dir is an address rather than a folder of this machine. */
bool ddp__storage_is_remote(const char *dir);

/* What messages call a file: its path with that of the storage before it. */
void ddp__storage_name(const struct ddp__storage *s, const char *path,
                       char *name, size_t size);

/* Read a whole file of up to max bytes; the message does not name it. */
int ddp__storage_read(struct ddp__storage *s, const char *path, size_t max,
                      struct ddp__bytes *b);

/* ---- by complete names -------------------------------------------------- */

/* Read a whole file; the message names it.  As ddp__file_load(). */
int ddp__storage_load(const char *path, size_t max, struct ddp__bytes *b);

/* Whether there is a directory (a regular file) dir/name. */
bool ddp__storage_has_folder(const char *dir, const char *name);
bool ddp__storage_has_file(const char *dir, const char *name);

/* The subfolders of dir that do not begin with a dot, sorted by bytes. */
int ddp__storage_folders(const char *dir, struct ddp__names *n);

#endif
