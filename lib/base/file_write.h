/* file_write.h - files that appear whole or not at all
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_FILE_WRITE_H
#define DDP_FILE_WRITE_H

#include <stddef.h>
#include <stdint.h>

/* A file being written, and what has gone into it so far. */
struct ddp__sink {
    int fd;
    uint64_t size;
    uint32_t crc; /* CRC-32C */
};

/* Write all of it; -1 and errno. */
int ddp__write_all(struct ddp__sink *s, const void *data, size_t n);

/* Make the file at path of what fill (0, or -1 and errno) writes.  Until that
 * is on disk, and after a failure, the file before is as it was.  sum, unless
 * NULL, gets its size and CRC.
 * Errors   DDP_EIO. */
int ddp__file_replace(const char *path,
                      int (*fill)(struct ddp__sink *s, void *arg), void *arg,
                      struct ddp__sink *sum);

#endif
