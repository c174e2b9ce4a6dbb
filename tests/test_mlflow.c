/* test_mlflow.c - file stores of MLflow: names, and what a run that resumes
 * leaves of its values
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * tests/app_board.sh has the package read such a store.
 */
#include "config.h"

#include <glob.h>
#include <stdio.h>
#include <unistd.h>

#include "tap.h"
#include "train/log.h"

static char dir[] = "/tmp/ddp-mlflow-XXXXXX";

/* The only file that matches below the store's runs; NULL: there is none, or
 * there are several. */
static char *find(const char *name)
{
    char *pattern, *path = NULL;
    glob_t g;

    if (asprintf(&pattern, "%s/0/*/%s", dir, name) < 0)
        bail_out("out of memory");
    if (glob(pattern, 0, NULL, &g) == 0) {
        if (g.gl_pathc == 1)
            path = strdup(g.gl_pathv[0]);
        globfree(&g);
    }
    free(pattern);
    return path;
}

/* The steps in a file of values, as text. */
static const char *steps_of(const char *name)
{
    static char text[256];
    char *path = find(name), line[128];
    FILE *f = path ? fopen(path, "r") : NULL;
    long long step;

    text[0] = '\0';
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %*s %lld\n", &step) == 1)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " %lld",
                     step);
    if (f)
        fclose(f);
    free(path);
    return text;
}

/* A run that begins, or resumes, at the first of these steps. */
static void log_steps(const char *tag, int64_t from, int64_t to)
{
    ddp_log_t *l = ddp_log_new(DDP_LOG_MLFLOW, dir);

    for (int64_t i = from; i <= to; i++)
        if (ddp_log_scalar(l, tag, i, 1.0 / (double)i) < 0)
            bail_out("%s", ddp_errmsg());
    ddp_log_free(l);
}

static void append(const char *name, const char *text)
{
    char *path = find(name);
    FILE *f = path ? fopen(path, "a") : NULL;

    if (!f || fputs(text, f) == EOF || fclose(f) != 0)
        bail_out("cannot write %s", name);
    free(path);
}

static void test_resume(void)
{
    log_steps("a/v", 1, 3);
    is_str(steps_of("metrics/a/v"), " 1 2 3", "a value has a line per step");
    log_steps("w", 3, 4);
    is_str(steps_of("metrics/w"), " 3 4", "another has its own file");
    append("metrics/a/v", "1795519519253 0.5");
    log_steps("x", 2, 2);
    is_str(steps_of("metrics/a/v"), " 1 2",
           "a run that resumes drops later steps and a torn line");
    ok(!find("metrics/w"), "and a file that would be empty");
    append("metrics/a/v", "damaged\n1795519519253 0.5 2\n");
    log_steps("x", 3, 3);
    is_str(steps_of("metrics/a/v"), " 1 2", "and what follows a damaged line");
}

static void test_names(void)
{
    ddp_log_t *l = ddp_log_new(DDP_LOG_MLFLOW, dir);
    char *path;

    ddp_log_set(l, "a=b\xc3\xa9", "0.1");
    is_int(ddp_log_scalar(l, "top-1 (%)", 5, 1), 0, "a tag of signs is taken");
    ok((path = find("metrics/top-1 ___")), "the file has others for them");
    free(path);
    ok((path = find("params/a_b__")), "as that of a setting");
    free(path);
    is_int(ddp_log_scalar(l, "../../../../v", 5, 1), DDP_EINVAL,
           "a tag outside of the run is refused");
    ok(strstr(ddp_errmsg(), "cannot name a file in a log for MLflow"),
       "the message says so");
    ddp_log_free(l);
}

int main(void)
{
    char *remove;

    if (!mkdtemp(dir))
        bail_out("no folder under /tmp");
    test_resume();
    test_names();
    if (asprintf(&remove, "rm -rf '%s'", dir) < 0 || system(remove) != 0)
        bail_out("cannot remove %s", dir);
    free(remove);
    return done_testing();
}
