/* writer.c - the file that says which process writes to a folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A thread renews its time for as long as the process lives.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_write.h"
#include "base/thread.h"
#include "checkpoint/files.h"
#include "checkpoint/writer.h"

int ddp__writer_renew_ms = 10000;

/* ---- the file ----------------------------------------------------------- */

/* The first word of a file; "" if there is none. */
static void read_word(int dir, const char *path, char *word, size_t size)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, word, size - 1);

    if (fd >= 0)
        close(fd);
    word[n > 0 ? n : 0] = 0;
    word[strcspn(word, " \n")] = 0;
}

/* Names of machines may be equal, and containers of one have several. */
static void read_boot(char boot[65])
{
    read_word(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, 65);
}

/* "1234 host 2026-01-02T03:04:05Z boot" */
int ddp__writer_note(int dir, const char *path)
{
    struct ddp__sink s = {
        .fd = openat(dir, DDP__CKPT_WRITER,
                     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                     0666)};
    char text[256], host[65] = "unknown", since[33] = "unknown", boot[65];
    time_t now = time(NULL);
    struct tm utc;
    bool good;

    gethostname(host, sizeof(host) - 1);
    read_boot(boot);
    if (gmtime_r(&now, &utc))
        strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(text, sizeof(text), "%ld %s %s %s\n", (long)getpid(), host, since,
             boot);
    good = s.fd >= 0 && ddp__write_all(&s, text, strlen(text)) == 0;
    if (!good)
        ddp__fail(DDP_EIO, "%s/%s: cannot be written: %s", path,
                  DDP__CKPT_WRITER, strerror(errno));
    if (s.fd >= 0)
        close(s.fd);
    return good ? 0 : DDP_EIO;
}

/* Network file systems look for what others wrote when a file is opened. */
struct ddp__writer ddp__writer_read(int dir)
{
    int fd = openat(dir, DDP__CKPT_WRITER,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct ddp__writer w = {0}, none = {0};
    struct stat st = {0};
    char text[256];
    ssize_t n =
        fd < 0 || fstat(fd, &st) < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    w.renewed = st.st_mtim;
    return sscanf(text, "%ld %64s %32s %64s", &w.pid, w.host, w.since,
                  w.boot) >= 3
               ? w
               : none;
}

bool ddp__writer_is_here(const struct ddp__writer *w)
{
    char host[65] = "", boot[65];

    read_boot(boot);
    if (*boot && *w->boot)
        return !strcmp(w->boot, boot);
    gethostname(host, sizeof(host) - 1);
    return !strcmp(w->host, host);
}

bool ddp__writer_is_own(const struct ddp__writer *w)
{
    return w->pid == (long)getpid() && ddp__writer_is_here(w);
}

/* ---- its time ----------------------------------------------------------- */

struct ddp__renewal {
    int dir;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool end;
};

static struct timespec next_time(void)
{
    return ddp__clock_after(1e-3 * ddp__writer_renew_ms);
}

/* The file of a process that took the folder over is not renewed. */
static void *renew(void *arg)
{
    struct ddp__renewal *r = arg;
    struct timespec t = next_time();

    pthread_mutex_lock(&r->lock);
    while (!r->end) {
        struct ddp__writer w;

        if (pthread_cond_timedwait(&r->ended, &r->lock, &t) != ETIMEDOUT)
            continue;
        w = ddp__writer_read(r->dir);
        if (ddp__writer_is_own(&w))
            utimensat(r->dir, DDP__CKPT_WRITER, NULL, AT_SYMLINK_NOFOLLOW);
        t = next_time();
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void renewal_free(struct ddp__renewal *r)
{
    pthread_cond_destroy(&r->ended);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

struct ddp__renewal *ddp__renewal_begin(int dir)
{
    struct ddp__renewal *r = calloc(1, sizeof(*r));
    int rc;

    if (!r) {
        ddp__fail(DDP_ENOMEM, "out of memory for a lock");
        return NULL;
    }
    r->dir = dir;
    pthread_mutex_init(&r->lock, NULL);
    ddp__clock_condition(&r->ended);
    if ((rc = ddp__thread_start(&r->thread, renew, r)) == 0)
        return r;
    renewal_free(r);
    ddp__fail(DDP_ENOMEM, "out of memory for the thread of a lock: %s",
              strerror(rc));
    return NULL;
}

void ddp__renewal_end(struct ddp__renewal *r)
{
    struct ddp__writer w;

    pthread_mutex_lock(&r->lock);
    r->end = true;
    pthread_cond_signal(&r->ended);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    w = ddp__writer_read(r->dir);
    if (ddp__writer_is_own(&w))
        unlinkat(r->dir, DDP__CKPT_WRITER, 0);
    renewal_free(r);
}
