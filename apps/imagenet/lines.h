/* lines.h - a text file of a run that grows line by line
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each line is flushed.  One that cannot be written does not end the run: it
 * and those after it are counted, until lines_retry() finds that the file can
 * be written again.  A crash leaves at most one line without its end, which the
 * next lines_open() drops.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Whether a line of an earlier process is kept. */
typedef bool lines_keeps(const char *line, void *arg);

struct lines {
    char *path;       /* owned; NULL: never opened */
    const char *head; /* the first line, or "" */
    lines_keeps *keeps;
    void *arg;
    FILE *f;      /* NULL: it cannot be written */
    off_t size;   /* of its whole lines; -1: it has none yet */
    int64_t lost; /* lines since then */
    int tries;    /* in vain, to open it again */
};

/* A file of a folder that begins with `head` and what is kept of an earlier
 * one; keeps and arg are used until it is open.  Returns whether there is
 * memory. */
bool lines_open(struct lines *l, const char *dir, const char *name,
                const char *head, lines_keeps *keeps, void *arg);

/* Append a line, without its newline. */
void lines_put(struct lines *l, const char *line);

/* Between epochs, and at the end of a run: if the file could not be written and
 * now can be, returns how many lines it lacks, else 0. */
int64_t lines_retry(struct lines *l);

/* Also of one that was never opened, all zeros. */
void lines_close(struct lines *l);

#endif
