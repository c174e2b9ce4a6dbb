/* write.c - from a copy of a run's state to a folder on disk
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All files are written and synced in a folder of another name, the manifest
 * last; then the folder is renamed, and its parent synced.  So a checkpoint is
 * complete or does not exist, whenever the process or the machine dies.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/file_write.h"
#include "checkpoint/files.h"
#include "checkpoint/lock.h"
#include "checkpoint/read.h"
#include "checkpoint/write.h"
#include "graph/param_values.h"
#include "weights/safetensors.h"
#include "weights/safetensors_write.h"

static int write_failed(const struct ddp__ckpt_dir *d, const char *name)
{
    return ddp__fail(DDP_EIO, "%s/%s: cannot be written: %s", d->path, name,
                     strerror(errno));
}

/* ---- the folder --------------------------------------------------------- */

/* Remove a file or link, or a folder with all that is in it. */
static void remove_at(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        if (fd >= 0)
            close(fd);
        unlinkat(dir, name, 0);
        return;
    }
    while ((e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            remove_at(fd, e->d_name);
    closedir(d);
    unlinkat(dir, name, AT_REMOVEDIR);
}

/* Remove what a process that died was writing or removing. */
static void remove_leftovers(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((e = readdir(d)))
        if (!strncmp(e->d_name, DDP__CKPT_TEMP, strlen(DDP__CKPT_TEMP)))
            remove_at(dir, e->d_name);
    closedir(d);
}

int ddp__ckpt_dir_open(struct ddp__ckpt_dir *d)
{
    int rc;

    if (d->lock.dir >= 0)
        return 0;
    if (mkdir(d->path, 0777) == 0 ? ddp__parent_sync(d->path) < 0
                                  : errno != EEXIST)
        return ddp__fail(DDP_EIO, "%s: cannot create the folder: %s", d->path,
                         strerror(errno));
    if ((rc = ddp__ckpt_lock(&d->lock, d->path)) < 0)
        return rc;
    remove_leftovers(d->lock.dir);
    return 0;
}

/* ---- the files ---------------------------------------------------------- */

/* The sets, and the range of their tensors, in one file. */
struct tensor_file {
    struct ddp__ckpt_copy *copy;
    int first, end; /* sets */
    int tensors;
    struct ddp__st_out *out; /* all owned */
    char (*name)[DDP__ST_NAME];
    float *row;
};

static void tensor_file_free(struct tensor_file *f)
{
    free(f->out);
    free(f->name);
    free(f->row);
}

static int tensor_file_new(struct tensor_file *f)
{
    const struct ddp__params *params = f->copy->params;
    size_t sets = (size_t)(f->end - f->first), n = 1, row = 1;

    for (int k = 0; k < params->blocks; k++) {
        const struct ddp__param_block *b = &params->block[k];

        n += sets * (size_t)b->params;
        for (int i = 0; i < b->params; i++)
            if (ddp__param_row(&b->param[i]) > row)
                row = ddp__param_row(&b->param[i]);
    }
    f->out = calloc(n, sizeof(*f->out));
    f->name = calloc(n, sizeof(*f->name));
    f->row = malloc(row * sizeof(*f->row));
    if (f->out && f->name && f->row)
        return 0;
    tensor_file_free(f);
    return ddp__fail(DDP_ENOMEM, "out of memory to write a checkpoint");
}

/* Convert to PyTorch's order of elements: here, as it takes time that the steps
 * would wait for, and in place, since the kernel clears fresh memory first. */
static void add_tensor(struct tensor_file *f, int set,
                       const struct ddp__param_block *b, int i)
{
    const struct ddp_param *param = &b->param[i];
    struct ddp__st_out *out = &f->out[f->tensors];
    float *data = ddp__ckpt_copy_tensor(f->copy, set, b, i);

    ddp__ckpt_copy_name(f->copy, set, b, i, f->name[f->tensors]);
    out->name = f->name[f->tensors++];
    out->ndim = param->ndim;
    for (int d = 0; d < param->ndim; d++)
        out->dim[d] = param->dim[d];
    ddp__param_export_here(param, data, f->row);
    out->data = data;
}

static int write_tensors(struct tensor_file *f, const char *path,
                         struct ddp__sink *sum)
{
    const struct ddp__params *params = f->copy->params;
    int rc = tensor_file_new(f);

    if (rc < 0)
        return rc;
    for (int s = f->first; s < f->end; s++)
        for (int k = 0; k < params->blocks; k++)
            for (int i = 0; i < params->block[k].params; i++)
                if (f->copy->set[s].running ||
                    params->block[k].param[i].role != DDP_RUNNING)
                    add_tensor(f, s, &params->block[k], i);
    rc = ddp__st_write_with(path, f->tensors, f->out,
                            (const char *const *)params->metadata, sum);
    tensor_file_free(f);
    return rc;
}

static int fill_text(struct ddp__sink *s, void *arg)
{
    return ddp__write_all(s, arg, strlen(arg));
}

static int write_json(const char *path, const json_t *json,
                      struct ddp__sink *sum)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    int rc;

    if (!text)
        return ddp__fail(DDP_ENOMEM, "out of memory to write %s", path);
    rc = ddp__file_replace(path, fill_text, text, sum);
    free(text);
    return rc;
}

static int list_file(json_t *files, const char *name,
                     const struct ddp__sink *sum)
{
    char crc[16];

    snprintf(crc, sizeof(crc), "%08x", sum->crc);
    if (json_object_set_new(files, name,
                            json_pack("{s:I, s:s}", "size",
                                      (json_int_t)sum->size, "crc32c", crc)) <
        0)
        return ddp__fail(DDP_ENOMEM, "out of memory to write a checkpoint");
    return 0;
}

/* One file of the folder: sets first .. end - 1, or the state. */
static int write_file(const char *folder, const char *name,
                      struct ddp__ckpt_copy *c, int first, int end,
                      json_t *files)
{
    char *path = ddp__path_join(folder, name);
    struct tensor_file f = {.copy = c, .first = first, .end = end};
    struct ddp__sink sum;
    int rc;

    if (!path)
        return DDP_ENOMEM;
    rc = first < end ? write_tensors(&f, path, &sum)
                     : write_json(path, c->state, &sum);
    free(path);
    return rc < 0 ? rc : list_file(files, name, &sum);
}

static int write_manifest(const char *folder, json_t *files)
{
    json_t *json = json_pack("{s:i, s:O}", "format", 1, "files", files);
    char *path = ddp__path_join(folder, DDP__CKPT_MANIFEST);
    int rc = json && path
                 ? write_json(path, json, NULL)
                 : ddp__fail(DDP_ENOMEM, "out of memory to write a checkpoint");

    free(path);
    json_decref(json);
    return rc;
}

static int write_files(const char *folder, struct ddp__ckpt_copy *c)
{
    json_t *files = json_object();
    int rc = 0;

    for (int s = 0, end; rc == 0 && s < c->sets; s = end) {
        for (end = s; end < c->sets; end++)
            if (strcmp(c->set[end].file, c->set[s].file))
                break;
        rc = write_file(folder, c->set[s].file, c, s, end, files);
    }
    if (rc == 0)
        rc = write_file(folder, DDP__CKPT_STATE, c, 0, 0, files);
    if (rc == 0)
        rc = write_manifest(folder, files);
    json_decref(files);
    return rc;
}

/* ---- the folder appears ------------------------------------------------- */

/* Replace an existing folder: a damaged checkpoint, or one whose links could
 * not be created. */
static int exchange_folders(int dir, const char *temp, const char *name)
{
    static const char aside[] = DDP__CKPT_TEMP "aside";

    if (renameat2(dir, temp, dir, name, RENAME_EXCHANGE) == 0)
        return 0;
    remove_at(dir, aside); /* no exchange on this file system */
    if (renameat(dir, name, dir, aside) < 0)
        return -1;
    return renameat(dir, temp, dir, name);
}

static int publish_folder(const struct ddp__ckpt_dir *d, const char *temp,
                          const char *name)
{
    int dir = d->lock.dir;

    if (renameat(dir, temp, dir, name) < 0 &&
        ((errno != ENOTEMPTY && errno != EEXIST) ||
         exchange_folders(dir, temp, name) < 0))
        return write_failed(d, name);
    if (fsync(dir) < 0)
        return write_failed(d, name);
    remove_leftovers(dir);
    return 0;
}

/* Give a link its name.  Copying a run may have made folders of its links: a
 * checkpoint there is replaced, another folder is left alone. */
static int rename_link(const struct ddp__ckpt_dir *d, const char *temp,
                       const char *link)
{
    char manifest[DDP__CKPT_NAME_MAX];
    int rc = 0;

    if (renameat(d->lock.dir, temp, d->lock.dir, link) == 0)
        return 0;
    if (errno != EISDIR)
        return write_failed(d, link);
    snprintf(manifest, sizeof(manifest), "%s/" DDP__CKPT_MANIFEST, link);
    if (faccessat(d->lock.dir, manifest, F_OK, 0) == 0 &&
        exchange_folders(d->lock.dir, temp, link) < 0)
        rc = write_failed(d, link);
    remove_at(d->lock.dir, temp);
    return rc;
}

/* Some file systems do not support links; a missing link is not a failure. */
static int set_link(const struct ddp__ckpt_dir *d, const char *link,
                    const char *name)
{
    char temp[DDP__CKPT_NAME_MAX], now[DDP__CKPT_NAME_MAX];
    ssize_t n = readlinkat(d->lock.dir, link, now, sizeof(now));

    if (n == (ssize_t)strlen(name) && !memcmp(now, name, (size_t)n))
        return 0;
    snprintf(temp, sizeof(temp), DDP__CKPT_TEMP "%s", link);
    unlinkat(d->lock.dir, temp, 0);
    if (symlinkat(name, d->lock.dir, temp) < 0)
        return errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS
                   ? 0
                   : write_failed(d, link);
    return rename_link(d, temp, link);
}

static int set_links(const struct ddp__ckpt_dir *d, const char *name,
                     int64_t best)
{
    char best_name[DDP__CKPT_NAME_MAX];
    int rc = set_link(d, "latest", name);

    snprintf(best_name, sizeof(best_name), DDP__CKPT_NAME, (long long)best);
    if (rc == 0 && best && faccessat(d->lock.dir, best_name, F_OK, 0) == 0)
        rc = set_link(d, "best", best_name);
    return rc < 0 ? rc : fsync(d->lock.dir) < 0 ? write_failed(d, ".") : 0;
}

/* ---- old ones are removed ----------------------------------------------- */

/* Rename first, so that a process that dies leaves no incomplete checkpoint
 * under its name. */
static int remove_old(const struct ddp__ckpt_dir *d, int64_t step)
{
    char name[DDP__CKPT_NAME_MAX], temp[DDP__CKPT_NAME_MAX];

    snprintf(name, sizeof(name), DDP__CKPT_NAME, (long long)step);
    snprintf(temp, sizeof(temp), DDP__CKPT_TEMP "old");
    remove_at(d->lock.dir, temp);
    if (renameat(d->lock.dir, name, d->lock.dir, temp) < 0)
        return write_failed(d, name);
    remove_at(d->lock.dir, temp);
    return 0;
}

/* Checkpoints newer than this are damaged; the run will replace them. */
static int remove_old_checkpoints(const struct ddp__ckpt_dir *d,
                                  const struct ddp__ckpt_copy *c)
{
    int64_t *step, n = ddp__ckpt_list(d->path, &step);
    int kept = 0, rc = 0;

    if (n < 0)
        return (int)n;
    for (int64_t i = 0; rc == 0 && i < n; i++) {
        bool keep = step[i] > c->step || step[i] == c->best ||
                    (d->keep_steps && step[i] % d->keep_steps == 0);

        if (step[i] <= c->step && kept++ >= d->keep && !keep)
            rc = remove_old(d, step[i]);
    }
    free(step);
    return rc;
}

int ddp__ckpt_write(const struct ddp__ckpt_dir *d, struct ddp__ckpt_copy *c)
{
    char name[DDP__CKPT_NAME_MAX], temp[DDP__CKPT_NAME_MAX], *path;
    int rc;

    snprintf(name, sizeof(name), DDP__CKPT_NAME, (long long)c->step);
    snprintf(temp, sizeof(temp), DDP__CKPT_TEMP "%.40s", name);
    if ((rc = ddp__ckpt_lock_check(&d->lock, d->path)) < 0)
        return rc;
    if (!(path = ddp__path_join(d->path, temp)))
        return DDP_ENOMEM;
    remove_at(d->lock.dir, temp);
    rc = mkdir(path, 0777) < 0 ? write_failed(d, temp) : write_files(path, c);
    if (rc == 0)
        rc = publish_folder(d, temp, name);
    free(path);
    if (rc < 0) {
        remove_at(d->lock.dir, temp);
        return rc;
    }
    if ((rc = set_links(d, name, c->best)) < 0)
        return rc;
    return remove_old_checkpoints(d, c);
}
