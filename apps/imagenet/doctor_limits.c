/* doctor_limits.c - limits and folders, for "imagenet doctor"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "ddp.h"

#include "common/app.h"
#include "doctor_limits.h"

extern char **environ;

static const double GIB = 1024.0 * 1024 * 1024;

/* ---- control groups ----------------------------------------------------- */

/* "N" or "N M" of a file: N, or N / M; INFINITY for "max", or without it. */
static double read_limit(const char *path)
{
    FILE *f = fopen(path, "re");
    double n = INFINITY, m = 1;

    if (!f)
        return INFINITY;
    if (fscanf(f, "%lf %lf", &n, &m) < 1)
        n = INFINITY;
    fclose(f);
    return n / m;
}

/* The least of a group and those above it; a container may see its own group as
 * the root. */
static double least_limit(const char *root, const char *group, const char *name)
{
    double least = INFINITY, limit;
    char folder[1024], path[1100];
    char *end;

    snprintf(folder, sizeof(folder), "%s%s", root, group);
    for (;; *end = '\0') {
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        limit = read_limit(path);
        least = limit < least ? limit : least;
        if (strlen(folder) <= strlen(root) || !(end = strrchr(folder, '/')))
            return least;
    }
}

/* Of this process: the files of version 2 and 1 of control groups. */
static double group_limit(const char *name_2, const char *controller,
                          const char *name_1)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    double least = INFINITY, limit;
    char line[900], root[64], *group;

    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!(group = strrchr(line, ':')))
            continue;
        *group++ = '\0';
        snprintf(root, sizeof(root), "/sys/fs/cgroup/%s", controller);
        limit = INFINITY;
        if (!strcmp(line, "0:"))
            limit = least_limit("/sys/fs/cgroup", group, name_2);
        else if (name_1 && strstr(line, controller))
            limit = least_limit(root, group, name_1);
        least = limit < least ? limit : least;
    }
    if (f)
        fclose(f);
    return least < 1e18 ? least : INFINITY;
}

/* ---- memory and processor time ------------------------------------------ */

/* A row of /proc/meminfo in bytes; 0: there is none. */
static double meminfo(const char *name)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    double kib = 0;

    while (f && !kib && fgets(line, sizeof(line), f))
        if (!strncmp(line, name, strlen(name)))
            sscanf(line + strlen(name), ": %lf", &kib);
    if (f)
        fclose(f);
    return kib * 1024;
}

static void check_memory(struct report *r)
{
    double free = meminfo("MemAvailable"), total = meminfo("MemTotal");
    double group = group_limit("memory.max", "memory", "memory.limit_in_bytes");
    double quota = group_limit("cpu.max", "cpu", NULL);
    char a[32], b[32];

    report_line("memory", "%s, of which %s are available",
                report_bytes(total, a), report_bytes(free, b));
    if (isfinite(group) && (!total || group < total))
        report_line("memory limit", "%s of the control group",
                    report_bytes(group, a));
    else
        report_line("memory limit", "none");
    if (isfinite(quota))
        report_line("cpu quota", "%.2f processors", quota);
    else
        report_line("cpu quota", "none");
    free = group < free ? group : free;
    if (free && free < GIB)
        report_warning(r, "%s of memory suffice for small networks only",
                       report_bytes(free, a));
}

/* ---- limits of the process ---------------------------------------------- */

enum unit { BYTES, COUNT, SECONDS };

/* Limits below `least` are a warning. */
static const struct limit {
    const char *name, *option;
    int resource;
    enum unit unit;
    double least;
    const char *why;
} limits[] = {
    {"address space", "-v", RLIMIT_AS, BYTES, 16e9,
     "tasks that find no memory fail"},
    {"data segment", "-d", RLIMIT_DATA, BYTES, 16e9,
     "tasks that find no memory fail"},
    {"file size", "-f", RLIMIT_FSIZE, BYTES, 4e9,
     "weights and checkpoints that are larger cannot be written"},
    {"open files", "-n", RLIMIT_NOFILE, COUNT, 128,
     "images, checkpoints and GPUs may need more"},
    {"threads", "-u", RLIMIT_NPROC, COUNT, 256,
     "each worker needs a thread, and the user's other processes count"},
    {"processor time", "-t", RLIMIT_CPU, SECONDS, 1e18,
     "the run is killed after it"},
    {"locked memory", "-l", RLIMIT_MEMLOCK, BYTES, 0, ""},
};

static const char *amount(const struct limit *l, double n, char buf[32])
{
    if (l->unit == BYTES)
        return report_bytes(n, buf);
    snprintf(buf, 32, "%.0f%s", n, l->unit == SECONDS ? " s" : "");
    return buf;
}

static void check_limit(struct report *r, const struct limit *l)
{
    char name[64], now[32];
    struct rlimit is;

    if (getrlimit((__rlimit_resource_t)l->resource, &is) < 0)
        return;
    snprintf(name, sizeof(name), "limit of %s", l->name);
    if (is.rlim_cur == RLIM_INFINITY) {
        report_line(name, "none");
        return;
    }
    amount(l, (double)is.rlim_cur, now);
    report_line(name, "%s", now);
    if ((double)is.rlim_cur < l->least)
        report_warning(r, "%s is limited to %s: %s (ulimit %s)", l->name, now,
                       l->why, l->option);
}

void doctor_limits(struct report *r)
{
    check_memory(r);
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        check_limit(r, &limits[i]);
}

/* ---- folders ------------------------------------------------------------ */

/* Create a file there, and delete it.  0 or an errno. */
static int try_writing(const char *folder)
{
    char *path = app_path(folder, ".imagenet-doctor-XXXXXX");
    int fd = path ? mkstemp(path) : -1, error = fd < 0 ? errno : 0;

    if (fd >= 0) {
        error = write(fd, "x", 1) == 1 ? 0 : errno;
        close(fd);
        unlink(path);
    }
    free(path);
    return error;
}

/* How it can be used, as a line.  0 or an errno. */
static int check_folder(const char *name, const char *folder)
{
    int error = try_writing(folder);
    struct statvfs v;
    char room[32] = "unknown";

    if (statvfs(folder, &v) == 0)
        report_bytes((double)v.f_bavail * (double)v.f_frsize, room);
    if (error)
        report_line(name, "%s, cannot be written: %s", folder, strerror(error));
    else
        report_line(name, "%s, can be written, %s free", folder, room);
    return error;
}

static const char *variable(const char *name, const char *otherwise)
{
    const char *text = getenv(name);

    return text && *text ? text : otherwise;
}

/* Where StarPU has its measurements: what libddp does if it cannot write there
 * is among its notes. */
static void check_starpu(void)
{
    const char *home = variable("STARPU_HOME", variable("HOME", "/tmp"));

    home = variable("XDG_CACHE_HOME", home);
    check_folder("folder of StarPU", variable("STARPU_PERF_MODEL_DIR", home));
}

void doctor_folders(struct report *r, const char *output)
{
    const char *runs = output ? output : ".";
    int error = check_folder("folder of runs", runs);

    if (error && output)
        report_problem(r, EXIT_WRITE,
                       "%s: %s; train --output needs a folder "
                       "that can be written",
                       runs, strerror(error));
    else if (error)
        report_warning(r, "train needs --output DIR here: the current folder "
                          "cannot be written");
    check_folder("folder of temporary files", variable("TMPDIR", "/tmp"));
    check_starpu();
}

/* ---- environment -------------------------------------------------------- */

static bool matters(const char *entry)
{
    static const char *const prefix[] = {"DDP_",
                                         "STARPU_",
                                         "CUDA_VISIBLE_DEVICES=",
                                         "DNNL_",
                                         "ONEDNN_",
                                         "OMP_",
                                         "HWLOC_",
                                         "LD_LIBRARY_PATH=",
                                         "XDG_CACHE_HOME=",
                                         "LD_PRELOAD=",
                                         "TMPDIR=",
                                         "SLURM_NTASKS=",
                                         "WORLD_SIZE=",
                                         "OMPI_COMM_WORLD_SIZE="};

    for (size_t i = 0; i < sizeof(prefix) / sizeof(*prefix); i++)
        if (!strncmp(entry, prefix[i], strlen(prefix[i])))
            return true;
    return false;
}

void doctor_environment(void)
{
    for (char **e = environ; e && *e; e++)
        if (matters(*e))
            report_line("environment", "%s", *e);
}
