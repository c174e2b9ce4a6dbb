/* converter.h - drawings that another program makes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CONVERTER_H
#define CONVERTER_H

struct converter {
    const char *program, *makes; /* its name, and what it makes */
    const char *package;         /* of Debian, that has it */
    const char *instead;         /* the option that does without it */
};

/* Run it with these arguments, of which the first is its name and the last,
 * before NULL, the file that it makes.  0 or an exit code, after a message. */
int converter_run(const struct converter *c, char *const argv[]);

#endif
