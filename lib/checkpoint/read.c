/* read.c - the checkpoints on disk: listed, verified and read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json_parse.h"
#include "checkpoint/files.h"
#include "checkpoint/read.h"
#include "checkpoint/state.h"
#include "graph/param_values.h"
#include "weights/safetensors.h"

/* The state of a run of the largest network we have is of half a megabyte. */
enum { JSON_MAX = 16 << 20, CHUNK = 1 << 16 };

/* ---- the list ----------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* The step of "step-000000000012", or -1. */
static int64_t step_of(const char *name)
{
    char again[DDP__CKPT_NAME_MAX];
    long long step;

    if (sscanf(name, "step-%lld", &step) != 1 || step < 0)
        return -1;
    snprintf(again, sizeof(again), DDP__CKPT_NAME, step);
    return strcmp(again, name) ? -1 : step;
}

int64_t ddp__ckpt_list(const char *dir, int64_t **step)
{
    struct ddp__names names;
    int64_t n = 0, s;
    int rc = ddp__folder_list(dir, &names);

    *step = NULL;
    if (rc < 0)
        return rc;
    if (!(*step = calloc((size_t)names.count + 1, sizeof(**step)))) {
        ddp__names_free(&names);
        return ddp__fail(DDP_ENOMEM, "out of memory to list %s", dir);
    }
    for (int i = 0; i < names.count; i++)
        if ((s = step_of(names.name[i])) >= 0)
            (*step)[n++] = s;
    ddp__names_free(&names);
    qsort(*step, (size_t)n, sizeof(**step), newest_first);
    return n;
}

/* ---- is it complete? ---------------------------------------------------- */

static int load_json(const char *dir, const char *name, json_t **out)
{
    char *path = ddp__path_join(dir, name);
    struct ddp__bytes text = {0};
    json_error_t err;
    int rc = path ? ddp__file_load(path, JSON_MAX, &text) : DDP_ENOMEM;

    *out = NULL;
    if (rc == 0 && (rc = ddp__json_parse(text.data, text.len, out, &err)) < 0)
        rc = rc == DDP_ENOMEM
                 ? ddp__fail(DDP_ENOMEM, "%s: out of memory", path)
                 : ddp__fail(DDP_EDATA, "%s: line %d: invalid JSON", path,
                             err.line);
    free(text.data);
    free(path);
    return rc;
}

/* The CRC of a whole file that has `size` bytes. */
static int crc_of(const char *path, int fd, uint64_t size, uint32_t *crc)
{
    unsigned char *buf = malloc(CHUNK);
    uint64_t done = 0;
    ssize_t n;

    if (!buf)
        return ddp__fail(DDP_ENOMEM, "%s: out of memory", path);
    *crc = 0;
    do {
        n = read(fd, buf, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0)
            *crc = ddp__crc32c(*crc, buf, (size_t)n);
        done += n > 0 ? (uint64_t)n : 0;
    } while (done <= size && n != 0 && (n > 0 || errno == EINTR));
    free(buf);
    if (n < 0)
        return ddp__fail(DDP_EIO, "%s: %s", path, strerror(errno));
    if (done != size)
        return ddp__fail(
            DDP_EDATA,
            "%s: is not %llu bytes long as in %s: it was truncated or extended",
            path, (unsigned long long)size, DDP__CKPT_MANIFEST);
    return 0;
}

static int verify_file(const char *path, const json_t *entry)
{
    const char *want = json_string_value(json_object_get(entry, "crc32c"));
    json_int_t size = json_integer_value(json_object_get(entry, "size"));
    char have[16];
    uint32_t crc = 0;
    int fd, rc;

    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return ddp__fail(DDP_EIO, "%s: %s", path, strerror(errno));
    rc = crc_of(path, fd, (uint64_t)size, &crc);
    close(fd);
    if (rc < 0)
        return rc;
    snprintf(have, sizeof(have), "%08x", crc);
    if (!want || strcmp(want, have))
        return ddp__fail(
            DDP_EDATA,
            "%s: crc32c %s is not that of %s: the file was changed "
            "after it was written",
            path, have, DDP__CKPT_MANIFEST);
    return 0;
}

/* The manifest lists the file, and the file is unchanged. */
static int verify_listed(const char *dir, const json_t *manifest,
                         const char *name)
{
    const json_t *files = json_object_get(manifest, "files");
    const json_t *entry = json_object_get(files, name);
    char *path;
    int rc;

    if (!json_is_object(entry))
        return ddp__fail(DDP_EDATA, "%s: %s does not list %s", dir,
                         DDP__CKPT_MANIFEST, name);
    if (!(path = ddp__path_join(dir, name)))
        return DDP_ENOMEM;
    rc = verify_file(path, entry);
    free(path);
    return rc;
}

static bool same_file(const struct ddp__ckpt_copy *c, int a, int b)
{
    return !strcmp(c->set[a].file, c->set[b].file);
}

/* ---- tensors ------------------------------------------------------------ */

/* A buffer as long as the longest parameter. */
static float *longest_param(const struct ddp__params *p)
{
    size_t len = 1;

    for (int k = 0; k < p->blocks; k++)
        for (int i = 0; i < p->block[k].params; i++)
            if (ddp__param_len(&p->block[k].param[i]) > len)
                len = ddp__param_len(&p->block[k].param[i]);
    return malloc(len * sizeof(float));
}

static int read_tensor(const struct ddp__st_file *f, struct ddp__ckpt_copy *c,
                       int set, const struct ddp__param_block *b, int i,
                       float *buf)
{
    const struct ddp_param *p = &b->param[i];
    float *to = ddp__ckpt_copy_tensor(c, set, b, i);
    char name[DDP__ST_NAME];
    int rc;

    if (p->role == DDP_RUNNING && !c->set[set].running) {
        memset(to, 0, ddp__param_len(p) * sizeof(float));
        return 0;
    }
    ddp__ckpt_copy_name(c, set, b, i, name);
    rc = ddp__st_read_shaped(f, name, p->ndim, p->dim, buf, ddp__param_len(p));
    if (rc == 0)
        ddp__param_import(p, buf, to);
    return rc;
}

static int read_set(const char *dir, struct ddp__ckpt_copy *c, int set)
{
    char *path = ddp__path_join(dir, c->set[set].file);
    const struct ddp__params *p = c->params;
    float *buf = longest_param(p);
    struct ddp__st_file *f = NULL;
    int rc = path && buf
                 ? ddp__st_open(&f, path)
                 : ddp__fail(DDP_ENOMEM, "out of memory to read %s", dir);

    for (int k = 0; rc == 0 && k < p->blocks; k++)
        for (int i = 0; rc == 0 && i < p->block[k].params; i++)
            rc = read_tensor(f, c, set, &p->block[k], i, buf);
    ddp__st_close(f);
    free(buf);
    free(path);
    return rc;
}

/* ---- all of it ---------------------------------------------------------- */

static int verify_all(const char *path, const struct ddp__ckpt_copy *c,
                      const json_t *manifest)
{
    int rc = verify_listed(path, manifest, DDP__CKPT_STATE);

    for (int s = 0; rc == 0 && s < c->sets; s++)
        if (s == 0 || !same_file(c, s, s - 1))
            rc = verify_listed(path, manifest, c->set[s].file);
    return rc;
}

/* Read the settings before the files that depend on them: an optimizer without
 * state has no file. */
int ddp__ckpt_read(const char *path, const json_t *settings,
                   struct ddp__changes *changes, struct ddp__ckpt_copy *c)
{
    json_t *manifest;
    int rc = load_json(path, DDP__CKPT_MANIFEST, &manifest);

    if (rc < 0)
        return rc;
    if ((rc = verify_listed(path, manifest, DDP__CKPT_STATE)) == 0 &&
        (rc = load_json(path, DDP__CKPT_STATE, &c->state)) == 0 &&
        (rc = ddp__state_check(c->state, settings, path, changes)) == 0)
        rc = verify_all(path, c, manifest);
    for (int s = 0; rc == 0 && s < c->sets; s++)
        rc = read_set(path, c, s);
    json_decref(manifest);
    return rc;
}
