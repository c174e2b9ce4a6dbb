/* parts.h - where the time of a step goes, as a table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include "ddp.h"

/* Sums over steps. */
struct parts {
    int64_t steps;
    double wall_s, part_s[DDP_STEP_PARTS]; /* parts: of all workers */
};

/* Add a step that took so long. */
void parts_add(struct parts *p, const struct ddp_progress *step,
               double seconds);

/* Print the table in Markdown.  all: the trainer's, of all steps. */
void parts_print(const struct parts *p, const struct ddp_stats *all,
                 int workers);

#endif
