/* report.c - "imagenet report": a page about one run or several
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/app.h"
#include "common/app_log.h"
#include "output.h"
#include "report.h"
#include "report_files.h"
#include "report_page.h"
#include "report_plot.h"

/* More curves than colours look the same. */
enum { MOST = 16 };

static void write_page(const void *report, FILE *f)
{
    report_page(report, f);
}

/* Where the page goes: into the folder of one run. */
static char *page_path(const struct settings *s)
{
    if (s->output)
        return strdup(s->output);
    return s->input[1] ? strdup("report.html")
                       : app_path(s->input[0], "report.html");
}

static int write_file(const struct report *r, char *path)
{
    char *slash = strrchr(path, '/'), *dir;
    int rc;

    dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    rc = dir ? output_write(dir, slash ? slash + 1 : path, write_page, r)
             : EXIT_MEMORY;
    if (rc == OPTS_GO)
        app_print("wrote %s\n", path);
    free(dir);
    return rc == OPTS_GO ? 0 : rc;
}

static int write_report(const struct report *r, const struct settings *s)
{
    char *path;
    int rc;

    if (s->plot)
        report_plot(r, stdout);
    if ((s->svg && (rc = report_files(r, s->svg, false))) ||
        (s->png && (rc = report_files(r, s->png, true))))
        return rc;
    if ((s->plot || s->svg || s->png) && !s->output)
        return 0;
    if (s->output && !strcmp(s->output, "-")) {
        report_page(r, stdout);
        return 0;
    }
    if (!(path = page_path(s)))
        return EXIT_MEMORY;
    rc = write_file(r, path);
    free(path);
    return rc;
}

static int count_runs(const struct opts *o, const struct settings *s)
{
    int n = 0;

    while (s->input && s->input[n])
        n++;
    if (n == 0)
        opt_complain(o, "name the folder of a run: %s RUN", o->cmd->name);
    if (n > MOST)
        opt_complain(o, "%d runs are too many to compare, at most %d", n, MOST);
    return n <= MOST ? n : 0;
}

/* Predictions that are asked for must be there. */
static int read_classes(struct report *r, const struct settings *s,
                        struct report_classes *c)
{
    char *path = s->predictions ? strdup(s->predictions)
                                : app_path(s->input[0], "predictions.jsonl");
    int rc = path ? OPTS_GO : EXIT_MEMORY;

    if (path && r->runs == 1 && (s->predictions || access(path, F_OK) == 0) &&
        (rc = report_classes_read(c, path)) == OPTS_GO)
        r->classes = c;
    free(path);
    return rc;
}

/* Of a single run that has a trace. */
static int read_timeline(struct report *r, struct report_timeline *t)
{
    char *path = r->runs == 1 ? app_path(r->run->dir, "trace.json") : NULL;
    int rc = OPTS_GO;

    if (path && access(path, F_OK) == 0) {
        rc = report_timeline_read(t, path);
        r->timeline = t;
    }
    free(path);
    return rc;
}

int report_run(struct opts *o, struct settings *s)
{
    struct report_run run[MOST] = {{0}};
    struct report_classes classes = {0};
    struct report_timeline timeline = {0};
    struct report r = {.run = run, .runs = count_runs(o, s)};
    int rc = r.runs ? OPTS_GO : EXIT_USAGE;

    for (int i = 0; rc == OPTS_GO && i < r.runs; i++)
        rc = report_run_read(&run[i], s->input[i]);
    if (rc == OPTS_GO)
        rc = opts_only(o, "predictions", r.runs == 1, "several runs");
    if (rc == OPTS_GO)
        rc = read_classes(&r, s, &classes);
    if (rc == OPTS_GO)
        rc = read_timeline(&r, &timeline);
    if (rc == OPTS_GO)
        rc = write_report(&r, s);
    report_classes_free(&classes);
    report_timeline_free(&timeline);
    for (int i = 0; i < r.runs; i++)
        report_run_free(&run[i]);
    return rc;
}
