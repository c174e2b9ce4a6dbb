/* safetensors_write.h - write a file of named tensors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SAFETENSORS_WRITE_H
#define DDP_SAFETENSORS_WRITE_H

#include "weights/safetensors.h"

struct ddp__st_out {
    const char *name;
    int ndim;
    int64_t dim[DDP__ST_DIMS];
    const float *data;
    enum ddp__st_type type; /* DDP__ST_F32, or DDP__ST_BF16: rounded to it */
};

/* Write n tensors, for PyTorch's tools.  The file appears whole or not at all:
 * until then, and after a failure, the old file is unchanged.
 * Errors   DDP_EINVAL: names that are not unique or not UTF-8; DDP_EIO. */
int ddp__st_write(const char *path, int n, const struct ddp__st_out *out);

/* The same with metadata: key, value, key, value, ..., NULL.  sum, unless NULL,
 * gets the size of the file and its CRC. */
struct ddp__sink;
int ddp__st_write_with(const char *path, int n, const struct ddp__st_out *out,
                       const char *const *metadata, struct ddp__sink *sum);

#endif
