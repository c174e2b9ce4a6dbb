/* log_wandb.c - a log as an offline run of Weights & Biases
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A run is a folder with a file of records, which the package's "wandb sync"
 * uploads.  Values of one step make a row of its history.  It is written when
 * the next one begins or a checkpoint has that step: what is lost in a crash is
 * made again.  A run that resumes cuts off later rows and how it ended.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "train/log_files.h"
#include "train/log_wandb.h"
#include "train/wandb_items.h"
#include "train/wandb_machine.h"
#include "train/wandb_run.h"

/* Fields of StatsRecord and RunExitRecord. */
enum { STATS_TIME = 2, STATS_ITEM = 3, EXIT_STATUS = 1, EXIT_RUNTIME = 2 };

/* Seconds between samples of what the process uses. */
enum { USAGE_SECONDS = 10 };

struct wandb {
    struct ddp__wandb_file file;
    struct ddp__proto row; /* of `step`; empty: none */
    int64_t step;
    double start; /* of the run, seconds since 1970 */
    /* The last values, for the summary. */
    struct ddp__log_value *last; /* owned, as are its tags */
    int lasts;
    struct ddp__usage usage;
    /* Where records about the end are, once there are some. */
    bool ended;
    int code;
    off_t end;
    uint64_t end_count;
};

/* ---- values ------------------------------------------------------------- */

/* Of a row or summary. */
static void add(struct ddp__proto *p, const char *name, double v)
{
    ddp__wandb_number(p, DDP__WANDB_ITEM, DDP__WANDB_NESTED_KEY, name, v);
}

/* What the package itself adds to each row. */
static void add_times(const struct wandb *w, struct ddp__proto *p, int64_t step)
{
    double now = ddp__log_now();

    add(p, "_step", (double)step);
    add(p, "_runtime", now - w->start);
    add(p, "_timestamp", now);
}

static int remember(struct wandb *w, const struct ddp__log_value *v)
{
    struct ddp__log_value *more;
    char *tag;
    int i;

    for (i = 0; i < w->lasts; i++)
        if (!strcmp(w->last[i].tag, v->tag)) {
            w->last[i].v = v->v;
            return 0;
        }
    more = realloc(w->last, (size_t)(i + 1) * sizeof(*more));
    if (more)
        w->last = more;
    if (!more || !(tag = strdup(v->tag)))
        return ddp__fail(DDP_ENOMEM, "out of memory for a log");
    w->last[w->lasts++] = (struct ddp__log_value){tag, v->v};
    return 0;
}

/* ---- records ------------------------------------------------------------ */

static int write_usage(struct wandb *w, bool due)
{
    struct ddp__log_value v[DDP__USAGE_VALUES];
    struct ddp__usage last = w->usage;
    struct ddp__proto p = {0};
    int n, rc = 0;

    if (!due && ddp__clock() < last.now + USAGE_SECONDS)
        return 0;
    if ((n = ddp__wandb_usage(&w->usage, v)) > 0) {
        ddp__wandb_time(&p, STATS_TIME, ddp__log_now());
        for (int i = 0; i < n; i++)
            ddp__wandb_number(&p, STATS_ITEM, DDP__WANDB_KEY, v[i].tag, v[i].v);
        rc = ddp__wandb_write(&w->file, DDP__WANDB_STATS, &p);
        ddp__proto_free(&p);
    }
    return rc;
}

/* The row, if there is one. */
static int flush(struct wandb *w)
{
    struct ddp__proto step = {0};
    int rc;

    if (w->row.len == 0)
        return 0;
    add_times(w, &w->row, w->step);
    ddp__proto_int(&step, DDP__WANDB_NUMBER, (uint64_t)w->step);
    ddp__proto_message(&w->row, DDP__WANDB_STEP, &step);
    ddp__proto_free(&step);
    rc = ddp__wandb_write(&w->file, DDP__WANDB_HISTORY, &w->row);
    return rc == 0 ? write_usage(w, false) : rc;
}

/* Seconds that the package shows as the run's. */
static void add_runtime(const struct wandb *w, struct ddp__proto *p)
{
    struct ddp__proto item = {0};
    char json[32];

    snprintf(json, sizeof(json), "%.0f", ddp__log_now() - w->start);
    ddp__proto_text(&item, DDP__WANDB_NESTED_KEY, "_wandb");
    ddp__proto_text(&item, DDP__WANDB_NESTED_KEY, "runtime");
    ddp__proto_text(&item, DDP__WANDB_VALUE_JSON, json);
    ddp__proto_message(p, DDP__WANDB_ITEM, &item);
    ddp__proto_free(&item);
}

static int write_summary(struct wandb *w)
{
    struct ddp__proto p = {0};
    int rc;

    for (int i = 0; i < w->lasts; i++)
        add(&p, w->last[i].tag, w->last[i].v);
    add_times(w, &p, w->step);
    add_runtime(w, &p);
    rc = ddp__wandb_write(&w->file, DDP__WANDB_SUMMARY, &p);
    ddp__proto_free(&p);
    return rc;
}

/* Records without fields. */
static int write_empty(struct wandb *w, int field)
{
    struct ddp__proto p = {0};

    return ddp__wandb_write(&w->file, field, &p);
}

static int write_end(struct wandb *w)
{
    struct ddp__proto p = {0};
    int rc;

    if ((rc = flush(w)) < 0 || (rc = write_usage(w, true)) < 0 ||
        (rc = write_summary(w)) < 0)
        return rc;
    w->ended = true;
    w->end = w->file.size;
    w->end_count = w->file.count;
    ddp__proto_int(&p, EXIT_STATUS, (uint64_t)w->code);
    ddp__proto_int(&p, EXIT_RUNTIME, (uint64_t)(ddp__log_now() - w->start));
    rc = ddp__wandb_write(&w->file, DDP__WANDB_EXIT, &p);
    ddp__proto_free(&p);
    if (rc == 0 && (rc = write_empty(w, DDP__WANDB_FINAL)) == 0)
        rc = write_empty(w, DDP__WANDB_FOOTER);
    return rc;
}

/* ---- the format --------------------------------------------------------- */

static int open_run(struct ddp_log *l, int64_t steps)
{
    struct wandb *w = l->own;
    struct ddp__log_value v[DDP__USAGE_VALUES];
    int rc = 0;

    w->file.fd = -1;
    w->start = ddp__log_now();
    ddp__wandb_usage(&w->usage, v);
    if (steps > 0)
        rc = ddp__wandb_resume(l, &w->file, steps, &w->start);
    if (rc == 0)
        rc = ddp__wandb_begin(l, &w->file, w->start);
    if (rc < 0)
        ddp__wandb_close(&w->file);
    return rc < 0 ? rc : 0;
}

/* Have the row of a step. */
static int turn_to(struct wandb *w, int64_t step)
{
    int rc = 0;

    if (w->ended)
        rc = ddp__wandb_cut(&w->file, w->end, w->end_count);
    w->ended = false;
    if (rc == 0 && step != w->step)
        rc = flush(w);
    w->step = step;
    return rc;
}

static int put(struct ddp_log *l, int64_t step, const struct ddp__log_value *v,
               int n)
{
    struct wandb *w = l->own;
    int rc = turn_to(w, step);

    for (int i = 0; rc == 0 && i < n; i++) {
        add(&w->row, v[i].tag, v[i].v);
        rc = remember(w, &v[i]);
    }
    return rc;
}

static int histogram(struct ddp_log *l, int64_t step, const char *tag,
                     const struct ddp__histogram *h)
{
    struct wandb *w = l->own;
    int rc = turn_to(w, step);

    if (rc == 0)
        ddp__wandb_histogram(&w->row, DDP__WANDB_ITEM, DDP__WANDB_NESTED_KEY,
                             tag, h);
    return rc;
}

static int saved(struct ddp_log *l, int64_t step)
{
    struct wandb *w = l->own;
    int rc;

    if (step < w->step || w->row.len == 0)
        return 0;
    return (rc = flush(w)) < 0 ? rc : write_summary(w);
}

static int end(struct ddp_log *l, int rc)
{
    struct wandb *w = l->own;

    w->code = rc < 0;
    return w->ended ? 0 : write_end(w);
}

/* Values may have followed the end, or there was none, without a trainer. */
static void close_run(struct ddp_log *l)
{
    struct wandb *w = l->own;

    if (w->file.fd >= 0 && !w->ended)
        write_end(w);
    ddp__wandb_close(&w->file);
    ddp__proto_free(&w->row);
    for (int i = 0; i < w->lasts; i++)
        free((char *)w->last[i].tag);
    free(w->last);
}

const struct ddp__log_format ddp__log_wandb = {
    .name = "wandb",
    .size = sizeof(struct wandb),
    .open = open_run,
    .put = put,
    .histogram = histogram,
    .saved = saved,
    .end = end,
    .close = close_run,
};
