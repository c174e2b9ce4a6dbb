/* record.h - metrics.jsonl, summary.csv and log.txt of a run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * metrics.jsonl has an object a line whose "type" says what happened: run,
 * step, start, eval, checkpoint, end; and missing, where lines could not be
 * written.
 * summary.csv has a row for each epoch, with timm's columns first.  log.txt has
 * the lines that the program printed.  A run that resumes drops what they say
 * of later steps, which it makes again.
 */
#ifndef RECORD_H
#define RECORD_H

#include "ddp.h"

#include "lines.h"

struct record {
    struct lines steps, epochs, log;
    /* What the run has done, of which lines stay. */
    struct past {
        int64_t steps, evaluated, epochs;
        int64_t last; /* epoch that has a row; -1: none */
    } past;
    const ddp_trainer_t *trainer;
    int64_t epoch; /* the last one that has a row; -1: none */
    char why[512]; /* the run failed; "": it did not */
};

/* The functions of the sink that records in r, which may not be open yet. */
struct ddp_sink record_sink(struct record *r);

/* Open the files in a folder, for a run that continues from a checkpoint; its
 * step is 0 if it begins, and nothing of an earlier run is kept.  Lines of
 * app_log.h go to log.txt then.  Returns OPTS_GO or an exit code. */
int record_open(struct record *r, const char *dir, const ddp_trainer_t *t,
                const struct ddp_checkpoint *c);

/* The row of an epoch that has ended; returns whether it is new.  result,
 * averages: its evaluation; NULL: there was none. */
bool record_epoch(struct record *r, const struct ddp_progress *p,
                  const struct ddp_metrics *result,
                  const struct ddp_metrics *averages);

/* The norm of the weights after so many steps. */
void record_weights(struct record *r, int64_t step, double norm);

/* What the time up to the end of this process's first step went into. */
void record_start(struct record *r, int64_t step);

/* Also of one that was never opened, all zeros. */
void record_close(struct record *r);

#endif
