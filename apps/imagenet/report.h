/* report.h - "imagenet report": a page about one run or several
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_H
#define REPORT_H

#include "options.h"

int report_run(struct opts *o, struct settings *s);

#endif
