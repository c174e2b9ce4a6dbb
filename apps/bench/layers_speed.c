/* layers_speed.c - how fast training is if oneDNN's layers take all of its time
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <stdlib.h>
#include <string.h>

#include "layers_speed.h"
#include "measure.h"
#include "profile.h"
#include "runs.h"

enum { FEW = 2 }; /* steps of a profile */

/* Seconds of a step in convolutions and dense layers, of all workers. */
static double seconds_of_layers(const struct profile *p)
{
    double sum = 0;

    for (int i = 0; i < p->rows; i++)
        if (!strncmp(p->row[i].name, "conv_", 5) ||
            !strncmp(p->row[i].name, "dense_", 6))
            sum += 1e-6 * p->row[i].us * p->row[i].times;
    return sum;
}

/* Kernels that libddp has in place of oneDNN's unless these are 0. */
static const char *const own[] = {"DDP_WINOGRAD", "DDP_BF16_INTEGERS"};

enum { OWN = sizeof(own) / sizeof(*own) };

/* Those that the environment does not set: off, or as they were. */
static void turn_off(bool unset[OWN])
{
    for (int i = 0; i < OWN; i++)
        if ((unset[i] = !getenv(own[i])))
            setenv(own[i], "0", 1);
}

static void turn_on(const bool unset[OWN])
{
    for (int i = 0; i < OWN; i++)
        if (unset[i])
            unsetenv(own[i]);
}

int layers_speed(const struct bench_settings *s, int64_t batch, double *img)
{
    int64_t lanes = batch / s->sub_batch, workers = bench_workers(s->workers);
    struct bench_settings few = *s;
    struct profile p;
    bool unset[OWN];
    double seconds;
    int rc;

    few.steps = FEW;
    turn_off(unset);
    rc = bench_profile(&few, &p, NULL, NULL);
    turn_on(unset);
    seconds = seconds_of_layers(&p);
    profile_free(&p);
    lanes = lanes < workers ? lanes : workers;
    *img = seconds > 0 ? (double)(batch * lanes) / seconds : 0;
    return rc;
}
