/* strips.h - large gradients in strips, merged by several CPU workers at once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A layer of many weights has a bucket of its own, and the merges of its
 * gradients wait for each other.  Merges, checks and updates compute each
 * element by itself, so a bucket in main memory is cut into strips: tasks that
 * read the whole bucket, as StarPU sees it, but each write their strip.  Two
 * fences, of which other tasks see a write, are around them.
 */
#ifndef DDP_STRIPS_H
#define DDP_STRIPS_H

#include "engine/lanes.h"
#include "engine/step.h"
#include "engine/vector.h"
#include "ops.h"

/* Of a bucket.  Merges that can run at the same time have fewer strips each:
 * those with n strips, a power of two, are merge[n - 1 .. 2n - 2]. */
struct ddp__strips {
    int count; /* at most; 1: the bucket is whole */
    struct ddp__call *merge;
    struct ddp__call *update; /* by strip, and for each as many as in
                                 e->updates; NULL: the update is whole */
    struct ddp__span *span;
};

/* How many strips bucket b has. */
int ddp__strips_count(const struct ddp__engine *e, int b);

/* Whether it has one large layer, of which all merges are cut. */
bool ddp__strips_large(const struct ddp__engine *e, int b);

/* How many strips its last merge has: it runs alone, if the bucket is large or
 * the last one. */
int ddp__strips_last(const struct ddp__engine *e, int b);

/* Prepare the merges of bucket b; its updates, after the whole ones. */
int ddp__strips_merge_new(struct ddp__engine *e, int b);
int ddp__strips_update_new(struct ddp__engine *e, int b);
void ddp__strips_free(struct ddp__strips *k);

/* Submit a merge of bucket b, with a check of the sum by slices.h if it is
 * wanted: 1: done; 0: it is not cut. */
int ddp__strips_merge(struct ddp__engine *e, const struct ddp__step *s, int b,
                      const struct ddp__merge *m, bool check);

/* Submit the update of a bucket, if strips.update is there, in place of its
 * calls in `whole`, which is empty. */
int ddp__strips_update(const struct ddp__vector_task *whole, int b,
                       struct ddp__handle *const buf[]);

#endif
