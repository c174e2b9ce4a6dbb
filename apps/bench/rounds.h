/* rounds.h - training a network several times, in turns with a peer
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The speed of a machine that others share changes from minute to minute, so
 * that each round measures what it is compared with, too.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include "settings.h"

enum { ROUNDS_MAX = 99 };

/* Medians of the rounds; 0: not known. */
struct rounds {
    double img_per_s;
    double of_peak;   /* relative to the peak FLOP/s of the same round */
    double of_limit;  /* to what arithmetic and memory allowed in it */
    double of_layers; /* to what oneDNN's layers alone would have allowed */
    double peer;      /* its images a second */
    double of_peer;   /* relative to them */
};

/* What the machine reached in all rounds so far. */
struct range {
    double least, most;
};

struct reached {
    const char *base[2];    /* f32, bf16: what was measured; NULL: nothing */
    struct range peak[2];   /* FLOP/s of all cores */
    struct range copy;      /* bytes a second of memory, in copies */
    struct range only_read; /* and by cores that only read */
};

/* Train by the settings s->rounds times, s->point_seconds each.
 * OPTS_GO, or an exit code after a message. */
int rounds_measure(const struct bench_settings *s, struct rounds *out,
                   struct reached *reached);

#endif
