/* report_run.h - what the folder of a run says of it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_RUN_H
#define REPORT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Columns of a curve: a value for each step, NaN where there is none. */
enum report_column {
    COLUMN_EPOCH,
    COLUMN_LOSS,
    COLUMN_TOP1,
    COLUMN_LR,
    COLUMN_NORM,
    COLUMN_SPEED,
    COLUMN_DATA,
    COLUMN_BUSY,
    COLUMN_MEMORY,
    COLUMNS
};

struct report_curve {
    double *at[COLUMNS]; /* owned */
    int n, room;
};

/* An evaluation; best: highest top1, without classes lowest loss. */
struct report_eval {
    double epoch, loss, top1, top5;
    int64_t step;
};

struct report_run {
    const char *dir; /* not owned */
    char *name;      /* the last part of dir; owned, like the rest */
    struct report_curve step, eval, ema;
    struct report_eval last, best; /* of eval; step 0: there was none */
    int64_t steps, skipped, epoch_steps;
    double seconds, speed; /* speed: the median */
    json_t *file;          /* run.json; NULL: there is none */
    json_t *settings;      /* of it, or of config.txt */
    char *reason;          /* why it ended; NULL: nothing says so */
};

/* OPTS_GO, or an exit code after a message.  A run that is under way, or has
 * lost a line, is read as far as it goes. */
int report_run_read(struct report_run *r, const char *dir);
void report_run_free(struct report_run *r);

/* The last segment of run.json, or NULL; a text of an object of it, or "". */
const json_t *report_run_segment(const struct report_run *r);
const char *report_text(const json_t *o, const char *key);

#endif
