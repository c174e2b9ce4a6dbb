/* calibrate.c - "ddp-bench calibrate": times of operations for ddp-predict
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "calibrate.h"
#include "common/app.h"
#include "common/app_times.h"
#include "common/cores.h"
#include "profile.h"
#include "rows.h"
#include "runs.h"

static const char *const calibrated[] = {"f32", "bf16", NULL};

static const struct opt_group options = {
    "Options",
    (const struct opt[]){
        NETWORK_ROWS("resnet18"),
        DTYPE_ROW("f32", calibrated),
        SUB_BATCH_ROW("16"),
        WIDTHS("workers", counts, "N,...", NULL,
               "numbers of CPU workers that train together, each with a "
               "sub-batch [1, and one per core]",
               .letter = 'j'),
        INT("steps", steps, "10", 1, 1e6, "steps to measure"),
        INT("skip", skip, "2", 1, 1e6, "warm-up steps before them"),
        TEXT("output", output, "FILE", NULL,
             "file that the times are appended to [that of this machine, where "
             "imagenet looks for it]"),
        END,
    },
};

const struct opt_command bench_calibrate_command = {
    .name = "ddp-bench calibrate",
    .about =
        "Measure how long each operation of a training step takes on CPU "
        "workers, for the line time: of imagenet train and inspect, and for "
        "ddp-predict --times FILE.\n"
        "\n"
        "FILE is CSV: the number of workers that ran together, median "
        "microseconds, and the operation in the words of DDP_PROFILE. The "
        "operation \"task\" is what the runtime needs for a task. Of equal "
        "operations the last line holds, so a file can be extended by other "
        "networks and sizes. A line of JSON per number of workers has the "
        "step's median time, which the prediction can be compared with.",
    .group = (const struct opt_group *const[]){&options, NULL},
};

/* ---- the file ------------------------------------------------------------ */

static void write_row(FILE *f, int workers, const struct profile_row *r)
{
    const char *shapes = r->name;

    for (int commas = 0; *shapes && commas < 3; shapes++)
        commas += *shapes == ',';
    fprintf(f, "%d,%.3f,%.*s\"%s\"\n", workers, r->us, (int)(shapes - r->name),
            r->name, shapes);
}

/* What the runtime needs for a task: submission, scheduling, release. */
static double task_us(const struct ddp_stats *s)
{
    return s->tasks > 0 ? 1e6 * s->sched_s / (double)s->tasks : 0;
}

static int append_times(const char *path, int workers, const struct profile *p,
                        const struct bench_steps *all)
{
    FILE *f = fopen(path, "ae");
    bool good = f;

    if (f && ftell(f) == 0)
        fprintf(f, "workers,us,operation,samples,type,shapes\n");
    if (f)
        fprintf(f, "%d,%.3f,task,1,,\"\"\n", workers, task_us(&all->sums));
    for (int i = 0; f && i < p->rows; i++)
        write_row(f, workers, &p->row[i]);
    if (f)
        good = !(ferror(f) | fclose(f));
    if (good)
        return OPTS_GO;
    app_say("cannot write %s: %s", path, strerror(errno));
    return EXIT_WRITE;
}

/* ---- a number of workers ------------------------------------------------- */

static void print_line(const struct bench_settings *s, const struct profile *p,
                       const struct bench_steps *all)
{
    printf("{\"bench\":\"calibrate\",\"model\":");
    app_json_text(stdout, s->model);
    printf(",\"img_size\":%lld,\"dtype\":\"%s\",\"sub_batch\":%lld,"
           "\"workers\":%lld,\"operations\":%d,\"step_ms\":%.3f,"
           "\"kernels_ms\":%.3f,\"task_us\":%.2f,\"file\":",
           (long long)s->img_size, dtypes[s->dtype], (long long)s->sub_batch,
           (long long)s->workers, p->rows, 1e3 * all->step_s,
           1e3 * profile_seconds(p), task_us(&all->sums));
    app_json_text(stdout, s->output);
    printf("}\n");
}

static int calibrate(struct bench_settings s, int workers)
{
    struct bench_steps all = {0};
    struct profile p;
    int rc;

    s.workers = workers;
    rc = bench_profile(&s, &p, NULL, &all);
    if (rc == OPTS_GO)
        rc = append_times(s.output, workers, &p, &all);
    if (rc == OPTS_GO)
        print_line(&s, &p, &all);
    profile_free(&p);
    return rc;
}

static int calibrate_each(const struct bench_settings *s)
{
    int rc = OPTS_GO;

    for (const int *n = s->counts; rc == OPTS_GO && *n; n++)
        rc = calibrate(*s, *n);
    return rc == OPTS_GO ? 0 : rc;
}

/* In the file of this machine, whose folder is made. */
static int calibrate_machine(struct bench_settings s)
{
    int rc = EXIT_WRITE;
    char *end;

    if (!(s.output = app_times_place())) {
        app_say("there is no home folder for the times: use --output FILE");
        return rc;
    }
    end = strrchr(s.output, '/');
    *end = '\0';
    rc = app_make_dir(s.output);
    *end = '/';
    if (rc == 0)
        rc = calibrate_each(&s);
    free(s.output);
    return rc;
}

int bench_calibrate_run(struct opts *o, struct bench_settings *s)
{
    int all = app_cores();

    (void)o;
    setenv("STARPU_NCUDA", "0", 1); /* GPUs would train instead */
    unsetenv("STARPU_NCPU");        /* each run has another number */
    if (!s->counts[0]) {
        s->counts[0] = 1;
        s->counts[1] = all > 1 ? all : 0;
    }
    return s->output ? calibrate_each(s) : calibrate_machine(*s);
}
