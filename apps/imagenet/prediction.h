/* prediction.h - the best classes of an image, as text, CSV or JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef PREDICTION_H
#define PREDICTION_H

#include <stdio.h>

#include "names.h"

struct top {
    int class;
    double share; /* its probability */
};

/* The k best of len classes, best first; ties go to the lower class. */
void prediction_top(const float *output, int len, int k, struct top *top);

/* The probability of one of them. */
double prediction_share(const float *output, int len, int class);

/* An image whose class is known, and the class it was taken for, as a JSON
 * line.  Names: NULL if there is none. */
struct judged {
    const char *path;
    int class;
    const char *name, *taken_name;
    double share; /* the probability of its own class */
    struct top taken;
};
void prediction_print_judged(const struct judged *j, FILE *f);

/* The prediction for one image: k classes, or why it cannot be read. */
struct prediction {
    const char *path, *why; /* why: NULL if it could be read */
    const struct top *top;
    int k;
    const struct names *names; /* of classes; empty: unknown */
};
void prediction_print(const struct prediction *a, int format, FILE *f);
void prediction_print_head(int format, FILE *f);

#endif
