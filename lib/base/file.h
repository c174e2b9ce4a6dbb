/* file.h - whole files, and text from them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FILE_H
#define DDP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory, with a zero byte behind it. */
struct ddp__bytes {
    uint8_t *data; /* owned */
    size_t len, room;
};

/* Make room for len bytes and a zero; the contents of b are lost. */
int ddp__bytes_reserve(struct ddp__bytes *b, size_t len);

/* Read the regular file path, relative to the open directory dir (or AT_FDCWD),
 * into b, whose memory is reused.  A fault of the storage is tried again for
 * some seconds.  Errors: DDP_EIO for such a fault; DDP_EDATA for a file that
 * cannot be opened, an empty one, one larger than max, or one that is not
 * regular; DDP_ENOMEM, also when the system has no descriptors left.  The
 * message does not name the file. */
int ddp__file_read(int dir, const char *path, size_t max, struct ddp__bytes *b);

/* The same for `len` bytes of it from byte `at`: DDP_EDATA if the file ends
 * before. */
int ddp__file_read_part(int dir, const char *path, int64_t at, size_t len,
                        struct ddp__bytes *b);

/* How many times this thread has tried again. */
int64_t ddp__file_retries(void);

/* Another thread has tried n times again for this one. */
void ddp__file_retried(int n);

/* The same for a complete path, with DDP_EIO also for one that cannot be
 * opened; the message names the file. */
int ddp__file_load(const char *path, size_t max, struct ddp__bytes *b);

/* DDP_ENOMEM if errno says that the system lacks memory or descriptors, else
 * fault. */
int ddp__errno_code(int fault);

/* "dir/name", to be freed by the caller, or NULL and a message. */
char *ddp__path_join(const char *dir, const char *name);

/* Whether a path names something below the folder that it is relative to, and
 * has no empty parts. */
bool ddp__path_is_below(const char *path);

/* Whether there is a directory (a regular file) dir/name. */
bool ddp__dir_exists(const char *dir, const char *name);
bool ddp__file_exists(const char *dir, const char *name);

#endif
