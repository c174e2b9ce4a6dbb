/* wandb_machine.c - what Weights & Biases shows about the machine of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/error.h"
#include "train/log_files.h"
#include "train/wandb_machine.h"

/* ---- metadata ----------------------------------------------------------- */

static json_t *system_name(void)
{
    struct utsname u;

    return uname(&u) == 0
               ? json_sprintf("%s-%s-%s", u.sysname, u.release, u.machine)
               : NULL;
}

/* The program, and its arguments as one. */
static void add_command(json_t *o, const char *command)
{
    size_t n;

    if (!command)
        return;
    n = strcspn(command, " ");
    json_object_set_new(o, "program", json_stringn(command, n));
    if (command[n])
        json_object_set_new(o, "args", json_pack("[s]", command + n + 1));
}

static json_t *metadata(const struct ddp_log *l)
{
    json_t *o = json_object();
    char host[256] = "", now[32] = "";
    time_t t = time(NULL);
    struct tm tm;

    gethostname(host, sizeof(host) - 1);
    if (gmtime_r(&t, &tm))
        strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_set_new(o, "os", system_name());
    json_object_set_new(o, "host", json_string(host));
    json_object_set_new(o, "startedAt", json_string(now));
    add_command(o, l->fact[DDP_LOG_COMMAND]);
    if (l->fact[DDP_LOG_REVISION])
        json_object_set_new(
            o, "git", json_pack("{s:s}", "commit", l->fact[DDP_LOG_REVISION]));
    json_object_set_new(o, "cpu_count_logical",
                        json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(o, "memory",
                        json_pack("{s:I}", "total",
                                  (json_int_t)sysconf(_SC_PHYS_PAGES) *
                                      (json_int_t)sysconf(_SC_PAGE_SIZE)));
    return o;
}

int ddp__wandb_metadata(const struct ddp_log *l, const char *files)
{
    json_t *o = metadata(l);
    char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL, *path = NULL;
    int rc;

    json_decref(o);
    if (!text || asprintf(&path, "%s/" DDP__WANDB_METADATA, files) < 0)
        rc = ddp__fail(DDP_ENOMEM, "out of memory for a log");
    else
        rc = ddp__log_write(path, text);
    free(path);
    free(text);
    return rc;
}

/* ---- use ---------------------------------------------------------------- */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static struct ddp__usage usage_now(void)
{
    struct rusage r = {0};

    getrusage(RUSAGE_SELF, &r);
    return (struct ddp__usage){ddp__clock(),
                               seconds(r.ru_utime) + seconds(r.ru_stime)};
}

/* Pages that the process has in memory. */
static double resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (f && fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (double)pages;
}

int ddp__wandb_usage(struct ddp__usage *u,
                     struct ddp__log_value v[DDP__USAGE_VALUES])
{
    struct ddp__usage last = *u;
    double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    double pages = (double)sysconf(_SC_PHYS_PAGES), used = resident();

    *u = usage_now();
    if (last.now == 0 || u->now <= last.now)
        return 0;
    v[0] = (struct ddp__log_value){"cpu", 100 * (u->busy - last.busy) /
                                              (u->now - last.now) / cores};
    v[1] = (struct ddp__log_value){
        "proc.memory.rssMB", used * (double)sysconf(_SC_PAGE_SIZE) / (1 << 20)};
    v[2] = (struct ddp__log_value){"proc.memory.percent", 100 * used / pages};
    v[3] = (struct ddp__log_value){
        "memory_percent",
        100 * (1 - (double)sysconf(_SC_AVPHYS_PAGES) / pages)};
    return DDP__USAGE_VALUES;
}
