/* events.c - an event file of TensorBoard
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Records are framed as TensorFlow's record_writer.cc does: the length of the
 * data, its checksum, the data, their checksum.  The data are a message Event
 * of tensorboard/compat/proto/event.proto.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file_write.h"
#include "train/events.h"
#include "train/log_files.h"

#define PREFIX "events.out.tfevents."

/* Fields of Event. */
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3 };

/* ---- records ------------------------------------------------------------ */

static void put_number(unsigned char *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(v >> 8 * i);
}

/* Checksums are stored rotated and shifted, since one of data that contain
 * their own checksum would be a constant. */
static uint32_t masked_crc(const void *data, size_t len)
{
    uint32_t crc = ddp__crc32c(0, data, len);

    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static int fail_write(const struct ddp__events *e)
{
    return ddp__fail(DDP_EIO, "cannot write %s: %s", e->path, strerror(errno));
}

/* In one piece: a crash leaves whole records and at most a part of one. */
static int write_record(struct ddp__events *e)
{
    struct ddp__sink s = {.fd = e->fd};
    struct ddp__proto *p = &e->event;
    size_t len = p->len + 16;
    unsigned char *r = malloc(len);
    int rc = 0;

    if (!r || p->lacks_memory) {
        free(r);
        return ddp__fail(DDP_ENOMEM, "out of memory for an event of %s",
                         e->path);
    }
    put_number(r, p->len, 8);
    put_number(r + 8, masked_crc(r, 8), 4);
    memcpy(r + 12, p->data, p->len);
    put_number(r + 12 + p->len, masked_crc(p->data, p->len), 4);
    if (ddp__write_all(&s, r, len) < 0)
        rc = fail_write(e);
    free(r);
    return rc;
}

int ddp__events_write(struct ddp__events *e, int64_t step, int field,
                      struct ddp__proto *what)
{
    ddp__proto_clear(&e->event);
    ddp__proto_double(&e->event, WALL_TIME, ddp__log_now());
    ddp__proto_int(&e->event, STEP, (uint64_t)step);
    ddp__proto_message(&e->event, field, what);
    return write_record(e);
}

/* ---- files -------------------------------------------------------------- */

/* Seconds in the name, by which readers sort: at least one more than those of
 * the files that are there. */
static long long next_time(const char *dir)
{
    long long last = 0, now = (long long)time(NULL);
    DIR *d = opendir(dir);
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX))) {
            long long t = strtoll(entry->d_name + strlen(PREFIX), NULL, 10);

            last = t > last && t < 9999999999 ? t : last;
        }
    if (d)
        closedir(d);
    return now > last ? now : last + 1;
}

static int create(struct ddp__events *e, const char *dir)
{
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    if (asprintf(&e->path, "%s/" PREFIX "%010lld.%s.%ld.0", dir, next_time(dir),
                 *host ? host : "localhost", (long)getpid()) < 0) {
        e->path = NULL;
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    }
    e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return e->fd < 0 ? fail_write(e) : 0;
}

int ddp__events_open(struct ddp__events *e, const char *dir)
{
    int rc;

    *e = (struct ddp__events){.fd = -1};
    if ((rc = ddp__log_folder(dir)) < 0 || (rc = create(e, dir)) < 0)
        return rc;
    ddp__proto_double(&e->event, WALL_TIME, ddp__log_now());
    ddp__proto_text(&e->event, FILE_VERSION, "brain.Event:2");
    return write_record(e);
}

void ddp__events_close(struct ddp__events *e)
{
    if (e->fd >= 0)
        close(e->fd);
    free(e->path);
    ddp__proto_free(&e->event);
    *e = (struct ddp__events){.fd = -1};
}
