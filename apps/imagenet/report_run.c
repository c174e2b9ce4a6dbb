/* report_run.c - what the folder of a run says of it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/app.h"
#include "common/opt.h"
#include "progress.h"
#include "report_run.h"

/* ---- curves ------------------------------------------------------------- */

static bool add_row(struct report_curve *c)
{
    int room = c->room ? 2 * c->room : 256;

    for (int k = 0; k < COLUMNS && c->n == c->room; k++) {
        double *more = realloc(c->at[k], (size_t)room * sizeof(*more));

        if (!more)
            return false;
        c->at[k] = more;
    }
    if (c->n == c->room)
        c->room = room;
    for (int k = 0; k < COLUMNS; k++)
        c->at[k][c->n] = NAN;
    c->n++;
    return true;
}

static double number(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

static double mean_of(const json_t *list)
{
    double sum = 0;
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++)
        sum += json_number_value(json_array_get(list, i));
    return n ? sum / (double)n : NAN;
}

static void set_row(struct report_curve *c, enum report_column k, double v)
{
    c->at[k][c->n - 1] = v;
}

/* ---- metrics.jsonl ------------------------------------------------------ */

static double epoch_of(const struct report_run *r, int64_t step)
{
    return r->epoch_steps ? (double)step / (double)r->epoch_steps
                          : (double)step;
}

static bool add_step(struct report_run *r, const json_t *o, int64_t step)
{
    struct report_curve *c = &r->step;

    if (!add_row(c))
        return false;
    set_row(c, COLUMN_EPOCH, epoch_of(r, step));
    set_row(c, COLUMN_LOSS, number(o, "loss"));
    set_row(c, COLUMN_TOP1, 100 * number(o, "top1"));
    set_row(c, COLUMN_LR, number(o, "lr"));
    set_row(c, COLUMN_NORM, number(o, "gradient_norm"));
    set_row(c, COLUMN_SPEED, number(o, "images_per_s"));
    set_row(c, COLUMN_DATA, 100 * number(o, "data_share"));
    set_row(c, COLUMN_BUSY, 100 * mean_of(json_object_get(o, "busy")));
    set_row(c, COLUMN_MEMORY, number(o, "memory_peak") / (1 << 20));
    r->steps = step;
    r->skipped += json_object_get(o, "skipped") != NULL;
    if (isfinite(number(o, "seconds")))
        r->seconds = number(o, "seconds");
    return true;
}

static bool is_better(const struct report_eval *a, const struct report_eval *b)
{
    return b->step == 0 || a->top1 > b->top1 ||
           (a->top1 == b->top1 && a->loss < b->loss);
}

static bool add_eval(struct report_run *r, const json_t *o, int64_t step)
{
    bool averages = json_is_true(json_object_get(o, "averages"));
    struct report_curve *c = averages ? &r->ema : &r->eval;
    const struct report_eval e = {epoch_of(r, step), number(o, "loss"),
                                  100 * number(o, "top1"),
                                  100 * number(o, "top5"), step};

    if (!add_row(c))
        return false;
    set_row(c, COLUMN_EPOCH, e.epoch);
    set_row(c, COLUMN_LOSS, e.loss);
    set_row(c, COLUMN_TOP1, e.top1);
    if (averages)
        return true;
    r->last = e;
    if (is_better(&e, &r->best))
        r->best = e;
    return true;
}

static bool add_line(struct report_run *r, const json_t *o)
{
    const char *type = report_text(o, "type");
    int64_t step = json_integer_value(json_object_get(o, "step"));

    if (!strcmp(type, "run"))
        r->epoch_steps = json_integer_value(json_object_get(o, "epoch_steps"));
    if (!strcmp(type, "end") || !strcmp(type, "run")) {
        free(r->reason);
        r->reason =
            *report_text(o, "reason") ? strdup(report_text(o, "reason")) : NULL;
    }
    if (!strcmp(type, "step"))
        return add_step(r, o, step);
    return strcmp(type, "eval") != 0 || add_eval(r, o, step);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of what is known. */
static double median(const double *v, int n)
{
    double *copy = calloc((size_t)n + 1, sizeof(*copy)), m;
    int known = 0;

    for (int i = 0; copy && i < n; i++)
        if (isfinite(v[i]) && v[i] > 0)
            copy[known++] = v[i];
    if (copy)
        qsort(copy, (size_t)known, sizeof(*copy), by_size);
    m = known ? copy[known / 2] : NAN;
    free(copy);
    return m;
}

/* A long run has gigabytes of them. */
static bool read_lines(struct report_run *r, FILE *f)
{
    struct stat st;
    struct work work;
    char *line = NULL;
    size_t size = 0;
    int64_t done = 0, count = fstat(fileno(f), &st) == 0 ? st.st_size : 0;
    bool room = true;
    ssize_t n;

    work_begin(&work, r->dir, false);
    work.unit = "KiB";
    while (room && (n = getline(&line, &size, f)) > 0) {
        json_t *o = json_loads(line, 0, NULL);

        room = add_line(r, o);
        json_decref(o);
        done += n;
        work_count(done / 1024, count / 1024, &work);
    }
    work_clear(&work);
    free(line);
    return room;
}

static int read_metrics(struct report_run *r, const char *path)
{
    FILE *f = app_open_text(path);
    bool room;

    if (!f && errno == ENOENT)
        app_say("%s does not exist: %s is not the folder of a run", path,
                r->dir);
    if (!f)
        return EXIT_USAGE;
    room = read_lines(r, f);
    fclose(f);
    r->speed = median(r->step.at[COLUMN_SPEED], r->step.n);
    if (!room)
        app_say("out of memory for %s", path);
    return room ? OPTS_GO : EXIT_MEMORY;
}

/* ---- run.json, config.txt ----------------------------------------------- */

/* Of a run before there was a run.json. */
static json_t *read_config(const char *path)
{
    FILE *f = fopen(path, "r");
    json_t *all = json_object();
    char *line = NULL, *eq;
    size_t size = 0;

    while (f && getline(&line, &size, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (!(eq = strstr(line, " = ")))
            continue;
        *eq = '\0';
        json_object_set_new(all, line, eq[3] ? json_string(eq + 3) : NULL);
    }
    free(line);
    if (f)
        fclose(f);
    return all;
}

static int read_files(struct report_run *r)
{
    char *metrics = app_path(r->dir, "metrics.jsonl");
    char *file = app_path(r->dir, "run.json");
    char *config = app_path(r->dir, "config.txt");
    int rc = metrics && file && config ? read_metrics(r, metrics) : EXIT_MEMORY;

    if (rc == OPTS_GO) {
        r->file = json_load_file(file, 0, NULL);
        r->settings = json_object_get(r->file, "settings");
        r->settings = json_is_object(r->settings) ? json_incref(r->settings)
                                                  : read_config(config);
    }
    free(metrics);
    free(file);
    free(config);
    return rc;
}

static char *name_of(const char *dir)
{
    size_t len = strlen(dir), begin;

    while (len > 1 && dir[len - 1] == '/')
        len--;
    for (begin = len; begin > 0 && dir[begin - 1] != '/';)
        begin--;
    return strndup(dir + begin, len - begin);
}

int report_run_read(struct report_run *r, const char *dir)
{
    *r = (struct report_run){.dir = dir, .name = name_of(dir)};
    if (!r->name)
        return EXIT_MEMORY;
    return read_files(r);
}

void report_run_free(struct report_run *r)
{
    struct report_curve *all[] = {&r->step, &r->eval, &r->ema};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        for (int k = 0; k < COLUMNS; k++)
            free(all[i]->at[k]);
    json_decref(r->settings);
    json_decref(r->file);
    free(r->name);
    free(r->reason);
}

const json_t *report_run_segment(const struct report_run *r)
{
    const json_t *all = json_object_get(r->file, "segments");

    return json_array_get(all, json_array_size(all) - 1);
}

const char *report_text(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}
