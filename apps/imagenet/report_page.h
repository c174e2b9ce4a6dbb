/* report_page.h - a report as one HTML file, and as curves in a terminal
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stdio.h>

#include "chart.h"
#include "report_classes.h"
#include "report_run.h"
#include "report_timeline.h"

struct report {
    struct report_run *run; /* not owned */
    int runs;
    const struct report_classes *classes;   /* not owned; NULL: unknown */
    const struct report_timeline *timeline; /* likewise */
};

/* The curves: at most REPORT_CHARTS. */
enum { REPORT_CHARTS = 8 };
int report_charts(const struct report *r, struct chart chart[REPORT_CHARTS]);

void report_page(const struct report *r, FILE *f);

/* How a run ended, in a word, and the class of its colour. */
const char *report_state(const struct report_run *r, const char **class);

/* A number with its unit, or a dash if it is not known. */
void report_number(FILE *f, const char *format, double v);
double report_epochs(const struct report_run *r);

#endif
