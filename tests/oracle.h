/* oracle.h - PyTorch's results: a script's tensors, and how far ours are off
 *
 * A script of this folder computes and writes a safetensors file, which is
 * read here by code that shares nothing with the library's own reader.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>

/* One tensor, f32, in the script's order of elements. */
struct oracle_tensor {
    char *name; /* owned */
    int ndim, dim[4];
    size_t len;
    const float *data; /* not owned */
};

struct oracle {
    void *map; /* the file; owned */
    size_t size;
    struct oracle_tensor *tensor; /* owned */
    int tensors;
    char *weights; /* a second file, when the script wrote one; owned */
};

/* Why there is no PyTorch to ask here; NULL: there is. */
const char *oracle_missing(void);

/* The first interpreter that has all these modules ("torch onnx"), or NULL:
 * Debian's comes before one that hides it.  DDP_PYTHON names another. */
const char *oracle_python(const char *modules);

/* Run tests/script with an argument and read what it wrote.  NULL after a
 * failure, which is printed as a TAP comment.  With DDP_ORACLES=FOLDER, tests
 * of other builds read what the first one has written. */
struct oracle *oracle_new(const char *script, const char *arg);
struct oracle *oracle_new_by(const char *python, const char *script,
                             const char *arg);
void oracle_free(struct oracle *o);

/* The tensor of that name, or NULL. */
const struct oracle_tensor *oracle_find(const struct oracle *o, const char *fmt,
                                        ...)
    __attribute__((format(printf, 2, 3)));

/* |got - want| / |want| in the 2-norm; |got| where want is 0; infinite when
 * there is a NaN. */
double oracle_distance(const float *got, const float *want, size_t len);

#endif
