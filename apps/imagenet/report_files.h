/* report_files.h - the curves of a report as files
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_FILES_H
#define REPORT_FILES_H

#include "report_page.h"

/* An SVG file for each chart that has curves, named as in the page, in a
 * folder; png: and a PNG file of each.  0 or an exit code. */
int report_files(const struct report *r, const char *dir, bool png);

#endif
