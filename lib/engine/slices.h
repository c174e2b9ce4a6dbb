/* slices.h - deciding on a step from slices of its gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * After a reduce-scatter, each rank has the sum of its slice of a bucket.
 * Without clipping, the decision whether to apply the step depends only on
 * whether all gradients are finite: each rank checks its slices and sends what
 * it found with its statistics.  The all-gathers need not be done by then: they
 * overlap with the next forward pass, which begins when the weights of its
 * first layers have arrived.
 *
 * In one process without GPUs the task that makes the sum of a bucket, or of a
 * strip of it (strips.h), checks it while it is in the caches, and the norm is
 * made of what these checks find.
 */
#ifndef DDP_SLICES_H
#define DDP_SLICES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ops.h"
#include "runtime/buffer.h"

struct ddp__engine;
struct ddp__step;
struct ddp__vector_task;

struct ddp__slices {
    struct ddp__slice {
        int bucket, strip;        /* in the order of buckets, then strips */
        struct ddp__call check;   /* of this rank's slice of the bucket */
        struct ddp__handle found; /* h NULL: the slice is empty */
        double memory[DDP__NORMS];
    } * slice; /* with ranks one for each bucket; owned */
    int slices;
    int *first;             /* slice, by bucket; owned */
    struct ddp__span *span; /* of all checks; owned */
    struct ddp__handle one, stats;
    double one_memory[DDP__STATS];   /* with a divisor of 1 */
    double stats_memory[DDP__STATS]; /* of the last step decided on */
    bool copied; /* stats: those of the step that is being submitted */
    struct ddp__call agree, note;
};

/* Make e->slices if the engine can decide so; call it after the updates have
 * been made. */
int ddp__slices_new(struct ddp__engine *e);
void ddp__slices_free(struct ddp__engine *e);

/* Whether this step is decided so; the same on all ranks. */
bool ddp__slices_used(const struct ddp__engine *e, const struct ddp__step *s);

/* Whether merges check what they make in this step.  If so, after the merge of
 * strip `strip` of bucket b has been added to a task, join its check. */
bool ddp__slices_merged(const struct ddp__engine *e, const struct ddp__step *s);
void ddp__slices_join(struct ddp__vector_task *t, int b, int strip);

/* Submit, in this order: the check of this rank's slices, after their
 * reduce-scatters, unless merges do; the decision, after the exchange of
 * statistics; with several ranks, the norm of the gradients, which only reports
 * need. */
int ddp__slices_check(struct ddp__engine *e, const struct ddp__step *s);
int ddp__slices_agree(struct ddp__engine *e, const struct ddp__step *s);
/* The statistics of the step that is being submitted: a copy of lane 0's, so
 * that the next step can write those before the last all-gather is done. */
struct ddp__handle *ddp__slices_stats(struct ddp__engine *e);
void ddp__slices_end(struct ddp__engine *e); /* the step is submitted */
int ddp__slices_note(struct ddp__engine *e, const struct ddp__step *s);

/* Acquire the results of the checks in main memory: adds their number to *left,
 * then calls ready(arg) once for each.  close() releases them. */
void ddp__slices_open(struct ddp__engine *e, atomic_int *left,
                      void (*ready)(void *arg), void *arg);
void ddp__slices_close(struct ddp__engine *e);

/* Add what this rank has found, once all are acquired; what another rank has
 * found. */
void ddp__slices_found(const struct ddp__engine *e, double all[DDP__NORMS]);
/* Of the buckets that this rank checks, by bucket: their squared norms. */
void ddp__slices_kept(const struct ddp__engine *e, double *squares);
/* In one process: the squared norm of all gradients, divided by this. */
double ddp__slices_squares(const struct ddp__engine *e, double divisor);
void ddp__slices_add(double all[DDP__NORMS], const double found[DDP__NORMS]);

#endif
