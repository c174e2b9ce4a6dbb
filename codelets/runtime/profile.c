/* profile.c - the time of each operation on CPU workers, as a table in a file
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each line is written when its call has ended, so that a run of any length
 * needs no memory for them; stdio's lock keeps lines of workers apart.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/profile.h"
#include "runtime/task_group.h"

static struct {
    FILE *file; /* owned; NULL: no profile */
    double start;
} profile;

int ddp__profile_open(void)
{
    const char *path = getenv("DDP_PROFILE");

    if (!path || !*path)
        return 0;
    if (!(profile.file = fopen(path, "we")))
        return ddp__fail(DDP_EIO, "DDP_PROFILE: cannot write %s: %s", path,
                         strerror(errno));
    profile.start = ddp__now();
    fprintf(profile.file, "worker,start_ms,ms,operation,samples,type,shapes\n");
    return 0;
}

void ddp__profile_close(void)
{
    if (profile.file)
        fclose(profile.file);
    profile.file = NULL;
}

double ddp__profile_begin(void)
{
    return profile.file ? ddp__now() : 0;
}

void ddp__profile_end(const struct ddp__task *t, int worker, double begin)
{
    double end = ddp__profile_begin();
    char shapes[128];

    if (!profile.file)
        return;
    ddp__call_describe(t->call, shapes, sizeof(shapes));
    fprintf(profile.file, "%d,%.4f,%.4f,%s,%d,%s,\"%s\"\n", worker,
            1e3 * (begin - profile.start), 1e3 * (end - begin),
            ddp__signature[t->call->op].name, t->n, ddp__call_type(t->call),
            shapes);
}
