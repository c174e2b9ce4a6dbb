/* doctor_limits.h - limits and folders, for "imagenet doctor"
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DOCTOR_LIMITS_H
#define DOCTOR_LIMITS_H

#include "doctor_report.h"

/* Main memory, and the limits of the process and of its control group. */
void doctor_limits(struct report *r);

/* Where files are written.  output: the folder of runs, or NULL: the current
 * one. */
void doctor_folders(struct report *r, const char *output);

/* Variables of the environment that matter.  libddp itself names those that
 * nothing reads. */
void doctor_environment(void);

#endif
