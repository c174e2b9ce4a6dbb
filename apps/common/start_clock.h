/* start_clock.h - what the time between exec and the first step goes into
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef START_CLOCK_H
#define START_CLOCK_H

enum { START_PARTS = 12 };

struct start_part {
    const char *name;
    double seconds;
};

/* The time since the last mark, or since the process began, went into a part.
 * Marks after the first START_PARTS do nothing. */
void start_mark(const char *name);

/* The parts so far, in their order; returns their number. */
int start_parts(const struct start_part **parts);

#endif
