/* crc32.h - CRC-32 of IEEE 802.3, the checksum of W&B's files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CRC32_H
#define DDP_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of n more bytes after those that gave crc; 0 begins. */
uint32_t ddp__crc32(uint32_t crc, const void *data, size_t n);

#endif
