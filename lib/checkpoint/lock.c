/* lock.c - a folder of checkpoints that one process at a time writes to
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Between processes of one machine the lock is flock()'s, which ends with the
 * process however that ends.  Network file systems keep it to the machine (NFS
 * and Lustre do so for folders), so the folder also has a file that names the
 * writer and that it renews (writer.c).  Who finds the file of a process on
 * another machine waits for three times as long as it takes to renew it, unless
 * that was hours ago: clocks differ by less.
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
#include "checkpoint/lock.h"
#include "checkpoint/writer.h"

enum { PERIODS = 3, CHECKS = 10 /* in a period */, LONG_AGO_S = 2 * 3600 };

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

/* ", since TIME, last renewed TIME,": of what can be seen. */
static void describe_times(const struct ddp__writer *w, bool here, char *text,
                           size_t size)
{
    char renewed[64] = "";
    struct tm utc;

    if (!here && gmtime_r(&w->renewed.tv_sec, &utc))
        strftime(renewed, sizeof(renewed), " last renewed %Y-%m-%dT%H:%M:%SZ,",
                 &utc);
    snprintf(text, size, ", since %s,%s", w->since, renewed);
}

/* holder: its process on this machine; 0: unknown. */
static void describe_holder(int dir, long holder, char *who, size_t size)
{
    struct ddp__writer w = ddp__writer_read(dir);
    bool here = holder > 0 || (w.pid && ddp__writer_is_here(&w));

    if (holder == (long)getpid())
        snprintf(who, size, "another trainer of this process");
    else if (here)
        snprintf(who, size, "process %ld on this machine",
                 holder > 0 ? holder : w.pid);
    else if (w.pid)
        snprintf(who, size, "process %ld on the machine %s", w.pid, w.host);
    else
        snprintf(who, size, "another process, perhaps on another machine,");
    if (w.pid)
        describe_times(&w, here, who + strlen(who), size - strlen(who));
}

static int refuse_lock(int dir, long holder, const char *path)
{
    char who[256];

    describe_holder(dir, holder, who, sizeof(who));
    return ddp__fail(DDP_EINVAL,
                     "%s: %s is writing its checkpoints to this folder: wait "
                     "for it to end, or use another folder",
                     path, who);
}

/* ---- on another machine -------------------------------------------------- */

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static bool is_elsewhere(const struct ddp__writer *w)
{
    return w->pid && !ddp__writer_is_here(w);
}

static bool is_renewed(const struct ddp__writer *w, const struct ddp__writer *n)
{
    return n->renewed.tv_sec != w->renewed.tv_sec ||
           n->renewed.tv_nsec != w->renewed.tv_nsec;
}

/* Fails if a process elsewhere renews the folder's file. */
static int watch_writer(int dir, const char *path)
{
    struct ddp__writer w = ddp__writer_read(dir), now = w;

    if (!is_elsewhere(&w) || time(NULL) - w.renewed.tv_sec > LONG_AGO_S)
        return 0;
    for (int i = 0; i < PERIODS * CHECKS && is_elsewhere(&now); i++) {
        if (is_renewed(&w, &now))
            return refuse_lock(dir, 0, path);
        sleep_ms(ddp__writer_renew_ms / CHECKS);
        now = ddp__writer_read(dir);
    }
    return 0;
}

/* ---- the lock ----------------------------------------------------------- */

static int take_lock(struct ddp__ckpt_lock *l, const char *path)
{
    int rc;

    if (flock(l->dir, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        return refuse_lock(l->dir, local_holder(l->dir), path);
    if ((rc = watch_writer(l->dir, path)) < 0 ||
        (rc = ddp__writer_note(l->dir, path)) < 0)
        return rc;
    return (l->renewal = ddp__renewal_begin(l->dir)) ? 0 : DDP_ENOMEM;
}

int ddp__ckpt_lock(struct ddp__ckpt_lock *l, const char *path)
{
    int rc;

    l->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dir < 0)
        return ddp__fail(DDP_EIO, "%s: %s", path, strerror(errno));
    if ((rc = take_lock(l, path)) == 0)
        return 0;
    close(l->dir);
    l->dir = -1;
    return rc;
}

void ddp__ckpt_unlock(struct ddp__ckpt_lock *l)
{
    if (l->dir < 0)
        return;
    ddp__renewal_end(l->renewal);
    close(l->dir);
    l->dir = -1;
}

int ddp__ckpt_lock_check(const struct ddp__ckpt_lock *l, const char *path)
{
    struct ddp__writer w = ddp__writer_read(l->dir);

    return is_elsewhere(&w) ? refuse_lock(l->dir, 0, path) : 0;
}
