/* file_write.h - files that appear whole or not at all
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FILE_WRITE_H
#define DDP_FILE_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* A file being written, and its size and CRC so far. */
struct ddp__sink {
    int fd;
    uint64_t size;
    uint32_t crc; /* CRC-32C */
};

/* Have the folder that path is in on disk: a new name, and a rename, are
 * permanent only then.  -1 and errno. */
int ddp__parent_sync(const char *path);

/* Write all of it; -1 and errno. */
int ddp__write_all(struct ddp__sink *s, const void *data, size_t n);

/* Replace the file at path by what fill (0, or -1 and errno) writes.  Until
 * that is on disk, and after a failure, the old file is unchanged.  sum, unless
 * NULL, gets its size and CRC.
 * Errors   DDP_EIO. */
int ddp__file_replace(const char *path,
                      int (*fill)(struct ddp__sink *s, void *arg), void *arg,
                      struct ddp__sink *sum);

#endif
