/* report_classes.h - which classes a network takes for which, in a report
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef REPORT_CLASSES_H
#define REPORT_CLASSES_H

#include <stdint.h>
#include <stdio.h>

/* The examples whose own class the network believed in least. */
enum { WORST = 24 };

struct report_classes {
    char **name; /* by class, maybe NULL; owned, each one too */
    int64_t *n, *right;
    int count;
    struct report_pair {
        int class, taken_for;
        int64_t n;
    } * pair; /* of different classes, most frequent first; owned */
    size_t pairs, pair_room;
    struct report_example {
        char *path; /* owned */
        int class, taken_for;
        double share, own; /* of the class it was taken for, of its own */
    } worst[WORST];
    int worsts;
    int64_t samples;
};

/* What eval --predictions wrote.  OPTS_GO, or an exit code after a message. */
int report_classes_read(struct report_classes *c, const char *path);
void report_classes_free(struct report_classes *c);

void report_classes_print(const struct report_classes *c, FILE *f);

#endif
