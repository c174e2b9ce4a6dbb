/* classes.h - an evaluation class by class, as a CSV table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CLASSES_H
#define CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ddp.h"

#include "prediction.h"

struct classes {
    int count;
    struct class_row {
        int64_t n, top1, top5;
    } * row; /* owned */
    struct confusion {
        int label, taken_for;
    } * wrong; /* owned */
    size_t wrongs, room;
};

/* false: no memory. */
bool classes_new(struct classes *c, int count);
bool classes_add(struct classes *c, int label, const struct top *top, int k);
/* As CSV to a file, "-": stdout; the exit code. */
int classes_print(struct classes *c, const ddp_dataset_t *d, const char *path);
void classes_free(struct classes *c);

#endif
