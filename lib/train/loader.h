/* loader.h - samples of a data set into the input buffers of sub-batches
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LOADER_H
#define DDP_LOADER_H

#include "data/stream.h"
#include "ops.h"
#include "runtime/status.h"
#include "train/mix.h"

/* How the sub-batches of a run map to positions of the data's order.  Sub-
 * batch s of step k has the number k * subs + s. */
struct ddp__loader {
    ddp_dataset_t *data; /* not owned */
    int64_t steps;       /* of an epoch; of a stream: 0, unknown */
    int64_t filled;      /* those in which this rank has samples of its own */
    int batch, sub_batch, subs;
    uint64_t seed;
    bool shuffle;
    int repeats;  /* of a sample, one after the other; 0: 1 */
    bool replace; /* replace bad samples; else they are left out */
    bool shares;  /* targets are the share of each class, and not a class */
    struct ddp__mix mix;
    const float *class_weight;  /* by class; not owned; NULL: all are 1 */
    const float *pos_weight;    /* the same of the positive part of each */
    float smoothing;            /* of shares that have such weights */
    int64_t end;                /* steps that there will be */
    int64_t bad;                /* that were left out; atomic */
    struct ddp__status *status; /* of the process; not owned; or NULL */
};

/* Of `batch` samples a step, in sub-batches. */
struct ddp__loader ddp__loader(ddp_dataset_t *data, int batch, int sub_batch);

/* Leave out the last step of an epoch if it has fewer samples. */
void ddp__loader_drop_last(struct ddp__loader *l);

/* Samples of the smallest step; of the smallest sub-batch. */
int ddp__loader_least_step(const struct ddp__loader *l);
/* Where a step is; of a stream only those that were taken lately. */
struct ddp__place ddp__loader_place(const struct ddp__loader *l, int64_t step);

/* Have the samples of a step at hand; as ddp__stream_take(), for a stream. */
int ddp__loader_take(struct ddp__loader *l, int64_t step);

/* Whether an epoch ends after so many steps. */
bool ddp__loader_epoch_ends(const struct ddp__loader *l, int64_t steps);

/* Samples of the smallest sub-batch. */
int ddp__loader_least(const struct ddp__loader *l);

/* The numbers of samples that sub-batches have, besides sub_batch; 0: none. */
void ddp__loader_fewer(const struct ddp__loader *l, int n[DDP__FEWER]);

/* Sizes of the sub-batches of a step into n[subs]; how many. */
int ddp__loader_sizes(const struct ddp__loader *l, int64_t step, int *n);

/* HOST function of the graph: fill x, ids, target, weight. */
int ddp__loader_fill(const struct ddp__task *t, void *arg);

#endif
