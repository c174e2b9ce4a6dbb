/* safetensors.h - files of named tensors: read any, write f32 and bf16
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file is untrusted: ddp__st_open() accepts it only if every byte is
 * accounted for, so whoever has a tensor of it can rely on its numbers.
 */
#ifndef DDP_SAFETENSORS_H
#define DDP_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

enum { DDP__ST_DIMS = 8, DDP__ST_NAME = 1024 };

/* X (name, bits, whether ddp__st_read_f32() takes it). */
#define DDP__ST_TYPES(X)                                                       \
    X(F32, 32, true)                                                           \
    X(F16, 16, true)                                                           \
    X(BF16, 16, true)                                                          \
    X(F64, 64, true)                                                           \
    X(I64, 64, true)                                                           \
    X(BOOL, 8, false)                                                          \
    X(U8, 8, false)                                                            \
    X(I8, 8, false)                                                            \
    X(U16, 16, false)                                                          \
    X(I16, 16, false)                                                          \
    X(U32, 32, false)                                                          \
    X(I32, 32, false)                                                          \
    X(U64, 64, false)                                                          \
    X(C64, 64, false)                                                          \
    X(F8_E4M3, 8, false)                                                       \
    X(F8_E5M2, 8, false)                                                       \
    X(F8_E8M0, 8, false)                                                       \
    X(F8_E4M3FNUZ, 8, false)                                                   \
    X(F8_E5M2FNUZ, 8, false)                                                   \
    X(F6_E2M3, 6, false)                                                       \
    X(F6_E3M2, 6, false)                                                       \
    X(F4, 4, false)

enum ddp__st_type {
#define X(name, bits, read) DDP__ST_##name,
    DDP__ST_TYPES(X)
#undef X
        DDP__ST_TYPE_COUNT
};

struct ddp__st_tensor {
    char *name;                      /* owned by the file */
    const struct ddp__st_file *file; /* that has its data */
    enum ddp__st_type type;
    int ndim;
    int64_t dim[DDP__ST_DIMS];
    size_t len;        /* elements */
    size_t begin, end; /* bytes, in the data */
};

struct ddp__st_file {
    char *path;
    int fd;
    uint64_t data; /* where the data begin */
    int n;
    struct ddp__st_tensor *tensor; /* in the order of their data; owned */
    char **metadata;               /* key, value, ..., NULL; owned */
    struct ddp__st_file **shard;   /* of an index: the files; owned */
    int shards;
};

/* Open a file and check all of it but the values.  A path that ends in .json is
 * a list of several, whose tensors are then one after another.
 * Errors   DDP_EIO, DDP_EDATA: what is wrong with the file. */
int ddp__st_open(struct ddp__st_file **out, const char *path);
void ddp__st_close(struct ddp__st_file *f);

/* The tensor of that name, or NULL. */
const struct ddp__st_tensor *ddp__st_find(const struct ddp__st_file *f,
                                          const char *name);

/* The words in the header: key, value, ..., NULL, without PyTorch's "format";
 * of an index those of the first file that has some.  NULL: none. */
const char *const *ddp__st_metadata(const struct ddp__st_file *f);

/* Read a whole tensor of len elements as f32. */
int ddp__st_read_f32(const struct ddp__st_tensor *t, float *out, size_t len);

/* Read the tensor `name`, which must have this shape and len elements.
 * Errors   DDP_EDATA: there is none; DDP_ESHAPE. */
int ddp__st_read_shaped(const struct ddp__st_file *f, const char *name,
                        int ndim, const int *dim, float *out, size_t len);

/* ---- what the files that read share ------------------------------------- */

/* By type. */
struct ddp__st_type_row {
    const char *name;
    unsigned bits;
    bool read; /* by ddp__st_read_f32() */
};
extern const struct ddp__st_type_row ddp__st_types[];

int ddp__st_read_at(const struct ddp__st_file *f, void *to, size_t n,
                    uint64_t at);
uint64_t ddp__st_little_endian(const unsigned char *p, int bytes);

/* Fail with DDP_EDATA, naming the file. */
int ddp__st_bad(const struct ddp__st_file *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Fail with DDP_EIO, naming the file, what failed and errno. */
int ddp__st_fail_errno(const struct ddp__st_file *f, const char *what);

#endif
