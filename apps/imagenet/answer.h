/* answer.h - the best classes of an image, as text, CSV or JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef ANSWER_H
#define ANSWER_H

#include <stdio.h>

#include "names.h"

struct top {
    int class;
    double share; /* its probability */
};

/* The k best of len classes, best first: of equal ones the lower. */
void answer_top(const float *output, int len, int k, struct top *top);

/* One image in one of the formats, with k classes, or why there are none. */
struct answer {
    const char *path, *why; /* why: NULL if it could be read */
    const struct top *top;
    int k;
    const struct names *names; /* of classes; empty: they have none */
};
void answer_print(const struct answer *a, int format, FILE *f);
void answer_print_head(int format, FILE *f);

#endif
