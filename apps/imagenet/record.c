/* record.c - metrics.jsonl and summary.csv of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "common/app.h"
#include "common/app_command.h"
#include "common/app_log.h"
#include "common/opt.h"
#include "common/start_clock.h"
#include "image_cache.h"
#include "record.h"

#define HEAD                                                                   \
    "epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,train_top1,"            \
    "ema_loss,ema_top1,ema_top5,images_per_s,seconds\n"

/* ---- what an earlier process wrote --------------------------------------- */

static bool line_stays(const char *line, void *arg)
{
    const struct past *p = arg;
    json_t *o = json_loads(line, 0, NULL);
    const json_t *step = json_object_get(o, "step");
    const char *type = json_string_value(json_object_get(o, "type"));
    bool eval = type && !strcmp(type, "eval"), keeps;

    keeps = p->steps > 0 && type && json_is_integer(step) &&
            json_integer_value(step) <= (eval ? p->evaluated : p->steps);
    json_decref(o);
    return keeps;
}

static bool row_stays(const char *line, void *arg)
{
    struct past *p = arg;
    char *end;
    long long epoch = strtoll(line, &end, 10);

    if (end == line || *end != ',' || epoch >= p->epochs)
        return false;
    p->last = epoch;
    return true;
}

/* Lines of no step stay. */
static bool said_stays(const char *line, void *arg)
{
    const struct past *p = arg;
    long long step;

    if (p->steps == 0)
        return false;
    if (sscanf(line, "eval step=%lld", &step) == 1)
        return step <= p->evaluated;
    if (sscanf(line, "epoch=%lld/", &step) == 1)
        return step <= p->epochs;
    return (sscanf(line, "step=%lld", &step) != 1 &&
            sscanf(line, "imagenet train: step %lld skipped", &step) != 1) ||
           step <= p->steps;
}

/* ---- files -------------------------------------------------------------- */

static void put_said(const char *line, void *arg)
{
    char *clean = app_redact(line);

    if (clean)
        lines_put(arg, clean);
    free(clean);
}

int record_open(struct record *r, const char *dir, const ddp_trainer_t *t,
                const struct ddp_checkpoint *c)
{
    struct past *p = &r->past;

    *p = (struct past){.steps = c->step,
                       .evaluated = c->evaluated,
                       .epochs = c->step / ddp_trainer_epoch_steps(t),
                       .last = -1};
    r->trainer = t;
    if (!lines_open(&r->steps, dir, "metrics.jsonl", "", line_stays, p) ||
        !lines_open(&r->epochs, dir, "summary.csv", HEAD, row_stays, p) ||
        !lines_open(&r->log, dir, "log.txt", "", said_stays, p))
        return EXIT_MEMORY;
    r->epoch = p->last;
    app_log_to(put_said, &r->log);
    return OPTS_GO;
}

void record_close(struct record *r)
{
    app_log_end();
    lines_close(&r->steps);
    lines_close(&r->epochs);
    lines_close(&r->log);
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
    char *line =
        o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;

    if (line)
        lines_put(&r->steps, line);
    free(line);
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

/* Lines that could not be written, of all files. */
static void retry(struct record *r)
{
    int64_t lost = lines_retry(&r->steps);
    json_t *o;
    char text[64];

    if (lost) {
        o = event("missing", ddp_trainer_steps(r->trainer));
        json_object_set_new(o, "lines", json_integer(lost));
        write_line(r, o);
    }
    lines_retry(&r->epochs);
    if ((lost = lines_retry(&r->log))) {
        snprintf(text, sizeof(text), "%lld lines are missing here",
                 (long long)lost);
        lines_put(&r->log, text);
    }
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

static json_t *shares(const struct ddp_progress *p)
{
    json_t *list = json_array();

    for (int i = 0; i < p->workers; i++)
        json_array_append_new(list, real(round(1e4 * p->busy[i]) / 1e4));
    return list;
}

/* Milliseconds of all workers together. */
static json_t *parts(const struct ddp_progress *p)
{
    static const char *const name[DDP_STEP_PARTS] = {
        [DDP_PART_INPUT] = "input",       [DDP_PART_FORWARD] = "forward",
        [DDP_PART_BACKWARD] = "backward", [DDP_PART_MERGE] = "merge",
        [DDP_PART_UPDATE] = "update",
    };
    json_t *o = json_object();

    for (int i = 0; i < DDP_STEP_PARTS; i++)
        json_object_set_new(o, name[i],
                            real(round(1e6 * p->part_seconds[i]) / 1e3));
    return o;
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
    if (image_cache_hits() >= 0)
        json_object_set_new(o, "cache_hits", real(image_cache_hits()));
    json_object_set_new(o, "gradient_norm", real(p->gradient_norm));
    json_object_set_new(o, "loss_scale", real(p->loss_scale));
    json_object_set_new(o, "skipped_steps", json_integer(p->skipped));
    json_object_set_new(o, "memory_peak",
                        json_integer((json_int_t)p->memory_peak));
    json_object_set_new(o, "busy", shares(p));
    json_object_set_new(o, "part_ms", parts(p));
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
    char *why = app_redact(rc < 0 ? ddp_errmsg() : "complete");

    if (rc < 0 && rc != DDP_ESTOPPED && why)
        snprintf(r->why, sizeof(r->why), "%s", why);
    add_time(o);
    json_object_set_new(o, "reason", why ? json_string(why) : NULL);
    free(why);
    retry(r);
    write_line(r, o);
}

void record_weights(struct record *r, int64_t step, double norm)
{
    json_t *o = event("weights", step);

    json_object_set_new(o, "norm", real(norm));
    write_line(r, o);
}

void record_start(struct record *r, int64_t step)
{
    const struct start_part *part;
    json_t *o = event("start", step), *ms = json_object();
    double sum = 0;

    for (int n = start_parts(&part); n > 0; n--, part++) {
        json_object_set_new(ms, part->name,
                            real(round(1e4 * part->seconds) / 10));
        sum += part->seconds;
    }
    json_object_set_new(o, "seconds", real(sum));
    json_object_set_new(o, "part_ms", ms);
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

static void put_row(FILE *f, const struct ddp_progress *p,
                    const struct ddp_metrics *result,
                    const struct ddp_metrics *averages)
{
    fprintf(f, "%lld,%.6g", (long long)p->epoch, p->epoch_mean.loss);
    put_metrics(f, result);
    put_number(f, p->lr);
    fprintf(f, ",%.4f", 100 * p->epoch_mean.top1);
    put_metrics(f, averages);
    put_number(f, p->samples_per_s);
    put_number(f, p->seconds);
}

bool record_epoch(struct record *r, const struct ddp_progress *p,
                  const struct ddp_metrics *result,
                  const struct ddp_metrics *averages)
{
    char row[512] = "";
    FILE *f;

    if (!r->epochs.path || p->epoch <= r->epoch)
        return false;
    r->epoch = p->epoch;
    retry(r);
    if (!(f = fmemopen(row, sizeof(row), "w")))
        return true;
    put_row(f, p, result, averages);
    fclose(f);
    lines_put(&r->epochs, row);
    return true;
}
