/* record.h - metrics.jsonl and summary.csv of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * metrics.jsonl has an object a line, flushed one by one, whose "type" says
 * what happened: run, step, eval, checkpoint, end.  summary.csv has a row for
 * each epoch, with timm's columns first.  A run that resumes drops what they
 * say of later steps, which it makes again.
 */
#ifndef RECORD_H
#define RECORD_H

#include <stdio.h>

#include "ddp.h"

struct record {
    char *steps_path, *epochs_path; /* owned */
    FILE *steps, *epochs;           /* NULL: not open, or given up */
    const ddp_trainer_t *trainer;
    int64_t epoch; /* the last one that has a row; -1: none */
};

/* The functions of the sink that records in r, which may not be open yet. */
struct ddp_sink record_sink(struct record *r);

/* Open the files in a folder, for a run that goes on from a checkpoint; its
 * step is 0 if it begins, and nothing of an earlier run stays.  Returns OPTS_GO
 * or an exit code. */
int record_open(struct record *r, const char *dir, const ddp_trainer_t *t,
                const struct ddp_checkpoint *c);

/* The row of an epoch that has ended.  result, averages: its evaluation; NULL:
 * there was none. */
void record_epoch(struct record *r, const struct ddp_progress *p,
                  const struct ddp_metrics *result,
                  const struct ddp_metrics *averages);

/* Also of one that was never opened, all zeros. */
void record_close(struct record *r);

#endif
