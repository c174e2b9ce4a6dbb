/* doctor_report.c - the lines of "imagenet doctor" and its verdict
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ddp.h"

#include "doctor_report.h"

static void put(const char *name, const char *fmt, va_list ap)
{
    char *text;

    if (vasprintf(&text, fmt, ap) < 0)
        return;
    ddp_printable(text);
    printf("%s: %s\n", name, text);
    free(text);
}

void report_line(const char *name, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(name, fmt, ap);
    va_end(ap);
}

void report_warning(struct report *r, const char *fmt, ...)
{
    va_list ap;

    r->warnings++;
    va_start(ap, fmt);
    put("warning", fmt, ap);
    va_end(ap);
}

void report_problem(struct report *r, int rc, const char *fmt, ...)
{
    va_list ap;

    r->problems++;
    r->rc = r->rc ? r->rc : rc;
    va_start(ap, fmt);
    put("problem", fmt, ap);
    va_end(ap);
}

const char *report_bytes(double bytes, char buf[32])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;

    for (; bytes >= 1024 && i < 4; i++)
        bytes /= 1024;
    snprintf(buf, 32, "%.*f %s", i && bytes < 100 ? 1 : 0, bytes, unit[i]);
    return buf;
}
