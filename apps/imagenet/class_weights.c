/* class_weights.c - how much each class counts: --class-weights, --pos-weight
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

/* Samples over classes times samples of the class: the mean over samples is
 * 1. */
static double class_balance(double all, double classes, double count)
{
    return all / (classes * count);
}

/* Samples of other classes over those of the class. */
static double positive_balance(double all, double classes, double count)
{
    (void)classes;
    return (all - count) / count;
}

/* An option, and what it takes for "balanced". */
struct kind {
    const char *option;
    double (*balance)(double all, double classes, double count);
};

/* A class without samples has none to weigh. */
static int balance(const struct kind *k, const ddp_dataset_t *d, float *weight)
{
    int classes = ddp_dataset_classes(d), rc;
    int64_t *count = calloc((size_t)classes + 1, sizeof(*count));
    double all = (double)ddp_dataset_count(d);

    if (!count)
        return app_exit_code(DDP_ENOMEM);
    rc = ddp_dataset_class_counts(d, count);
    for (int i = 0; i < classes && rc == 0; i++)
        weight[i] =
            count[i] ? (float)k->balance(all, classes, (double)count[i]) : 0;
    free(count);
    return rc < 0 ? app_fail(rc) : OPTS_GO;
}

/* One number for each class, in the order of the classes. */
static int read_numbers(const struct kind *k, const char *path, FILE *f,
                        int classes, float *weight)
{
    char word[64], *end;
    int n = 0;

    while (fscanf(f, "%63s", word) == 1) {
        float w = strtof(word, &end);

        if (*end || !isfinite(w) || w < 0) {
            app_say("--%s %s: \"%s\", expected a number from 0 on", k->option,
                    path, word);
            return EXIT_DATA;
        }
        if (n < classes)
            weight[n] = w;
        n++;
    }
    if (n == classes && !ferror(f))
        return OPTS_GO;
    app_say("--%s %s: %d numbers, expected %d, one for each class", k->option,
            path, n, classes);
    return EXIT_DATA;
}

static int read_file(const struct kind *k, const char *path, int classes,
                     float *weight)
{
    FILE *f = fopen(path, "r");
    int rc;

    if (!f) {
        app_say("--%s %s: %s", k->option, path, strerror(errno));
        return EXIT_DATA;
    }
    rc = read_numbers(k, path, f, classes, weight);
    fclose(f);
    return rc;
}

static int make_weights(const struct kind *k, const char *given,
                        const ddp_dataset_t *d, float **weight)
{
    int classes = ddp_dataset_classes(d);

    *weight = calloc((size_t)classes + 1, sizeof(**weight));
    if (!*weight)
        return app_exit_code(DDP_ENOMEM);
    return strcmp(given, "balanced") == 0
               ? balance(k, d, *weight)
               : read_file(k, given, classes, *weight);
}

int class_weights_make(const char *given, const ddp_dataset_t *d,
                       float **weight)
{
    static const struct kind kind = {"class-weights", class_balance};

    return make_weights(&kind, given, d, weight);
}

int pos_weight_make(const char *given, const ddp_dataset_t *d, float **weight)
{
    static const struct kind kind = {"pos-weight", positive_balance};

    return make_weights(&kind, given, d, weight);
}
