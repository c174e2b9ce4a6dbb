/* safetensors_write.c - files of named f32 tensors, written
 *
 * The data begin at a multiple of 64 bytes, so that a mapped file is aligned.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "internal.h"
#include "safetensors.h"

enum { ALIGN = 64 };

/* ---- the header --------------------------------------------------------- */

static int out_bytes(const struct ddp__st_out *t, uint64_t *bytes)
{
    *bytes = sizeof(float);
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

/* {"dtype":"F32","shape":[...],"data_offsets":[begin,end]}, or NULL. */
static json_t *describe(const struct ddp__st_out *t, uint64_t begin,
                        uint64_t end)
{
    json_t *shape = json_array();

    for (int d = 0; d < t->ndim; d++)
        if (json_array_append_new(shape, json_integer(t->dim[d])) < 0) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static int add_metadata(json_t *root, const char *const *pair)
{
    json_t *m = json_object();

    if (json_object_set_new(root, "__metadata__", m) < 0 ||
        json_object_set_new(m, "format", json_string("pt")) < 0)
        return ddp__fail(DDP_ENOMEM, "no memory for the header");
    for (; pair && pair[0]; pair += 2)
        if (json_object_set_new(m, pair[0], json_string(pair[1])) < 0)
            return ddp__fail(DDP_EINVAL, "metadata %.99s: not UTF-8", pair[0]);
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
            return ddp__fail(DDP_EINVAL, "two tensors are called %.99s",
                             out[i]->name);
        if (__builtin_add_overflow(at, bytes, &bytes) || bytes > INT64_MAX)
            return ddp__fail(DDP_EINVAL, "the tensors are too large");
        if (json_object_set_new(root, out[i]->name,
                                describe(out[i], at, bytes)) < 0)
            return ddp__fail(DDP_EINVAL, "tensor %.99s: not UTF-8",
                             out[i]->name);
        at = bytes;
    }
    return 0;
}

/* The length and the header, padded; *size bytes, to be freed. */
static int header(int n, const struct ddp__st_out **out,
                  const char *const *metadata, char **text, size_t *size)
{
    json_t *root = json_object();
    char *json = NULL;
    size_t len;
    int rc;

    if (!root)
        return ddp__fail(DDP_ENOMEM, "no memory for the header");
    if ((rc = add_metadata(root, metadata)) < 0 ||
        (rc = add_tensors(root, n, out)) < 0)
        goto free_root;
    rc = ddp__fail(DDP_ENOMEM, "no memory for the header");
    if (!(json = json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER)))
        goto free_root;
    len = strlen(json);
    *size = (8 + len + ALIGN - 1) / ALIGN * ALIGN;
    if (!(*text = malloc(*size)))
        goto free_json;
    for (int i = 0; i < 8; i++)
        (*text)[i] = (char)((*size - 8) >> 8 * i & 0xff);
    memcpy(*text + 8, json, len);
    memset(*text + 8 + len, ' ', *size - 8 - len);
    rc = 0;
free_json:
    free(json);
free_root:
    json_decref(root);
    return rc;
}

/* ---- the file ----------------------------------------------------------- */

static int write_all(int fd, const void *data, size_t n)
{
    const char *p = data;

    while (n > 0) {
        ssize_t done = write(fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Values as files have them: the lowest byte first. */
static int write_floats(int fd, const float *data, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return write_all(fd, data, n * sizeof(float));
#else
    uint32_t buf[1024];

    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < 1024 ? n - i : 1024;
        memcpy(buf, data + i, k * sizeof(float));
        for (size_t j = 0; j < k; j++)
            buf[j] = __builtin_bswap32(buf[j]);
        if (write_all(fd, buf, k * sizeof(float)) < 0)
            return -1;
    }
    return 0;
#endif
}

static int fill(int fd, const char *head, size_t size, int n,
                const struct ddp__st_out **out)
{
    uint64_t bytes;

    if (write_all(fd, head, size) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (out_bytes(out[i], &bytes) < 0 ||
            write_floats(fd, out[i]->data, (size_t)bytes / sizeof(float)) < 0)
            return -1;
    return fsync(fd);
}

/* A rename lasts once the folder is on disk.  Some file systems cannot sync a
 * folder; that is not the file's fault. */
static int sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd, rc;

    if (!copy)
        return -1;
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    rc = fsync(fd);
    if (rc < 0 && (errno == EINVAL || errno == ENOTSUP))
        rc = 0;
    close(fd);
    return rc;
}

/* A new file beside path; its name is to be freed. */
static int open_beside(const char *path, char **name)
{
    int fd;

    for (unsigned i = 0; i < 100; i++) {
        if (asprintf(name, "%s.%ld-%u.tmp", path, (long)getpid(), i) < 0) {
            *name = NULL;
            errno = ENOMEM;
            return -1;
        }
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        free(*name);
        *name = NULL;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static int write_file(const char *path, const char *head, size_t size, int n,
                      const struct ddp__st_out **out)
{
    char *name;
    int fd = open_beside(path, &name), error;

    if (fd < 0)
        return ddp__fail(DDP_EIO, "%s: cannot be written: %s", path,
                         strerror(errno));
    error = fill(fd, head, size, n, out) < 0 ? errno : 0;
    if (close(fd) < 0 && !error)
        error = errno;
    if (!error && rename(name, path) < 0)
        error = errno;
    if (error) {
        unlink(name);
        free(name);
        return ddp__fail(DDP_EIO, "%s: cannot be written: %s", path,
                         strerror(error));
    }
    free(name);
    if (sync_folder(path) < 0)
        return ddp__fail(DDP_EIO,
                         "%s: written, but may not outlast a power cut: %s",
                         path, strerror(errno));
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct ddp__st_out *const *s = a, *const *t = b;

    return strcmp((*s)->name ? (*s)->name : "", (*t)->name ? (*t)->name : "");
}

int ddp__st_write_with(const char *path, int n, const struct ddp__st_out *out,
                       const char *const *metadata)
{
    const struct ddp__st_out **order = calloc((size_t)n + 1, sizeof(*order));
    char *head = NULL;
    size_t size = 0;
    int rc;

    if (!order)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", path);
    for (int i = 0; i < n; i++)
        order[i] = &out[i];
    qsort(order, (size_t)n, sizeof(*order), by_name);
    rc = header(n, order, metadata, &head, &size);
    if (rc == 0) {
        rc = write_file(path, head, size, n, order);
        free(head);
    }
    free(order);
    return rc;
}

int ddp__st_write(const char *path, int n, const struct ddp__st_out *out)
{
    return ddp__st_write_with(path, n, out, NULL);
}
