/* class_weights.c - --class-weights: how much each class counts in the loss
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   scikit-learn, compute_class_weight("balanced").
 */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/app_fail.h"
#include "common/opt.h"
#include "class_weights.h"

/* Samples over classes times samples of the class: the mean over samples is 1.
 * A class without samples has none to weigh. */
static int balance(const ddp_dataset_t *d, float *weight)
{
    int classes = ddp_dataset_classes(d), rc;
    int64_t *count = calloc((size_t)classes + 1, sizeof(*count));
    double all = (double)ddp_dataset_count(d);

    if (!count)
        return app_exit_code(DDP_ENOMEM);
    rc = ddp_dataset_class_counts(d, count);
    for (int i = 0; i < classes && rc == 0; i++)
        weight[i] =
            count[i] ? (float)(all / ((double)classes * (double)count[i])) : 0;
    free(count);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

/* One number for each class, in the order of the classes. */
static int read_numbers(const char *path, FILE *f, int classes, float *weight)
{
    char word[64], *end;
    int n = 0;

    while (fscanf(f, "%63s", word) == 1) {
        float w = strtof(word, &end);

        if (*end || !isfinite(w) || w < 0) {
            app_say("--class-weights %s: \"%s\", expected a number from 0 on",
                    path, word);
            return EXIT_DATA;
        }
        if (n < classes)
            weight[n] = w;
        n++;
    }
    if (n == classes && !ferror(f))
        return OPTS_GO;
    app_say("--class-weights %s: %d numbers, expected %d, one for each class",
            path, n, classes);
    return EXIT_DATA;
}

static int read_file(const char *path, int classes, float *weight)
{
    FILE *f = fopen(path, "r");
    int rc;

    if (!f) {
        app_say("--class-weights %s: %s", path, strerror(errno));
        return EXIT_DATA;
    }
    rc = read_numbers(path, f, classes, weight);
    fclose(f);
    return rc;
}

int class_weights_make(const char *given, const ddp_dataset_t *d,
                       float **weight)
{
    int classes = ddp_dataset_classes(d);

    *weight = calloc((size_t)classes + 1, sizeof(**weight));
    if (!*weight)
        return app_exit_code(DDP_ENOMEM);
    return strcmp(given, "balanced") == 0 ? balance(d, *weight)
                                          : read_file(given, classes, *weight);
}
