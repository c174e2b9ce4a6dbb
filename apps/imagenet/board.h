/* board.h - --log: records of a run for other programs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BOARD_H
#define BOARD_H

#include "ddp.h"

#include "options.h"

/* Refuse kinds that there are not: OPTS_GO, or exit code 2 after a message. */
int board_check(const struct opts *o, const struct settings *s);

/* Event files for TensorBoard in the run's folder, with its settings: OPTS_GO
 * or an exit code, and *tb, NULL if --log does not name them. */
int board_open(const struct opts *o, const struct settings *s,
               ddp_tensorboard_t **tb);

/* Say once that they cannot be written; *said: that it was. */
void board_report(const ddp_tensorboard_t *tb, bool *said);

#endif
