/* starpu_home.c - the folder in which StarPU stores its measurements
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU aborts the process if it cannot make this folder or write a file in
 * it, and if one is empty or cut short, as a full disk leaves them.  Containers
 * and service accounts often have no home that can be written.  It writes these
 * files when it starts on a machine for the first time or with other GPUs, and
 * other processes may start then.
 *
 * StarPU 1.4 takes the first of several folders that has a .config, so the one
 * that is chosen here gets one.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/bus_file.h"
#include "runtime/starpu_home.h"

/* StarPU cuts paths of files to so many bytes with the zero.  Those of one
 * start have some KiB, more with many GPUs. */
enum { PATH = 256, PROBE = 256 << 10 };

/* Its files of a machine; the last two are written only. */
static const char *const files[] = {"config",       "affinity",
                                    "latency",      "bandwidth",
                                    "platform.xml", "platform.v4.xml"};
enum { FILES = sizeof(files) / sizeof(*files), READ = 4 };

static const char *set(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

/* In StarPU's order; false: the path is too long. */
static bool usual_folder(char path[PATH])
{
    const char *home = set("XDG_CACHE_HOME");
    int n;

    if (set("STARPU_PERF_MODEL_DIR"))
        return snprintf(path, PATH, "%s", set("STARPU_PERF_MODEL_DIR")) < PATH;
    if (!home)
        home = set("STARPU_HOME");
    if (!home)
        home = set("HOME");
    if (!home)
        home = set("TMPDIR");
    n = snprintf(path, PATH, "%s/.starpu/sampling", home ? home : "/tmp");
    return n < PATH;
}

/* With those above it.  Returns 0 or an errno. */
static int make_folder(char *path)
{
    struct stat st;

    for (char *at = path; (at = strchr(at + 1, '/')); *at = '/') {
        *at = '\0';
        mkdir(path, 0777); /* whether it is there, the last one shows */
    }
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return stat(path, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    return errno;
}

/* Write what StarPU may write, and delete it.  Returns 0 or an errno. */
static int try_writing(const char *folder)
{
    char path[PATH + 32], *zeros = calloc(1, PROBE);
    int fd, rc = 0;

    snprintf(path, sizeof(path), "%s/.libddp-XXXXXX", folder);
    if (!zeros || (fd = mkostemp(path, O_CLOEXEC)) < 0) {
        rc = errno;
        free(zeros);
        return rc;
    }
    errno = ENOSPC; /* a short write sets none */
    if (write(fd, zeros, PROBE) != PROBE)
        rc = errno;
    if (close(fd) < 0 && !rc)
        rc = errno;
    unlink(path);
    free(zeros);
    return rc;
}

/* The name that StarPU gives files of this machine. */
static void machine_name(char name[65])
{
    const char *given = set("STARPU_HOSTNAME");

    if (given) {
        snprintf(name, 65, "%s", given);
        return;
    }
    if (gethostname(name, 65) < 0)
        name[0] = '\0';
    name[64] = '\0'; /* gethostname() may leave it out */
    name[strcspn(name, ".")] = '\0';
}

/* false: it is too long. */
static bool file_path(const char *folder, int i, char path[PATH])
{
    char machine[65];

    machine_name(machine);
    return snprintf(path, PATH, "%s/bus/%s.%s", folder, machine, files[i]) <
           PATH;
}

static bool has_all(const char *folder)
{
    char path[PATH];

    for (int i = 0; i < READ; i++) {
        file_path(folder, i, path);
        if (access(path, F_OK) < 0)
            return false;
    }
    return true;
}

/* 0: a file that may be read and written, or none, or an errno. */
static int try_file(const char *path)
{
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), rc = 0;
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        rc = EINVAL;
    close(fd);
    return rc;
}

/* Why StarPU cannot use a file of this machine, which is in path; NULL: it can.
 */
static const char *find_damage(const char *folder, char path[PATH])
{
    struct ddp__bus_counts c = {0};
    int error;

    for (int i = 0; i < FILES; i++) {
        file_path(folder, i, path);
        if ((error = try_file(path)))
            return strerror(error);
        if (i < READ && access(path, F_OK) == 0 &&
            !ddp__bus_file_good(path, i, &c))
            return "damaged";
    }
    return NULL;
}

/* That nothing was measured on this machine: StarPU measures, and looks in no
 * other folder.  Returns 0 or an errno. */
static int seed(const char *folder)
{
    char path[PATH];
    FILE *f;

    file_path(folder, 0, path);
    if (access(path, F_OK) == 0)
        return 0;
    if (!(f = fopen(path, "we")))
        return errno;
    for (int i = 0; i < 16; i++)
        fputs("0 # not measured\n", f);
    return fclose(f) == 0 ? 0 : errno;
}

/* ---- processes that start together -------------------------------------- */

enum {
    PATIENCE = 1000
}; /* times 10 ms: whoever writes may have been stopped */

/* Who finds all files locks the folder with others, else alone.  Where folders
 * cannot be locked there is no lock. */
static void lock_folder(struct ddp__starpu_home *h, const char *folder,
                        const char *bus)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    int fd = open(bus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; fd >= 0 && i < PATIENCE && !h->locked; i++) {
        bool all = has_all(folder);

        if (flock(fd, (all ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
            h->locked = all == has_all(folder);
        else if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        else
            nanosleep(&pause, NULL);
    }
    if (h->locked)
        h->lock = fd;
    else if (fd >= 0)
        close(fd);
}

void ddp__starpu_home_forget(void)
{
    char folder[PATH], path[PATH];

    for (int i = 0; i < FILES; i++)
        if (usual_folder(folder) && file_path(folder, i, path))
            unlink(path);
}

void ddp__starpu_home_started(struct ddp__starpu_home *h)
{
    if (h->locked)
        close(h->lock);
    h->locked = false;
}

/* ---- the folder --------------------------------------------------------- */

/* Why StarPU cannot use the usual folder. */
static void find_reason(struct ddp__starpu_home *h)
{
    char folder[PATH], bus[PATH + 4], path[PATH];
    const char *damage = NULL;
    int error = ENAMETOOLONG;

    if (usual_folder(folder) && file_path(folder, FILES - 1, path)) {
        snprintf(bus, sizeof(bus), "%s/bus", folder);
        if ((error = make_folder(bus)) == 0)
            error = try_writing(bus);
        if (!error)
            lock_folder(h, folder, bus);
    }
    if (!error && !(damage = find_damage(folder, path)))
        error = seed(folder);
    if (error)
        snprintf(h->why, sizeof(h->why), "cannot write %.200s: %s", folder,
                 strerror(error));
    else if (damage)
        snprintf(h->why, sizeof(h->why),
                 "%.200s cannot be used (%s): delete it", path, damage);
    ddp_printable(h->why);
}

/* From a template, which it completes.  Returns 0 or -1 with errno. */
static int make_temporary(char *path)
{
    char bus[PATH];

    if (!mkdtemp(path))
        return -1;
    snprintf(bus, sizeof(bus), "%s/bus", path);
    if (mkdir(bus, 0777) < 0 || (errno = seed(path)))
        return -1;
    return setenv("STARPU_PERF_MODEL_DIR", path, 1);
}

int ddp__starpu_home_choose(struct ddp__starpu_home *h)
{
    const char *tmp = set("TMPDIR");

    memset(h, 0, sizeof(*h));
    find_reason(h);
    if (!h->why[0])
        return 0;
    ddp__starpu_home_started(h); /* elsewhere */
    if (set("STARPU_PERF_MODEL_DIR") &&
        !(h->before = strdup(set("STARPU_PERF_MODEL_DIR"))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a path");
    for (int try = tmp && strlen(tmp) < 32 ? 0 : 1; try < 2; try++) {
        snprintf(h->temporary, sizeof(h->temporary), "%s/libddp-starpu-XXXXXX",
                 try == 0 ? tmp : "/tmp");
        if (make_temporary(h->temporary) == 0)
            return 0;
    }
    h->temporary[0] = '\0';
    return ddp__fail(DDP_EIO,
                     "StarPU needs a folder for its files: %s; nor can a "
                     "temporary one be made in /tmp (%s): set STARPU_HOME to a "
                     "folder that can be written",
                     h->why, strerror(errno));
}

static int delete_entry(const char *path, const struct stat *st, int type,
                        struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    remove(path);
    return 0;
}

void ddp__starpu_home_free(struct ddp__starpu_home *h)
{
    ddp__starpu_home_started(h);
    if (!h->temporary[0])
        return;
    if (h->before)
        setenv("STARPU_PERF_MODEL_DIR", h->before, 1);
    else
        unsetenv("STARPU_PERF_MODEL_DIR");
    free(h->before);
    h->before = NULL;
    nftw(h->temporary, delete_entry, 8, FTW_DEPTH | FTW_PHYS);
    h->temporary[0] = '\0';
}
