/* safetensors.c - files of named tensors, read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A file is eight bytes with the length of the header, the header in JSON, and
 * the data of all tensors without a gap, up to the end of the file.  It is read
 * with pread(), not mapped: a mapped file that someone shortens kills the
 * process.
 *
 * Source   huggingface/safetensors, README and safetensors/src/tensor.rs.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "weights/safetensors.h"
#include "weights/safetensors_header.h"
#include "weights/safetensors_index.h"

const struct ddp__st_type_row ddp__st_types[] = {
#define X(name, bits, read) {#name, bits, read},
    DDP__ST_TYPES(X)
#undef X
};

/* ---- failures ----------------------------------------------------------- */

int ddp__st_bad(const struct ddp__st_file *f, const char *fmt, ...)
{
    char why[320]; /* may quote the file, and is printed on terminals */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    ddp_printable(why);
    return ddp__fail(DDP_EDATA, "%s: %s", f->path, why);
}

int ddp__st_fail_errno(const struct ddp__st_file *f, const char *what)
{
    return ddp__fail(DDP_EIO, "%s: %s: %s", f->path, what, strerror(errno));
}

/* ---- bytes -------------------------------------------------------------- */

int ddp__st_read_at(const struct ddp__st_file *f, void *to, size_t n,
                    uint64_t at)
{
    char *p = to;

    while (n > 0) {
        ssize_t got = pread(f->fd, p, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ddp__st_fail_errno(f, "cannot be read");
        if (got == 0)
            return ddp__fail(DDP_EIO, "%s: became shorter while it was read",
                             f->path);
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

uint64_t ddp__st_little_endian(const unsigned char *p, int bytes)
{
    uint64_t v = 0;

    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static float from_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static float from_f16(uint32_t h)
{
    uint32_t sign = (h & 0x8000) << 16, e = h >> 10 & 0x1f, m = h & 0x3ff;

    if (e == 0x1f) /* infinite, or not a number */
        return from_bits(sign | 0x7f800000 | m << 13);
    if (e == 0) /* zero and subnormal: m units of 2^-24 */
        return (sign ? -1.0f : 1.0f) * (float)m * 0x1p-24f;
    return from_bits(sign | (e + 112) << 23 | m << 13);
}

static float element_value(enum ddp__st_type type, const unsigned char *p)
{
    uint64_t u;
    double d;

    switch (type) {
    case DDP__ST_F16:
        return from_f16((uint32_t)ddp__st_little_endian(p, 2));
    case DDP__ST_BF16:
        return from_bits((uint32_t)ddp__st_little_endian(p, 2) << 16);
    case DDP__ST_F64:
        u = ddp__st_little_endian(p, 8);
        memcpy(&d, &u, sizeof(d));
        return (float)d;
    case DDP__ST_I64:
        return (float)(int64_t)ddp__st_little_endian(p, 8);
    default:
        return from_bits((uint32_t)ddp__st_little_endian(p, 4));
    }
}

/* ---- what the library calls --------------------------------------------- */

static int open_file(struct ddp__st_file *f)
{
    /* Do not wait for a writer if the path is a pipe. */
    do
        f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (f->fd < 0 && errno == EINTR);
    return f->fd < 0 ? ddp__st_fail_errno(f, "cannot be opened")
                     : ddp__st_read_header(f);
}

static bool is_index(const char *path)
{
    size_t n = strlen(path);

    return n > 5 && !strcmp(path + n - 5, ".json");
}

int ddp__st_open(struct ddp__st_file **out, const char *path)
{
    struct ddp__st_file *f;
    int rc;

    *out = NULL;
    if (!path)
        return ddp__fail(DDP_EINVAL, "a file of weights needs a path");
    f = calloc(1, sizeof(*f));
    if (!f || !(f->path = strdup(path))) {
        free(f);
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", path);
    }
    f->fd = -1;
    rc = is_index(path) ? ddp__st_read_index(f) : open_file(f);
    if (rc < 0) {
        ddp__st_close(f);
        return rc;
    }
    *out = f;
    return 0;
}

void ddp__st_close(struct ddp__st_file *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->shards; i++)
        ddp__st_close(f->shard[i]);
    free(f->shard);
    for (int i = 0; i < f->n; i++)
        free(f->tensor[i].name);
    free(f->tensor);
    for (char **text = f->metadata; text && *text; text++)
        free(*text);
    free(f->metadata);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

const struct ddp__st_tensor *ddp__st_find(const struct ddp__st_file *f,
                                          const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->tensor[i].name, name))
            return &f->tensor[i];
    return NULL;
}

const char *const *ddp__st_metadata(const struct ddp__st_file *f)
{
    char *const *found = f->metadata;

    for (int i = 0; !(found && *found) && i < f->shards; i++)
        found = f->shard[i]->metadata;
    return (const char *const *)found;
}

int ddp__st_read_f32(const struct ddp__st_tensor *t, float *out, size_t len)
{
    const struct ddp__st_file *f = t->file;
    unsigned char buf[16384];
    size_t size = ddp__st_types[t->type].bits / 8;
    int rc;

    if (!ddp__st_types[t->type].read)
        return ddp__st_bad(f, "tensor %.95s is %s, which cannot be read as f32",
                           t->name, ddp__st_types[t->type].name);
    if (t->len != len)
        return ddp__fail(DDP_ESHAPE,
                         "%s: tensor %.95s has %zu elements, expected %zu",
                         f->path, t->name, t->len, len);
    if (t->type == DDP__ST_F32 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return ddp__st_read_at(f, out, len * sizeof(*out), f->data + t->begin);
    for (size_t i = 0, n; i < len; i += n) {
        n = len - i < sizeof(buf) / size ? len - i : sizeof(buf) / size;
        rc = ddp__st_read_at(f, buf, n * size, f->data + t->begin + i * size);
        if (rc < 0)
            return rc;
        for (size_t k = 0; k < n; k++)
            out[i + k] = element_value(t->type, buf + k * size);
    }
    return 0;
}

int ddp__st_read_shaped(const struct ddp__st_file *f, const char *name,
                        int ndim, const int *dim, float *out, size_t len)
{
    const struct ddp__st_tensor *t = ddp__st_find(f, name);
    bool same = t && t->ndim == ndim;

    if (!t)
        return ddp__st_bad(f, "has no tensor %.95s, which the chain needs",
                           name);
    for (int d = 0; same && d < ndim; d++)
        same = t->dim[d] == dim[d];
    if (!same)
        return ddp__fail(DDP_ESHAPE,
                         "%s: %s does not have the shape of the chain's, which "
                         "has %d dimensions and %zu values",
                         f->path, name, ndim, len);
    return ddp__st_read_f32(t, out, len);
}
