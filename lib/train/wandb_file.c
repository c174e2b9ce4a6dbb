/* wandb_file.c - a file of records of Weights & Biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The package has the format in sdk/internal/datastore.py: a log of LevelDB
 * (doc/log_format.md), in blocks of which a header of seven bytes is a part,
 * with another checksum, CRC-32.  A record that does not fit in its block is
 * divided.  It holds a message Record of wandb_internal.proto.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/file_write.h"
#include "train/wandb_file.h"

enum { BLOCK = 32768, HEAD = 7 };
enum { FULL = 1, FIRST, MIDDLE, LAST }; /* parts of a record */
enum { RECORD_NUMBER = 1 };

/* A longer one is not ours. */
enum { RECORD_MAX = 1 << 24 };

static const unsigned char file_head[HEAD] = {':', 'W', '&', 'B', 0xe1, 0xbe};

/* Of a part: its type and data. */
static uint32_t part_crc(unsigned char type, const unsigned char *p, size_t n)
{
    return ddp__crc32(ddp__crc32(0, &type, 1), p, n);
}

static size_t left_in_block(off_t at)
{
    return BLOCK - (size_t)(at % BLOCK);
}

/* ---- writing ------------------------------------------------------------ */

static int fail_write(struct ddp__wandb_file *f)
{
    int error = errno;

    close(f->fd);
    f->fd = -1;
    return ddp__fail(DDP_EIO, "cannot write %s: %s", f->path, strerror(error));
}

static int append(struct ddp__wandb_file *f, const void *data, size_t n)
{
    struct ddp__sink s = {.fd = f->fd};

    if (ddp__write_all(&s, data, n) < 0)
        return fail_write(f);
    f->size += (off_t)n;
    return 0;
}

/* A part and its head at `out`; returns how long that is. */
static size_t put_part(unsigned char *out, unsigned char type,
                       const unsigned char *data, size_t n)
{
    uint32_t crc = part_crc(type, data, n);

    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(crc >> 8 * i);
    out[4] = (unsigned char)n;
    out[5] = (unsigned char)(n >> 8);
    out[6] = type;
    memcpy(out + HEAD, data, n);
    return HEAD + n;
}

/* The parts of a record that begins at byte `at` of the file. */
static size_t frame(unsigned char *out, off_t at, const unsigned char *data,
                    size_t n)
{
    size_t len = 0, room = left_in_block(at), done = 0, part;
    bool first = true; /* it may have no data, at the end of a block */

    if (room < HEAD) {
        memset(out, 0, room);
        len = room;
        room = BLOCK;
    }
    do {
        bool last = n - done <= room - HEAD;

        part = last ? n - done : room - HEAD;
        len += put_part(out + len,
                        first  ? last ? FULL : FIRST
                        : last ? LAST
                               : MIDDLE,
                        data + done, part);
        first = false;
        done += part;
        room = BLOCK;
    } while (done < n);
    return len;
}

/* In one piece: a crash leaves whole records and at most a part of one. */
int ddp__wandb_write(struct ddp__wandb_file *f, int field,
                     struct ddp__proto *what)
{
    struct ddp__proto *r = &f->record;
    unsigned char *out;
    int rc;

    if (f->fd < 0)
        return ddp__fail(DDP_EIO, "%s is closed", f->path);
    ddp__proto_clear(r);
    ddp__proto_int(r, RECORD_NUMBER, f->count + 1);
    ddp__proto_message(r, field, what);
    out = malloc(r->len + BLOCK + HEAD * (r->len / (BLOCK - HEAD) + 2));
    if (!out || r->lacks_memory) {
        free(out);
        return ddp__fail(DDP_ENOMEM, "out of memory for a record of %s",
                         f->path);
    }
    rc = append(f, out, frame(out, f->size, r->data, r->len));
    free(out);
    if (rc == 0)
        f->count++;
    return rc;
}

int ddp__wandb_cut(struct ddp__wandb_file *f, off_t size, uint64_t count)
{
    if (f->fd < 0)
        return ddp__fail(DDP_EIO, "%s is closed", f->path);
    if (ftruncate(f->fd, size) < 0 || lseek(f->fd, size, SEEK_SET) < 0)
        return fail_write(f);
    f->size = size;
    f->count = count;
    return 0;
}

/* ---- reading ------------------------------------------------------------ */

/* A record while its parts are read. */
struct reader {
    FILE *file;
    off_t at; /* in the file */
    unsigned char *data;
    size_t len, room;
};

static bool take(struct reader *r, void *out, size_t n)
{
    r->at += (off_t)n;
    return fread(out, 1, n, r->file) == n;
}

/* Append the next part to the record; returns its type, or 0 if there is no
 * whole one. */
static int take_part(struct reader *r)
{
    size_t left = left_in_block(r->at), n;
    unsigned char head[HEAD];

    if ((left < HEAD && !take(r, head, left)) || !take(r, head, HEAD))
        return 0;
    n = head[4] | (size_t)head[5] << 8;
    if (n > left_in_block(r->at) || r->len + n > RECORD_MAX)
        return 0;
    if (r->len + n > r->room) {
        size_t room = 2 * (r->len + n);
        unsigned char *more = realloc(r->data, room);

        if (!more)
            return 0;
        r->data = more;
        r->room = room;
    }
    if (!take(r, r->data + r->len, n) ||
        part_crc(head[6], r->data + r->len, n) !=
            (head[0] | head[1] << 8 | head[2] << 16 | (uint32_t)head[3] << 24))
        return 0;
    r->len += n;
    return head[6];
}

static bool take_record(struct reader *r)
{
    int type;

    r->len = 0;
    if ((type = take_part(r)) != FIRST)
        return type == FULL;
    while ((type = take_part(r)) == MIDDLE)
        ;
    return type == LAST;
}

/* Where what is kept ends. */
static int scan(struct ddp__wandb_file *f, ddp__wandb_keeps *keeps, void *arg)
{
    struct reader r = {.file = fopen(f->path, "rb")};
    unsigned char head[HEAD];
    bool good;

    if (!r.file)
        return ddp__fail(DDP_EIO, "cannot read %s: %s", f->path,
                         strerror(errno));
    good = take(&r, head, HEAD) && !memcmp(head, file_head, HEAD);
    f->size = HEAD;
    while (good && take_record(&r) && keeps(r.data, r.len, arg)) {
        f->size = r.at;
        f->count++;
    }
    fclose(r.file);
    free(r.data);
    return good ? 0
                : ddp__fail(DDP_EDATA,
                            "%s is no file of Weights & Biases; move it away",
                            f->path);
}

/* ---- files -------------------------------------------------------------- */

static int open_path(struct ddp__wandb_file *f, char *path, int flags)
{
    *f = (struct ddp__wandb_file){.fd = -1, .path = path};
    if ((f->fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0666)) < 0)
        return ddp__fail(DDP_EIO, "cannot write %s: %s", path, strerror(errno));
    return 0;
}

int ddp__wandb_create(struct ddp__wandb_file *f, char *path)
{
    int rc = open_path(f, path, O_CREAT | O_EXCL);

    return rc < 0 ? rc : append(f, file_head, HEAD);
}

int ddp__wandb_reopen(struct ddp__wandb_file *f, char *path,
                      ddp__wandb_keeps *keeps, void *arg)
{
    int rc = open_path(f, path, 0);

    if (rc == 0 && (rc = scan(f, keeps, arg)) == 0)
        rc = ddp__wandb_cut(f, f->size, f->count);
    return rc;
}

void ddp__wandb_close(struct ddp__wandb_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    ddp__proto_free(&f->record);
    *f = (struct ddp__wandb_file){.fd = -1};
}
