/* record.c - metrics.jsonl and summary.csv of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "common/app.h"
#include "common/opt.h"
#include "record.h"

#define HEAD                                                                   \
    "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,train_top1,"            \
    "ema_loss,ema_top1,ema_top5,images_per_s,seconds\n"

/* ---- what an earlier process wrote --------------------------------------- */

/* What the run has done, of which lines stay. */
struct past {
    int64_t steps, evaluated, epochs;
    int64_t last; /* epoch that has a row; -1: none */
};

typedef bool stays_f(const char *line, struct past *p);

static bool line_stays(const char *line, struct past *p)
{
    json_t *o = json_loads(line, 0, NULL);
    const json_t *step = json_object_get(o, "step");
    const char *type = json_string_value(json_object_get(o, "type"));
    bool eval = type && !strcmp(type, "eval"), stays;

    stays = p->steps > 0 && type && json_is_integer(step) &&
            json_integer_value(step) <= (eval ? p->evaluated : p->steps);
    json_decref(o);
    return stays;
}

static bool row_stays(const char *line, struct past *p)
{
    char *end;
    long long epoch = strtoll(line, &end, 10);

    if (end == line || *end != ',' || epoch >= p->epochs)
        return false;
    p->last = epoch;
    return true;
}

/* The last line may have lost its end in a crash. */
static void copy_lines(FILE *from, FILE *to, stays_f *stays, struct past *p)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&line, &size, from)) > 0)
        if (line[len - 1] == '\n' && stays(line, p))
            fputs(line, to);
    free(line);
}

/* ---- files -------------------------------------------------------------- */

static void give_up(FILE **f, const char *path)
{
    app_say("cannot write %s: %s; the run goes on without it", path,
            strerror(errno));
    if (*f)
        fclose(*f);
    *f = NULL;
}

/* The file with `head` and what stays of the one that is there. */
static FILE *reopen(const char *path, const char *head, stays_f *stays,
                    struct past *p)
{
    char *temp;
    FILE *from, *to;

    if (asprintf(&temp, "%s.tmp", path) < 0)
        return NULL;
    to = fopen(temp, "w");
    from = to ? fopen(path, "r") : NULL;
    if (to)
        fputs(head, to);
    if (from)
        copy_lines(from, to, stays, p);
    if (!to || fflush(to) != 0 || rename(temp, path) != 0) {
        give_up(&to, path);
        unlink(temp);
    }
    if (from)
        fclose(from);
    free(temp);
    return to;
}

int record_open(struct record *r, const char *dir, const ddp_trainer_t *t,
                const struct ddp_checkpoint *c)
{
    struct past p = {.steps = c->step,
                     .evaluated = c->evaluated,
                     .epochs = c->step / ddp_trainer_epoch_steps(t),
                     .last = -1};

    r->trainer = t;
    r->steps_path = app_path(dir, "metrics.jsonl");
    r->epochs_path = app_path(dir, "summary.csv");
    if (!r->steps_path || !r->epochs_path)
        return EXIT_MEMORY;
    r->steps = reopen(r->steps_path, "", line_stays, &p);
    r->epochs = reopen(r->epochs_path, HEAD, row_stays, &p);
    r->epoch = p.last;
    return OPTS_GO;
}

void record_close(struct record *r)
{
    if (r->steps && fclose(r->steps) != 0)
        app_say("cannot write %s: %s", r->steps_path, strerror(errno));
    if (r->epochs && fclose(r->epochs) != 0)
        app_say("cannot write %s: %s", r->epochs_path, strerror(errno));
    free(r->steps_path);
    free(r->epochs_path);
}

/* ---- events ------------------------------------------------------------- */

/* What is not finite is null: JSON has no such numbers. */
static json_t *real(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

/* Write o, which is given up. */
static void write_line(struct record *r, json_t *o)
{
    if (r->steps && o &&
        (json_dumpf(o, r->steps, JSON_COMPACT | JSON_REAL_PRECISION(9)) < 0 ||
         fputc('\n', r->steps) == EOF || fflush(r->steps) != 0))
        give_up(&r->steps, r->steps_path);
    json_decref(o);
}

static json_t *event(const char *type, int64_t step)
{
    return json_pack("{s:s, s:I}", "type", type, "step", (json_int_t)step);
}

static void add_metrics(json_t *o, const struct ddp_metrics *m)
{
    json_object_set_new(o, "samples", json_integer(m->samples));
    json_object_set_new(o, "loss", real(m->loss));
    json_object_set_new(o, "top1", real(m->top1));
    json_object_set_new(o, "top5", real(m->top5));
}

static void add_time(json_t *o)
{
    time_t now = time(NULL);
    char text[32] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_object_set_new(o, "time", json_string(text));
}

static void on_run(const ddp_trainer_t *t, void *arg)
{
    const struct ddp_train_config *c = ddp_trainer_config(t);
    json_t *o = event("run", ddp_trainer_steps(t));

    add_time(o);
    json_object_set_new(o, "version", json_string(ddp_version()));
    json_object_set_new(o, "batch", json_integer(c->batch));
    json_object_set_new(o, "sub_batch", json_integer(c->sub_batch));
    json_object_set_new(o, "lanes", json_integer(c->lanes));
    json_object_set_new(o, "epoch_steps",
                        json_integer(ddp_trainer_epoch_steps(t)));
    write_line(arg, o);
}

static void on_step(const struct ddp_progress *p, void *arg)
{
    json_t *o = event("step", p->step);

    json_object_set_new(o, "epoch", real((double)p->epoch + p->epoch_share));
    add_metrics(o, &p->now);
    json_object_set_new(o, "lr", real(p->lr));
    json_object_set_new(o, "seconds", real(p->seconds));
    json_object_set_new(o, "step_seconds", real(p->step_seconds));
    json_object_set_new(o, "images_per_s", real(p->samples_per_s));
    json_object_set_new(o, "data_share", real(p->data_share));
    if (p->why)
        json_object_set_new(o, "skipped", json_string(p->why));
    write_line(arg, o);
}

static void on_eval(const struct ddp_evaluation *e, void *arg)
{
    json_t *o = event("eval", e->step);

    json_object_set_new(o, "averages", json_boolean(e->averages));
    add_metrics(o, &e->result);
    json_object_set_new(o, "seconds", real(e->seconds));
    write_line(arg, o);
}

static void on_checkpoint(int64_t step, void *arg)
{
    write_line(arg, event("checkpoint", step));
}

static void on_end(int rc, void *arg)
{
    struct record *r = arg;
    json_t *o = event("end", ddp_trainer_steps(r->trainer));

    add_time(o);
    json_object_set_new(o, "reason",
                        json_string(rc < 0 ? ddp_errmsg() : "complete"));
    write_line(r, o);
}

struct ddp_sink record_sink(struct record *r)
{
    return (struct ddp_sink){.on_run = on_run,
                             .on_step = on_step,
                             .on_eval = on_eval,
                             .on_checkpoint = on_checkpoint,
                             .on_end = on_end,
                             .arg = r};
}

/* ---- rows --------------------------------------------------------------- */

/* timm has percents; nothing for what was not measured. */
static void put_metrics(FILE *f, const struct ddp_metrics *m)
{
    if (m)
        fprintf(f, ",%.6g,%.4f,%.4f", m->loss, 100 * m->top1, 100 * m->top5);
    else
        fputs(",,,", f);
}

/* 0: it is not known, since an earlier process made the epoch's last step. */
static void put_number(FILE *f, double v)
{
    fputc(',', f);
    if (v > 0)
        fprintf(f, "%.9g", v);
}

void record_epoch(struct record *r, const struct ddp_progress *p,
                  const struct ddp_metrics *result,
                  const struct ddp_metrics *averages)
{
    if (!r->epochs || p->epoch <= r->epoch)
        return;
    r->epoch = p->epoch;
    fprintf(r->epochs, "%lld,%.6g", (long long)p->epoch, p->epoch_mean.loss);
    put_metrics(r->epochs, result);
    put_number(r->epochs, p->lr);
    fprintf(r->epochs, ",%.4f", 100 * p->epoch_mean.top1);
    put_metrics(r->epochs, averages);
    put_number(r->epochs, p->samples_per_s);
    put_number(r->epochs, p->seconds);
    fputc('\n', r->epochs);
    if (fflush(r->epochs) != 0)
        give_up(&r->epochs, r->epochs_path);
}
