/* cgroup.c - what a container may use of the machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * `docker run --cpus 2` and the limits of Kubernetes leave all cores in the
 * process's affinity, and stop its threads once they have used their share of
 * every 100 ms.  A process that takes more memory than its group may have is
 * killed, however much the machine has; Slurm limits jobs in this way.  The
 * files are described in Linux' cgroup-v2.rst and, for version 1, sched-bwc.rst
 * and memory.rst.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"

/* A line of a file, without its end; false: there is none. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(line, size, f);

    if (f)
        fclose(f);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

static double ratio(double quota, double period)
{
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* "200000 100000": that many us in so many; "max 100000": no limit. */
static double quota_2(const char *folder)
{
    char path[4200], line[64];
    double quota = 0, period = 0;

    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    if (read_line(path, line, sizeof(line)))
        sscanf(line, "%lf %lf", &quota, &period);
    return ratio(quota, period);
}

/* Two files with a number each; -1: no limit. */
static double quota_1(const char *folder)
{
    char path[4200], quota[32] = "", period[32] = "";

    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
    read_line(path, quota, sizeof(quota));
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
    read_line(path, period, sizeof(period));
    return ratio(strtod(quota, NULL), strtod(period, NULL));
}

/* A file with a number of bytes, or with "max". */
static double memory_of(const char *folder, const char *file)
{
    char path[4200], line[64];
    double bytes = 0;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    if (read_line(path, line, sizeof(line)))
        bytes = strtod(line, NULL);
    return bytes > 0 ? bytes : INFINITY;
}

static double memory_2(const char *folder)
{
    return memory_of(folder, "memory.max");
}

/* Without a limit it is the largest number of whole pages. */
static double memory_1(const char *folder)
{
    return memory_of(folder, "memory.limit_in_bytes");
}

/* What can be limited: its controller in version 1, and the limit of a group in
 * both. */
struct resource {
    const char *controller;
    double (*limit_1)(const char *folder), (*limit_2)(const char *folder);
};

static const struct resource cpu = {"cpu", quota_1, quota_2};
static const struct resource memory = {"memory", memory_1, memory_2};

/* The least of a group and those above it.  A container may see its own group
 * as the root, under a path that only exists outside. */
static double least_limit(const char *root, const char *group,
                          double (*limit)(const char *folder))
{
    char folder[4100];
    double least, q;
    char *end;

    snprintf(folder, sizeof(folder), "%s%s", root, group);
    for (least = INFINITY; strlen(folder) >= strlen(root); *end = '\0') {
        if ((q = limit(folder)) < least)
            least = q;
        if (!(end = strrchr(folder, '/')))
            break;
    }
    return least;
}

/* A line is "number:controllers:/group": version 2 has number 0 and names no
 * controllers. */
static double limit_of_line(char *line, const char *root,
                            const struct resource *r)
{
    char *controllers = strchr(line, ':'), *group, folder[4096], *name, *rest;

    if (!controllers || !(group = strchr(++controllers, ':')))
        return INFINITY;
    *group++ = '\0';
    if (!*controllers)
        return least_limit(root, group, r->limit_2);
    for (name = strtok_r(controllers, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest))
        if (strcmp(name, r->controller) == 0) {
            snprintf(folder, sizeof(folder), "%s/%s", root, name);
            return least_limit(folder, group, r->limit_1);
        }
    return INFINITY;
}

static double limit_of(const struct resource *r, const char *groups,
                       const char *root)
{
    double least = INFINITY, q;
    char line[4096];
    FILE *f = fopen(groups, "re");

    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        if ((q = limit_of_line(line, root, r)) < least)
            least = q;
    }
    if (f)
        fclose(f);
    return least;
}

int ddp__cpu_quota(const char *groups, const char *root)
{
    double quota = limit_of(&cpu, groups, root);

    return quota < 1e6 ? (int)ceil(quota) : 0;
}

double ddp__memory_limit(const char *groups, const char *root)
{
    double bytes = limit_of(&memory, groups, root);

    return bytes < 0x1p62 ? bytes : INFINITY;
}
