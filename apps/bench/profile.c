/* profile.c - the table that DDP_PROFILE writes, by operation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "common/app.h"
#include "common/app_fail.h"
#include "measure.h"
#include "profile.h"

static struct profile_row *find_row(const struct profile *p, const char *name)
{
    for (int i = 0; i < p->rows; i++)
        if (strcmp(p->row[i].name, name) == 0)
            return &p->row[i];
    return NULL;
}

const struct profile_row *profile_find(const struct profile *p,
                                       const char *name)
{
    return find_row(p, name);
}

/* The row of that name, made if need be; NULL: no memory. */
static struct profile_row *get_row(struct profile *p, const char *name)
{
    struct profile_row *r = find_row(p, name), *more;

    if (r)
        return r;
    if (p->rows == p->room) {
        int room = p->room ? 2 * p->room : 64;

        if (!(more = realloc(p->row, (size_t)room * sizeof(*more))))
            return NULL;
        p->row = more;
        p->room = room;
    }
    r = &p->row[p->rows++];
    *r = (struct profile_row){.us = 0};
    snprintf(r->name, sizeof(r->name), "%s", name);
    return r;
}

static bool add_run(struct profile_row *r, double us)
{
    if (r->runs == r->room) {
        int64_t room = r->room ? 2 * r->room : 16;
        double *more = realloc(r->all, (size_t)room * sizeof(*more));

        if (!more)
            return false;
        r->all = more;
        r->room = room;
    }
    r->all[r->runs++] = us;
    return true;
}

/* gpu,start_ms,ms,operation,samples,type,"shapes" */
static bool add_line(struct profile *p, char *line)
{
    struct profile_row *r;
    char *ms, *name, *to;

    line[strcspn(line, "\n")] = '\0';
    if (!(ms = strchr(line, ',')) || !(ms = strchr(ms + 1, ',')) ||
        !(name = strchr(ms + 1, ',')))
        return true; /* not one of ours */
    for (char *from = to = ++name; (*to = *from); from++)
        to += *from != '"';
    r = get_row(p, name);
    return r && add_run(r, 1e3 * atof(ms + 1));
}

int profile_read(struct profile *p, const char *path, double steps)
{
    FILE *f = app_open_text(path);
    char line[512];
    bool good = f && fgets(line, sizeof(line), f); /* the heading */

    *p = (struct profile){.row = NULL};
    if (!good) {
        app_say("there is no profile in %s", path);
        if (f)
            fclose(f);
        return EXIT_FAILURE;
    }
    while (good && fgets(line, sizeof(line), f))
        good = add_line(p, line);
    fclose(f);
    for (int i = 0; i < p->rows; i++) {
        p->row[i].times = (double)p->row[i].runs / steps;
        p->row[i].us = bench_median(p->row[i].all, p->row[i].runs);
    }
    return good ? 0 : app_exit_code(DDP_ENOMEM);
}

void profile_free(struct profile *p)
{
    for (int i = 0; i < p->rows; i++)
        free(p->row[i].all);
    free(p->row);
    *p = (struct profile){.row = NULL};
}

double profile_seconds(const struct profile *p)
{
    double sum = 0;

    for (int i = 0; i < p->rows; i++)
        sum += 1e-6 * p->row[i].us * p->row[i].times;
    return sum;
}
