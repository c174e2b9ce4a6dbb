/* start_clock.c - what the time between exec and the first step goes into
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "start_clock.h"

static struct start_part part[START_PARTS];
static int parts;
static double last; /* by app_now(); 0: no mark so far */

/* Seconds since the process began, to one hundredth; 0: not known.  Field 22 of
 * the file; the second one is a name in parentheses, which may hold anything.
 */
static double age(void)
{
    FILE *f = fopen("/proc/self/stat", "re");
    unsigned long long ticks = 0;
    struct timespec now;
    char line[1024], *at;

    if (f && fgets(line, sizeof(line), f) && (at = strrchr(line, ')')))
        sscanf(at + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
               "%*d %*d %*d %*d %llu",
               &ticks);
    if (f)
        fclose(f);
    if (!ticks || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec -
           (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

void start_mark(const char *name)
{
    double now = app_now();

    if (parts == START_PARTS)
        return;
    part[parts++] = (struct start_part){name, last > 0 ? now - last : age()};
    last = now;
}

int start_parts(const struct start_part **out)
{
    *out = part;
    return parts;
}
