/* tar.c - write tar files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "storage/tar.h"

enum { BLOCK = 1 << 18 };

struct ddp__tar {
    struct archive *out;
    char *path; /* owned */
    int fd;
};

static int fail_write(struct ddp__tar *t)
{
    const char *why = archive_error_string(t->out);

    return ddp__fail(DDP_EIO, "cannot write %s: %s", t->path,
                     why ? why : strerror(errno));
}

void ddp__tar_drop(struct ddp__tar *t)
{
    if (!t)
        return;
    if (t->out)
        archive_write_free(t->out);
    if (t->fd >= 0)
        close(t->fd);
    free(t->path);
    free(t);
}

static int open_tar(struct ddp__tar *t)
{
    t->fd = open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (t->fd < 0)
        return ddp__fail(DDP_EIO, "cannot create %s: %s", t->path,
                         strerror(errno));
    if (archive_write_set_format_ustar(t->out) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(t->out, BLOCK) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(t->out, 1) != ARCHIVE_OK ||
        archive_write_open_fd(t->out, t->fd) != ARCHIVE_OK)
        return fail_write(t);
    return 0;
}

struct ddp__tar *ddp__tar_create(const char *path)
{
    struct ddp__tar *t = calloc(1, sizeof(*t));

    if (t)
        t->fd = -1;
    if (t && (t->path = strdup(path)) && (t->out = archive_write_new())) {
        if (open_tar(t) == 0)
            return t;
    } else {
        ddp__fail(DDP_ENOMEM, "out of memory for a tar file");
    }
    ddp__tar_drop(t);
    return NULL;
}

/* The same bytes for the same files, whoever writes them and when. */
int ddp__tar_add(struct ddp__tar *t, const char *name, const void *data,
                 size_t len)
{
    struct archive_entry *e = archive_entry_new();
    int rc = 0;

    if (!e)
        return ddp__fail(DDP_ENOMEM, "out of memory for a tar file");
    archive_entry_set_pathname(e, name);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)len);
    archive_entry_set_mtime(e, 0, 0);
    if (archive_write_header(t->out, e) != ARCHIVE_OK ||
        archive_write_data(t->out, data, len) != (la_ssize_t)len)
        rc = fail_write(t);
    archive_entry_free(e);
    return rc;
}

int ddp__tar_finish(struct ddp__tar *t)
{
    int rc = 0;

    if (archive_write_close(t->out) != ARCHIVE_OK)
        rc = fail_write(t);
    else if (fsync(t->fd) < 0)
        rc =
            ddp__fail(DDP_EIO, "cannot write %s: %s", t->path, strerror(errno));
    ddp__tar_drop(t);
    return rc;
}
