/* lock.c - a folder of checkpoints that one process at a time writes to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The lock is flock()'s, which ends with the process however that ends.  Who
 * has it, and since when, is in a file in the folder, for the message to
 * others: on another machine nothing else tells it.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_write.h"
#include "checkpoint/files.h"
#include "checkpoint/lock.h"

/* A process that has the lock. */
struct writer {
    long pid; /* 0: unknown */
    char host[65], since[33];
};

/* ---- the file ----------------------------------------------------------- */

/* "1234 host 2026-01-02T03:04:05Z" */
static int note_writer(int dir, const char *path)
{
    struct ddp__sink s = {
        .fd = openat(dir, DDP__CKPT_WRITER,
                     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                     0666)};
    char text[160], host[65] = "unknown", since[33] = "unknown";
    time_t now = time(NULL);
    struct tm utc;
    bool good;

    gethostname(host, sizeof(host) - 1);
    if (gmtime_r(&now, &utc))
        strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(text, sizeof(text), "%ld %s %s\n", (long)getpid(), host, since);
    good = s.fd >= 0 && ddp__write_all(&s, text, strlen(text)) == 0;
    if (!good)
        ddp__fail(DDP_EIO, "%s/%s: cannot be written: %s", path,
                  DDP__CKPT_WRITER, strerror(errno));
    if (s.fd >= 0)
        close(s.fd);
    return good ? 0 : DDP_EIO;
}

static struct writer read_writer(int dir)
{
    int fd = openat(dir, DDP__CKPT_WRITER,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct writer w = {0}, none = {0};
    char text[160];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return sscanf(text, "%ld %64s %32s", &w.pid, w.host, w.since) == 3 ? w
                                                                       : none;
}

/* ---- who has it --------------------------------------------------------- */

/* The process on this machine that has locked the open file fd, by the lines of
 * /proc/locks: "1: FLOCK ADVISORY WRITE pid major:minor:inode 0 EOF"; 0: none
 * is listed. */
static long local_holder(int fd)
{
    FILE *f = fopen("/proc/locks", "re");
    unsigned long long inode;
    char line[256];
    struct stat st;
    long pid = 0, holder = 0;

    while (f && !holder && fstat(fd, &st) == 0 && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s FLOCK %*s WRITE %ld %*x:%*x:%llu", &pid,
                   &inode) == 2 &&
            inode == st.st_ino)
            holder = pid;
    if (f)
        fclose(f);
    return holder;
}

static bool is_here(const struct writer *w)
{
    char host[65] = "";

    gethostname(host, sizeof(host) - 1);
    return !strcmp(w->host, host);
}

static void describe_holder(int fd, char *who, size_t size)
{
    struct writer w = read_writer(fd);
    long holder = local_holder(fd);

    if (holder == (long)getpid())
        snprintf(who, size, "another trainer of this process");
    else if (holder > 0 || (w.pid && is_here(&w)))
        snprintf(who, size, "process %ld on this machine",
                 holder > 0 ? holder : w.pid);
    else if (w.pid)
        snprintf(who, size, "process %ld on the machine %s", w.pid, w.host);
    else
        snprintf(who, size, "another process, perhaps on another machine,");
    if (w.pid)
        snprintf(who + strlen(who), size - strlen(who), ", since %s,", w.since);
}

int ddp__ckpt_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    char who[192];

    if (fd < 0)
        return ddp__fail(DDP_EIO, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        describe_holder(fd, who, sizeof(who));
        rc = ddp__fail(DDP_EINVAL,
                       "%s: %s is writing its checkpoints to this folder: wait "
                       "for it to end, or use another folder",
                       path, who);
    } else {
        rc = note_writer(fd, path);
    }
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}
