/* report_tables.h - the tables of a report: settings, weights, machines
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_TABLES_H
#define REPORT_TABLES_H

#include "report_page.h"

/* The tables that come after the curves. */
void report_tables(const struct report *r, FILE *f);

#endif
