/* split.h - how a step is split: its batch, sub-batches and lanes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * They determine the weights, so a run keeps those it began with.
 */
#ifndef SPLIT_H
#define SPLIT_H

#include <stdbool.h>
#include <stdint.h>

struct split {
    int64_t batch, sub_batch, lanes; /* 0: not given */
};

/* Choose what is not given, for a data set of so many samples: the same on up
 * to 8 devices, one sub-batch or more for each of more.  sync_bn: a lane for
 * each sub-batch. */
void split_choose(struct split *s, int devices, int64_t samples, bool sync_bn);

/* Take over what s leaves open from config.txt of the run in a folder, or of a
 * checkpoint in it, if that has what s has.  Another split is another run: then
 * nothing is taken.  OPTS_GO or the exit code. */
int split_recorded(struct split *s, const char *folder);

#endif
