/* report_plot.h - the curves of a report in a terminal
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_PLOT_H
#define REPORT_PLOT_H

#include <stdio.h>

#include "chart.h"
#include "report_page.h"

/* As wide as the terminal, in dots of Braille where its locale is UTF-8. */
void report_plot(const struct report *r, FILE *f);
/* One of them. */
void report_plot_chart(const struct chart *c, FILE *f);

#endif
