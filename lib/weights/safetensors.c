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
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/error.h"
#include "base/json_parse.h"
#include "base/file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_index.h"

enum { DEPTH_MAX = 8 };

static const struct {
    const char *name;
    unsigned bits;
    bool read;
} types[] = {
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

static int fail_errno(const struct ddp__st_file *f, const char *what)
{
    return ddp__fail(DDP_EIO, "%s: %s: %s", f->path, what, strerror(errno));
}

/* ---- bytes -------------------------------------------------------------- */

static int read_at(const struct ddp__st_file *f, void *to, size_t n,
                   uint64_t at)
{
    char *p = to;

    while (n > 0) {
        ssize_t got = pread(f->fd, p, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(f, "cannot be read");
        if (got == 0)
            return ddp__fail(DDP_EIO, "%s: became shorter while it was read",
                             f->path);
        p += got;
        n -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

static uint64_t little_endian(const unsigned char *p, int bytes)
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
        return from_f16((uint32_t)little_endian(p, 2));
    case DDP__ST_BF16:
        return from_bits((uint32_t)little_endian(p, 2) << 16);
    case DDP__ST_F64:
        u = little_endian(p, 8);
        memcpy(&d, &u, sizeof(d));
        return (float)d;
    case DDP__ST_I64:
        return (float)(int64_t)little_endian(p, 8);
    default:
        return from_bits((uint32_t)little_endian(p, 4));
    }
}

/* ---- the header --------------------------------------------------------- */

/* Count brackets and commas before parsing, because the parser allocates many
 * bytes for each.  Even tensors with eight dimensions and the shortest names
 * have fewer than one per four bytes, nested three deep. */
static int scan_header(const struct ddp__st_file *f, const char *s, size_t n)
{
    size_t marks = 0;
    bool quoted = false;
    int depth = 0;

    for (size_t i = 0; i < n; i++) {
        if (quoted) {
            if (s[i] == '\\')
                i++;
            else
                quoted = s[i] != '"';
            continue;
        }
        quoted = s[i] == '"';
        if (s[i] == '{' || s[i] == '[')
            depth++;
        if (s[i] == '}' || s[i] == ']')
            depth--;
        marks += s[i] == '{' || s[i] == '[' || s[i] == ',';
        if (depth > DEPTH_MAX)
            return ddp__st_bad(f, "its header nests deeper than %d", DEPTH_MAX);
    }
    if (marks > n / 4 + 16)
        return ddp__st_bad(f, "its header is not a list of tensors");
    return 0;
}

static int tensor_type(const struct ddp__st_file *f, struct ddp__st_tensor *t,
                       json_t *v)
{
    const char *name = json_string_value(v);

    if (!name)
        return ddp__st_bad(f, "tensor %.95s has no dtype", t->name);
    for (int i = 0; i < DDP__ST_TYPE_COUNT; i++)
        if (!strcmp(name, types[i].name)) {
            t->type = (enum ddp__st_type)i;
            return 0;
        }
    return ddp__st_bad(f, "tensor %.95s has the unknown dtype %.95s", t->name,
                       name);
}

static int tensor_shape(const struct ddp__st_file *f, struct ddp__st_tensor *t,
                        json_t *v)
{
    uint64_t len = 1;

    if (!json_is_array(v))
        return ddp__st_bad(f, "tensor %.95s has no shape", t->name);
    if (json_array_size(v) > DDP__ST_DIMS)
        return ddp__st_bad(
            f, "tensor %.95s has %zu dimensions, more than the limit %d",
            t->name, json_array_size(v), DDP__ST_DIMS);
    for (t->ndim = 0; (size_t)t->ndim < json_array_size(v); t->ndim++) {
        json_t *d = json_array_get(v, (size_t)t->ndim);

        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return ddp__st_bad(f,
                               "tensor %.95s: dimension %d is not a valid size",
                               t->name, t->ndim);
        t->dim[t->ndim] = json_integer_value(d);
        if (__builtin_mul_overflow(len, (uint64_t)t->dim[t->ndim], &len))
            return ddp__st_bad(f, "tensor %.95s has too many elements",
                               t->name);
    }
    t->len = (size_t)len;
    return 0;
}

static int tensor_offsets(const struct ddp__st_file *f,
                          struct ddp__st_tensor *t, json_t *v, uint64_t size)
{
    json_t *b = json_array_get(v, 0), *e = json_array_get(v, 1);
    uint64_t bits;

    if (json_array_size(v) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
        json_integer_value(b) < 0)
        return ddp__st_bad(f, "tensor %.95s has no data_offsets", t->name);
    if (json_integer_value(e) < json_integer_value(b) ||
        (uint64_t)json_integer_value(e) > size)
        return ddp__st_bad(
            f, "tensor %.95s: data from %lld to %lld of %llu bytes", t->name,
            (long long)json_integer_value(b), (long long)json_integer_value(e),
            (unsigned long long)size);
    t->begin = (size_t)json_integer_value(b);
    t->end = (size_t)json_integer_value(e);
    if (__builtin_mul_overflow((uint64_t)t->len, types[t->type].bits, &bits) ||
        bits % 8 || bits / 8 != t->end - t->begin)
        return ddp__st_bad(f,
                           "tensor %.95s: its shape does not fit its %zu bytes",
                           t->name, t->end - t->begin);
    return 0;
}

static int add_tensor(struct ddp__st_file *f, const char *name, json_t *v,
                      uint64_t size)
{
    struct ddp__st_tensor *t = &f->tensor[f->n];
    int rc;

    if (strlen(name) >= DDP__ST_NAME)
        return ddp__st_bad(f, "the name %.95s... has more than %d bytes", name,
                           DDP__ST_NAME - 1);
    if (!(t->name = strdup(name)))
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
    t->file = f;
    f->n++;
    if (!json_is_object(v))
        return ddp__st_bad(f, "tensor %.95s has no description", name);
    if ((rc = tensor_type(f, t, json_object_get(v, "dtype"))) < 0 ||
        (rc = tensor_shape(f, t, json_object_get(v, "shape"))) < 0)
        return rc;
    return tensor_offsets(f, t, json_object_get(v, "data_offsets"), size);
}

static int take_metadata(struct ddp__st_file *f, json_t *v)
{
    const char *key;
    json_t *text;
    char **to;

    if (!json_is_object(v))
        return ddp__st_bad(f, "its __metadata__ is not an object");
    to = f->metadata = calloc(2 * json_object_size(v) + 1, sizeof(*to));
    if (!to)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
    json_object_foreach(v, key, text)
    {
        if (!json_is_string(text))
            return ddp__st_bad(f, "its __metadata__ %.95s is not a string",
                               key);
        if (!strcmp(key, "format"))
            continue;
        if (!(to[0] = strdup(key)) ||
            !(to[1] = strdup(json_string_value(text))))
            return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
        to += 2;
    }
    return 0;
}

static int by_data(const void *a, const void *b)
{
    const struct ddp__st_tensor *s = a, *t = b;

    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    return s->end < t->end ? -1 : s->end > t->end;
}

/* Whether the tensors cover the data without gap, overlap or remainder. */
static int check_cover(struct ddp__st_file *f, uint64_t size)
{
    uint64_t at = 0;

    if (f->n > 1)
        qsort(f->tensor, (size_t)f->n, sizeof(*f->tensor), by_data);
    for (int i = 0; i < f->n; i++) {
        const struct ddp__st_tensor *t = &f->tensor[i];

        if (t->begin < at)
            return ddp__st_bad(f, "tensor %.95s overlaps another", t->name);
        if (t->begin > at)
            return ddp__st_bad(
                f, "%llu bytes before tensor %.95s belong to no tensor",
                (unsigned long long)(t->begin - at), t->name);
        at = t->end;
    }
    if (at != size)
        return ddp__st_bad(f, "its last %llu bytes belong to no tensor",
                           (unsigned long long)(size - at));
    return 0;
}

static int take_header(struct ddp__st_file *f, json_t *root, uint64_t size)
{
    const char *name;
    json_t *v;
    int rc;

    if (!json_is_object(root))
        return ddp__st_bad(f, "its header is not an object");
    f->tensor = calloc(json_object_size(root) + 1, sizeof(*f->tensor));
    if (!f->tensor)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
    json_object_foreach(root, name, v)
    {
        rc = strcmp(name, "__metadata__") ? add_tensor(f, name, v, size)
                                          : take_metadata(f, v);
        if (rc < 0)
            return rc;
    }
    return check_cover(f, size);
}

int ddp__st_parse(const struct ddp__st_file *f, const char *text, size_t n,
                  json_t **root)
{
    json_error_t err;
    int rc = scan_header(f, text, n);

    if (rc < 0 || (rc = ddp__json_parse(text, n, root, &err)) == 0)
        return rc;
    if (rc == DDP_ENOMEM)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", f->path);
    return ddp__st_bad(f, "bad header at byte %d: %.95s", err.position,
                       err.text);
}

static int parse_header(struct ddp__st_file *f, const char *text, size_t n,
                        uint64_t size)
{
    json_t *root;
    int rc;

    if (text[0] != '{')
        return ddp__st_bad(f, "not a safetensors file: no header");
    if ((rc = ddp__st_parse(f, text, n, &root)) < 0)
        return rc;
    rc = take_header(f, root, size);
    json_decref(root);
    return rc;
}

/* torch.save() writes a zip archive, and once wrote a pickle of a magic
 * number. */
static bool is_pickle(const unsigned char *begin)
{
    static const unsigned char zip[] = {'P', 'K', 3, 4};
    static const unsigned char old[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c};

    return !memcmp(begin, zip, sizeof(zip)) || !memcmp(begin, old, sizeof(old));
}

static int fail_pickle(const struct ddp__st_file *f)
{
    return ddp__fail(
        DDP_EDATA,
        "%s: written by PyTorch's torch.save(), expected safetensors; to "
        "convert it: python3 -c \"import sys, torch; from safetensors.torch "
        "import save_file; s = torch.load(sys.argv[1], map_location='cpu', "
        "weights_only=True); save_file({k: v.contiguous() for k, v in "
        "s.get('state_dict', s).items()}, sys.argv[2])\" %s FILE.safetensors",
        f->path, f->path);
}

/* The length comes from the file, so it is compared with the file's size and
 * the limit before anything is allocated or read by it. */
static int read_header(struct ddp__st_file *f)
{
    unsigned char length[8];
    struct stat st;
    uint64_t n;
    char *text;
    int rc;

    if (fstat(f->fd, &st) < 0)
        return fail_errno(f, "cannot be read");
    if (!S_ISREG(st.st_mode))
        return ddp__st_bad(f, "is not a regular file");
    if (st.st_size < 8)
        return ddp__st_bad(f, "not a safetensors file: only %lld bytes",
                           (long long)st.st_size);
    if ((rc = read_at(f, length, 8, 0)) < 0)
        return rc;
    if (is_pickle(length))
        return fail_pickle(f);
    n = little_endian(length, 8);
    if (n < 2 || n > (uint64_t)st.st_size - 8)
        return ddp__st_bad(f,
                           "not a safetensors file, or truncated: a header of "
                           "%llu bytes in a file of %lld",
                           (unsigned long long)n, (long long)st.st_size);
    if (n > DDP__ST_HEADER_MAX)
        return ddp__st_bad(f, "a header of %llu bytes, more than the limit %d",
                           (unsigned long long)n, DDP__ST_HEADER_MAX);
    if (!(text = malloc((size_t)n)))
        return ddp__fail(DDP_ENOMEM,
                         "%s: out of memory for a header of %llu bytes",
                         f->path, (unsigned long long)n);
    f->data = 8 + n;
    rc = read_at(f, text, (size_t)n, 8);
    if (rc == 0)
        rc = parse_header(f, text, (size_t)n, (uint64_t)st.st_size - f->data);
    free(text);
    return rc;
}

/* ---- what the library calls --------------------------------------------- */

static int open_file(struct ddp__st_file *f)
{
    /* Do not wait for a writer if the path is a pipe. */
    do
        f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (f->fd < 0 && errno == EINTR);
    return f->fd < 0 ? fail_errno(f, "cannot be opened") : read_header(f);
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
    size_t size = types[t->type].bits / 8;
    int rc;

    if (!types[t->type].read)
        return ddp__st_bad(f, "tensor %.95s is %s, which cannot be read as f32",
                           t->name, types[t->type].name);
    if (t->len != len)
        return ddp__fail(DDP_ESHAPE,
                         "%s: tensor %.95s has %zu elements, expected %zu",
                         f->path, t->name, t->len, len);
    if (t->type == DDP__ST_F32 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return read_at(f, out, len * sizeof(*out), f->data + t->begin);
    for (size_t i = 0, n; i < len; i += n) {
        n = len - i < sizeof(buf) / size ? len - i : sizeof(buf) / size;
        rc = read_at(f, buf, n * size, f->data + t->begin + i * size);
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
