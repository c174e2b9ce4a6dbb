/* crc32c.h - CRC-32C (Castagnoli), the checksum of checkpoints and weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CRC32C_H
#define DDP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of n more bytes after those that gave crc; 0 begins.
 * By the processor's instruction where it has one. */
uint32_t ddp__crc32c(uint32_t crc, const void *p, size_t n);

/* The same, always by tables. */
uint32_t ddp__crc32c_tables(uint32_t crc, const void *p, size_t n);

#endif
