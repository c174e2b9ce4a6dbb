/* safetensors_header.c - the header of a safetensors file, read and checked
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/error.h"
#include "base/json_parse.h"
#include "weights/safetensors_header.h"

enum { DEPTH_MAX = 8 };

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
        if (!strcmp(name, ddp__st_types[i].name)) {
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
    if (__builtin_mul_overflow((uint64_t)t->len, ddp__st_types[t->type].bits,
                               &bits) ||
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
int ddp__st_read_header(struct ddp__st_file *f)
{
    unsigned char length[8];
    struct stat st;
    uint64_t n;
    char *text;
    int rc;

    if (fstat(f->fd, &st) < 0)
        return ddp__st_fail_errno(f, "cannot be read");
    if (!S_ISREG(st.st_mode))
        return ddp__st_bad(f, "is not a regular file");
    if (st.st_size < 8)
        return ddp__st_bad(f, "not a safetensors file: only %lld bytes",
                           (long long)st.st_size);
    if ((rc = ddp__st_read_at(f, length, 8, 0)) < 0)
        return rc;
    if (is_pickle(length))
        return fail_pickle(f);
    n = ddp__st_little_endian(length, 8);
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
    rc = ddp__st_read_at(f, text, (size_t)n, 8);
    if (rc == 0)
        rc = parse_header(f, text, (size_t)n, (uint64_t)st.st_size - f->data);
    free(text);
    return rc;
}
