/* gunzip.h - decompress what gzip has written
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GUNZIP_H
#define DDP_GUNZIP_H

#include "base/file.h"

/* Decompress a gzip file in memory into `out`, up to max bytes.  DDP_EDATA: it
 * is damaged or longer; the message does not name it. */
int ddp__gunzip(const struct ddp__bytes *in, size_t max,
                struct ddp__bytes *out);

#endif
