/* board.h - --log: records of a run for other programs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BOARD_H
#define BOARD_H

#include "ddp.h"

#include "options.h"

struct board {
    ddp_log_t *log[DDP_LOG_KINDS]; /* owned; NULL: --log does not name it */
    bool said[DDP_LOG_KINDS];      /* that it cannot be written */
};

/* Refuse kinds that there are not, and options for a kind that is not named:
 * OPTS_GO, or exit code 2 after a message. */
int board_check(const struct opts *o, const struct settings *s);

/* The logs that --log names, in the run's folder, with its settings: OPTS_GO or
 * an exit code. */
int board_open(const struct opts *o, const struct settings *s, struct board *b);
void board_close(struct board *b);

/* Their sinks, up to DDP_LOG_KINDS; returns how many. */
int board_sinks(const struct board *b, struct ddp_sink *sinks);

/* A value of the program; a failure is reported by the next board_report(). */
void board_scalar(struct board *b, const char *tag, int64_t step, double value);

/* Say of each once that it cannot be written. */
void board_report(struct board *b);

#endif
