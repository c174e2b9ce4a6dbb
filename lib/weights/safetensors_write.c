/* safetensors_write.c - files of named tensors, written
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The data begin at a multiple of 64 bytes, so that a mapped file is aligned.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/file_write.h"
#include "base/half.h"
#include "base/printable.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

enum { ALIGN = 64 };

/* ---- the header --------------------------------------------------------- */

static size_t value_bytes(enum ddp__st_type type)
{
    return type == DDP__ST_BF16 ? 2 : 4;
}

static int out_bytes(const struct ddp__st_out *t, uint64_t *bytes)
{
    *bytes = value_bytes(t->type);
    if (t->type != DDP__ST_F32 && t->type != DDP__ST_BF16)
        return ddp__fail(DDP_EINVAL,
                         "tensors can be saved only as F32 or BF16");
    if (!t->name || !strcmp(t->name, "__metadata__") || t->ndim < 0 ||
        t->ndim > DDP__ST_DIMS || strlen(t->name) >= DDP__ST_NAME)
        return ddp__fail(DDP_EINVAL, "tensor %.99s: no name or shape to save",
                         t->name ? t->name : "(null)");
    for (int d = 0; d < t->ndim; d++)
        if (t->dim[d] < 0 ||
            __builtin_mul_overflow(*bytes, (uint64_t)t->dim[d], bytes) ||
            *bytes > SIZE_MAX / 2)
            return ddp__fail(DDP_EINVAL, "tensor %.99s: too large", t->name);
    return 0;
}

/* {"dtype":"...","shape":[...],"data_offsets":[begin,end]}, or NULL. */
static json_t *describe_tensor(const struct ddp__st_out *t, uint64_t begin,
                               uint64_t end)
{
    json_t *shape = json_array();

    for (int d = 0; d < t->ndim; d++)
        if (json_array_append_new(shape, json_integer(t->dim[d])) < 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype",
                     t->type == DDP__ST_BF16 ? "BF16" : "F32", "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static int fail_header(void)
{
    return ddp__fail(DDP_ENOMEM, "out of memory for the header");
}

/* JSON refuses a text that is not UTF-8. */
static int fail_text(const char *what, const char *name, const char *text)
{
    if (ddp__is_utf8(name) && ddp__is_utf8(text))
        return fail_header();
    return ddp__fail(DDP_EINVAL, "%s %.99s: not UTF-8", what, name);
}

static int add_metadata(json_t *root, const char *const *pair)
{
    json_t *m = json_object();

    if (json_object_set_new(root, "__metadata__", m) < 0 ||
        json_object_set_new(m, "format", json_string("pt")) < 0)
        return fail_header();
    for (; pair && pair[0]; pair += 2)
        if (json_object_set_new(m, pair[0], json_string(pair[1])) < 0)
            return fail_text("metadata", pair[0], pair[1]);
    return 0;
}

static int add_tensors(json_t *root, int n, const struct ddp__st_out **out)
{
    uint64_t at = 0, bytes;
    int rc;

    for (int i = 0; i < n; i++) {
        if ((rc = out_bytes(out[i], &bytes)) < 0)
            return rc;
        if (json_object_get(root, out[i]->name))
            return ddp__fail(DDP_EINVAL, "two tensors have the name %.99s",
                             out[i]->name);
        if (__builtin_add_overflow(at, bytes, &bytes) || bytes > INT64_MAX)
            return ddp__fail(DDP_EINVAL, "the tensors are too large");
        if (json_object_set_new(root, out[i]->name,
                                describe_tensor(out[i], at, bytes)) < 0)
            return fail_text("tensor", out[i]->name, "");
        at = bytes;
    }
    return 0;
}

/* The length and the header, padded; *size bytes, to be freed. */
static int pad_header(const char *json, char **text, size_t *size)
{
    size_t len = strlen(json);

    *size = (8 + len + ALIGN - 1) / ALIGN * ALIGN;
    if (!(*text = malloc(*size)))
        return fail_header();
    for (int i = 0; i < 8; i++)
        (*text)[i] = (char)((*size - 8) >> 8 * i & 0xff);
    memcpy(*text + 8, json, len);
    memset(*text + 8 + len, ' ', *size - 8 - len);
    return 0;
}

static int make_header(int n, const struct ddp__st_out **out,
                       const char *const *metadata, char **text, size_t *size)
{
    json_t *root = json_object();
    char *json;
    int rc;

    if (!root)
        return fail_header();
    if ((rc = add_metadata(root, metadata)) == 0 &&
        (rc = add_tensors(root, n, out)) == 0) {
        json = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER);
        rc = json ? pad_header(json, text, size) : fail_header();
        free(json);
    }
    json_decref(root);
    return rc;
}

/* ---- the file ----------------------------------------------------------- */

/* What goes into a file. */
struct content {
    const char *head;
    size_t size;
    int n;
    const struct ddp__st_out **out;
};

/* Write the values, the lowest byte first. */
static int write_packed(struct ddp__sink *s, const struct ddp__st_out *t,
                        size_t n)
{
    size_t bytes = value_bytes(t->type);
    uint8_t buf[8192];

    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < sizeof(buf) / bytes ? n - i : sizeof(buf) / bytes;
        for (size_t j = 0; j < k; j++) {
            uint32_t u;

            memcpy(&u, t->data + i + j, sizeof(u));
            if (t->type == DDP__ST_BF16)
                u = ddp__to_bf16(t->data[i + j]);
            for (size_t b = 0; b < bytes; b++)
                buf[j * bytes + b] = (uint8_t)(u >> 8 * b);
        }
        if (ddp__write_all(s, buf, k * bytes) < 0)
            return -1;
    }
    return 0;
}

static int write_tensor(struct ddp__sink *s, const struct ddp__st_out *t)
{
    uint64_t bytes;

    if (out_bytes(t, &bytes) < 0)
        return -1;
    if (t->type == DDP__ST_F32 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        return ddp__write_all(s, t->data, (size_t)bytes);
    return write_packed(s, t, (size_t)bytes / value_bytes(t->type));
}

static int write_tensors(struct ddp__sink *s, void *arg)
{
    const struct content *c = arg;

    if (ddp__write_all(s, c->head, c->size) < 0)
        return -1;
    for (int i = 0; i < c->n; i++)
        if (write_tensor(s, c->out[i]) < 0)
            return -1;
    return 0;
}

/* Larger types first, so that all are aligned; then by name. */
static int by_type(const void *a, const void *b)
{
    const struct ddp__st_out *s = *(const struct ddp__st_out *const *)a;
    const struct ddp__st_out *t = *(const struct ddp__st_out *const *)b;

    if (value_bytes(s->type) != value_bytes(t->type))
        return value_bytes(s->type) > value_bytes(t->type) ? -1 : 1;
    return strcmp(s->name ? s->name : "", t->name ? t->name : "");
}

int ddp__st_write_with(const char *path, int n, const struct ddp__st_out *out,
                       const char *const *metadata, struct ddp__sink *sum)
{
    const struct ddp__st_out **order = calloc((size_t)n + 1, sizeof(*order));
    struct content c = {.n = n, .out = order};
    char *head = NULL;
    int rc;

    if (!order)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", path);
    for (int i = 0; i < n; i++)
        order[i] = &out[i];
    qsort(order, (size_t)n, sizeof(*order), by_type);
    rc = make_header(n, order, metadata, &head, &c.size);
    if (rc == 0) {
        c.head = head;
        rc = ddp__file_replace(path, write_tensors, &c, sum);
        free(head);
    }
    free(order);
    return rc;
}

int ddp__st_write(const char *path, int n, const struct ddp__st_out *out)
{
    return ddp__st_write_with(path, n, out, NULL, NULL);
}
