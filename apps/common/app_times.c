/* app_times.c - the file of ddp-bench calibrate
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddp.h"

#include "app.h"
#include "app_fail.h"
#include "app_times.h"

struct time_row {
    int workers;
    double us;
    struct ddp_operation o; /* its words are in the line */
};

/* workers,us,operation,samples,type,"shapes"; false: it is another line. */
static bool parse_row(char *line, struct time_row *r)
{
    char *word[6], *rest = line;

    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < 6; i++)
        if (!(word[i] = i < 5 ? strsep(&rest, ",") : rest))
            return false;
    if (word[5][0] == '"')
        word[5]++;
    word[5][strcspn(word[5], "\"")] = '\0';
    *r = (struct time_row){.workers = atoi(word[0]),
                           .us = atof(word[1]),
                           .o = {.name = word[2],
                                 .samples = atoi(word[3]),
                                 .type = word[4],
                                 .shapes = word[5]}};
    return r->workers > 0 && r->us >= 0;
}

/* Whether times of `a` workers say more about a machine of n than those of b:
 * the most that it has, or the least. */
static bool is_closer(int a, int b, int n)
{
    return b == 0 || (a <= n ? a > b || b > n : b > n && a < b);
}

/* The number of workers to take times of; 0: there is none. */
static int choose_workers(FILE *f, int devices)
{
    struct time_row r;
    char line[512];
    int best = 0;

    rewind(f);
    while (fgets(line, sizeof(line), f))
        if (parse_row(line, &r) && is_closer(r.workers, best, devices))
            best = r.workers;
    return best;
}

/* Those of so many workers, or those of all others. */
static int set_times(FILE *f, int workers, bool others)
{
    struct time_row r;
    char line[512];
    int rc = 0;

    rewind(f);
    while (rc == 0 && fgets(line, sizeof(line), f))
        if (parse_row(line, &r) && (r.workers == workers) != others)
            rc = ddp_operation_set_time(&r.o, 1e-6 * r.us);
    return rc;
}

int app_times_read(const char *path, int workers)
{
    FILE *f = app_open_text(path);
    int best, rc;

    if (!f && errno == ENOENT)
        app_say("%s does not exist", path);
    if (!f)
        return EXIT_WRITE;
    best = choose_workers(f, workers);
    rc = set_times(f, best, true);
    if (rc == 0)
        rc = set_times(f, best, false);
    fclose(f);
    if (best)
        return rc < 0 ? app_fail(rc) : 0;
    app_say("%s: there is no line of ddp-bench calibrate in it", path);
    return EXIT_DATA;
}

/* Homes are shared by machines. */
char *app_times_place(void)
{
    const char *base = getenv("XDG_CACHE_HOME"), *below = "";
    char host[256] = "";

    if (!base || *base != '/') {
        base = getenv("HOME");
        below = ".cache/";
    }
    if (!base || *base != '/' || gethostname(host, sizeof(host) - 1) < 0)
        return NULL;
    return app_path(base, "%slibddp/times/%s.csv", below, host);
}
