/* progress.h - the progress line of a training run, and of other long work
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * On a terminal (stderr, with TERM other than dumb and without NO_COLOR) one
 * line is redrawn.  When stdout is none, or there is no such line, plain lines
 * of name=value go to stdout.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

struct progress {
    bool draw, lines;
    int64_t log_every; /* steps between lines; 0: by the clock */
    int64_t epoch_steps;
    double drawn, printed; /* when, by app_now() */
    int64_t printed_step;
    double sum_loss, sum_top1; /* of the samples since the last line */
    int64_t samples;
    double data_share; /* smoothed */
    bool hinted, on_screen;
};

/* lines: print lines in addition to a drawn one. */
void progress_begin(struct progress *p, int64_t log_every, int64_t epoch_steps,
                    bool lines);

/* Call after every step. */
void progress_step(struct progress *p, const struct ddp_progress *now);

/* Print the line that is due at the end of an epoch or a run. */
void progress_flush(struct progress *p, const struct ddp_progress *now);

/* Erase the drawn line before another line is printed. */
void progress_clear(struct progress *p);

/* The drawn line, at most `width` columns: the least important fields are
 * dropped. */
void progress_format(char *buf, size_t size, int width, int64_t epoch_steps,
                     const struct ddp_progress *now);

/* The name=value line. */
void progress_line(char *buf, size_t size, int64_t epoch_steps, double loss,
                   double top1, const struct ddp_progress *now);

/* From now on nothing is drawn: --quiet. */
void progress_never(void);

/* ---- other work --------------------------------------------------------- */

/* A line on a terminal: how much is done, how fast, and how long the rest will
 * take.  It begins to show after a second. */
struct work {
    const char *what; /* "eval" */
    const char *unit; /* of what is counted; "images" at first */
    bool draw, on_screen;
    double begin, drawn;
};

/* busy: what is printed on stdout meanwhile, so that nothing is drawn if that
 * is a terminal. */
void work_begin(struct work *w, const char *what, bool busy);

/* A ddp_count_f; work is the struct.  By one thread at a time. */
void work_count(int64_t done, int64_t count, void *work);

/* Erase the line, also before another is printed. */
void work_clear(struct work *w);

/* The line after so many seconds, at most `width` columns. */
void work_format(char *buf, size_t size, int width, const struct work *w,
                 int64_t done, int64_t count, double seconds);

#endif
