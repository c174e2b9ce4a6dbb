/* stream.h - samples that come one after the other, until there are no more
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A run takes a batch of them for each step, on the thread that submits it, and
 * workers copy them from there.
 */
#ifndef DDP_STREAM_H
#define DDP_STREAM_H

#include <stdbool.h>

#include "ddp.h"

/* Where a step is in its epoch. */
struct ddp__place {
    int64_t epoch;
    int64_t step;  /* of the epoch */
    int64_t first; /* the position of its first sample in the epoch's order */
    int64_t at;    /* of a stream: the number of this sample, of all epochs */
    int n;         /* samples */
    bool last;     /* step of the epoch */
};

/* Who reads a stream, and how. */
struct ddp__reader {
    int batch;
    int run_ahead; /* steps under way at the same time */
    uint64_t seed;
    bool shuffle;
};

bool ddp__is_stream(const ddp_dataset_t *d);

/* DDP_EINVAL: for what needs the number of samples, or any of them. */
int ddp__stream_refuse(const ddp_dataset_t *d);

/* Begin to read, and stop; one reader at a time. */
int ddp__stream_begin(ddp_dataset_t *d, const struct ddp__reader *r);
void ddp__stream_end(ddp_dataset_t *d);

/* Go on after the step that has this place; the samples before are skipped when
 * the next one is taken. */
void ddp__stream_seek(ddp_dataset_t *d, int64_t step,
                      const struct ddp__place *p);

/* Take the samples of a step, the next one or, after a failure, one of the last
 * run_ahead + 1;
 * wait for them as long as it takes.
 * Returns  0; 1: the epoch has no samples at all; or an error, after which the
 *          call can be repeated. */
int ddp__stream_take(ddp_dataset_t *d, int64_t step);

/* The place of a step that was taken, of which two more than run_ahead are
 * known. */
const struct ddp__place *ddp__stream_place(const ddp_dataset_t *d,
                                           int64_t step);

/* Copy sample number `at` of a step under way. */
void ddp__stream_get(const ddp_dataset_t *d, int64_t at, struct ddp_sample *s);

#endif
