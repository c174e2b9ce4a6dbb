/* doctor_report.h - the lines of "imagenet doctor" and its verdict
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

struct report {
    int problems, warnings;
    int rc; /* the exit code of the first problem, or 0 */
};

/* "name: value" on stdout, made fit for a terminal. */
void report_line(const char *name, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with the name "warning": training works, but not as it could. */
void report_warning(struct report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The same with the name "problem": training does not work. */
void report_problem(struct report *r, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A number of bytes, as "3.5 GiB" in buf, which it returns. */
const char *report_bytes(double bytes, char buf[32]);

#endif
