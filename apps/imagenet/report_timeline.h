/* report_timeline.h - one step of a trace, device by device, in a report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_TIMELINE_H
#define REPORT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum timeline_phase {
    TIMELINE_INPUT,
    TIMELINE_FORWARD,
    TIMELINE_BACKWARD,
    TIMELINE_MERGE,
    TIMELINE_UPDATE,
    TIMELINE_END,
    TIMELINE_TRANSFER,
    TIMELINE_SUBMISSION,
    TIMELINE_PHASES
};

/* A step of trace.json; times are in microseconds. */
struct report_timeline {
    struct timeline_row {
        char *name; /* owned */
        int thread;
        bool worker; /* else what no worker did */
    } * row;         /* owned, like task */
    int rows;
    struct timeline_task {
        int row;
        enum timeline_phase phase, after; /* after: what it waited for last */
        double begin, end, ready;
        int64_t step;
    } * task; /* in the order of rows and begins */
    int tasks;
    int64_t step;
    double begin, end; /* of its tasks on workers */
};

/* What train --trace wrote.  OPTS_GO, or an exit code after a message. */
int report_timeline_read(struct report_timeline *t, const char *path);
void report_timeline_free(struct report_timeline *t);

void report_timeline_print(const struct report_timeline *t, FILE *f);

#endif
