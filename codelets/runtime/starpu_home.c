/* starpu_home.c - the folder in which StarPU stores its measurements
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU aborts the process if it cannot make this folder, and if a file in it
 * is empty or cut short, as a full disk leaves them.  Containers and service
 * accounts often have no home that can be written.  It writes these files when
 * it starts on a machine for the first time, and other processes may start
 * then.
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
#include "base/file.h"
#include "runtime/starpu_home.h"

/* StarPU's files of one start have some KiB, more with many GPUs. */
enum { PATH = 2048, PROBE = 256 << 10, MAX_FILE = 16 << 20 };

/* Its files of a machine, and how many lines they have at least: .config has
 * one for each kind of device. */
static const struct {
    const char *name;
    int lines;
} files[] = {{"config", 7}, {"affinity", 1}, {"latency", 1}, {"bandwidth", 1}};
enum { FILES = sizeof(files) / sizeof(*files) };

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

/* Whether an earlier start left a file that StarPU cannot read: text of whole
 * lines is what it wrote. */
static bool is_damaged(const char *path, int least_lines)
{
    struct ddp__error before = ddp__error_save();
    struct ddp__bytes b = {0};
    int lines = 0;
    bool damaged =
        access(path, F_OK) == 0 && ddp__file_load(path, MAX_FILE, &b) < 0;

    for (size_t i = 0; i < b.len && !damaged; i++) {
        lines += b.data[i] == '\n';
        damaged = b.data[i] >= 0x7f ||
                  (b.data[i] < ' ' && b.data[i] != '\t' && b.data[i] != '\n');
    }
    if (b.len > 0 && (lines < least_lines || b.data[b.len - 1] != '\n'))
        damaged = true;
    ddp__error_restore(&before);
    free(b.data);
    return damaged;
}

/* The name that StarPU gives files of this machine. */
static void machine_name(char name[256])
{
    const char *given = set("STARPU_HOSTNAME");

    if (given) {
        snprintf(name, 256, "%s", given);
        return;
    }
    if (gethostname(name, 256) < 0)
        name[0] = '\0';
    name[255] = '\0'; /* gethostname() may leave it out */
    name[strcspn(name, ".")] = '\0';
}

/* The path of one of them; false: it is too long. */
static bool file_path(const char *bus, int i, char path[PATH])
{
    char machine[256];

    machine_name(machine);
    return snprintf(path, PATH, "%s/%s.%s", bus, machine, files[i].name) < PATH;
}

/* A file of this machine that StarPU cannot read, in path. */
static bool find_damage(const char *bus, char path[PATH])
{
    for (int i = 0; i < FILES; i++)
        if (file_path(bus, i, path) && is_damaged(path, files[i].lines))
            return true;
    return false;
}

static bool has_all(const char *bus)
{
    char path[PATH];

    for (int i = 0; i < FILES; i++)
        if (!file_path(bus, i, path) || access(path, F_OK) < 0)
            return false;
    return true;
}

/* ---- processes that start together -------------------------------------- */

enum {
    PATIENCE = 1000
}; /* times 10 ms: whoever writes may have been stopped */

/* Who finds all files locks the folder with others, else alone.  Where folders
 * cannot be locked there is no lock. */
static void lock_folder(struct ddp__starpu_home *h, const char *bus)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    int fd = open(bus, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; fd >= 0 && i < PATIENCE && !h->locked; i++) {
        bool all = has_all(bus);

        if (flock(fd, (all ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
            h->locked = all == has_all(bus);
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
    char folder[PATH], bus[PATH + 8], damaged[PATH];
    int error = ENAMETOOLONG;

    if (usual_folder(folder)) {
        snprintf(bus, sizeof(bus), "%s/bus", folder);
        if ((error = make_folder(bus)) == 0)
            error = try_writing(bus);
        if (!error)
            lock_folder(h, bus);
    }
    if (error)
        snprintf(h->why, sizeof(h->why), "cannot write %.200s: %s", folder,
                 strerror(error));
    else if (find_damage(bus, damaged))
        snprintf(h->why, sizeof(h->why), "%.200s is damaged; delete it",
                 damaged);
    ddp_printable(h->why);
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
        if (mkdtemp(h->temporary) &&
            setenv("STARPU_PERF_MODEL_DIR", h->temporary, 1) == 0)
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
