/* variant.h - what a call that cuDNN or cuBLASLt runs keeps between its tasks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Words: as on every device, a plan is what prepare makes for a call, before
 * its first task; a variant is the part of a plan that serves one number of
 * samples on one model of GPU.  cuDNN's "execution plan", an engine ready to
 * run a graph, is struct ddp__cudnn_plan, with cudnn in all its names.
 *
 * Both libraries need the sizes in advance: there is a variant for each number
 * of samples.  Those of the call's cap, and of the shorter sub-batches that a
 * step or an epoch ends with, are made by prepare, before the first task;
 * others, which only inference has, at their first use (work of the host
 * alone), all with no more scratch than the first.
 */
#ifndef DDP_VARIANT_H
#define DDP_VARIANT_H

#include "dnn_plan.h"
#include "worker.h"

struct ddp__cuda_matmul;

struct ddp__cuda_variant {
    struct ddp__cuda_variant *next;
    struct ddp__cudnn_target *target;
    int n;
    struct ddp__cudnn_plan *dnn; /* of the cache; NULL: libddp's kernels */
    bool fused; /* bias and activation, or a gradient's sum, are in it */
    struct ddp__cuda_matmul *matmul; /* owned */
};

struct ddp__cuda_plan;

/* Fill v, whose target and n are set, with at most p->limit bytes of workspace.
 */
typedef int ddp__cuda_make_f(const struct ddp__call *c,
                             struct ddp__cuda_plan *p,
                             struct ddp__cuda_variant *v);

/* Scratch is `side` bytes for what is not the library's, then workspace. */
struct ddp__cuda_plan {
    ddp__cuda_make_f *make;
    pthread_mutex_t lock;
    struct ddp__cuda_variant *variant; /* owned */
    size_t side, limit;
};

/* A plan with its variants for c->cap, which are the first, and c->fewer; also
 * reports how much scratch memory it needs. */
int ddp__cuda_plan_new(const struct ddp__call *c, ddp__cuda_make_f *make,
                       size_t side, void **out);

/* Make the plans of all these calls for their prepare to find, by so many
 * threads at a time: compiling one may take a second.  What fails is left to
 * prepare, which says why. */
void ddp__cuda_plans_warm(const struct ddp__call *const *call, int calls,
                          int threads);

/* Whether cuDNN's masks of activations of a type are as ours, on a target.
 * The first time it is tried, which takes a second or two.  bn_mask.c. */
bool ddp__cuda_masks_fit(struct ddp__cudnn_target *t, enum ddp_dtype type);

/* What a task runs with: its variant, its worker, and places in scratch. */
struct ddp__cuda_run {
    struct ddp__cuda_worker *worker;
    const struct ddp__cuda_variant *variant;
    char *side, *workspace;
};
int ddp__cuda_run(const struct ddp__task *t, struct ddp__cuda_run *r);

/* A place of size bytes at r->side, which moves on. */
void *ddp__cuda_take(struct ddp__cuda_run *r, size_t size);

/* Where the libraries can read size bytes: ptr itself if it is aligned, else a
 * copy at r->side.  NULL: failed. */
const void *ddp__cuda_align(struct ddp__cuda_run *r, const void *ptr,
                            size_t size);

/* Sizes at r->side are rounded up to this. */
enum { DDP__CUDA_ALIGN = 256 };

static inline size_t ddp__cuda_round(size_t size)
{
    return (size + DDP__CUDA_ALIGN - 1) / DDP__CUDA_ALIGN * DDP__CUDA_ALIGN;
}

/* Elements of a layer's weight, without its bias. */
size_t ddp__cuda_weight_len(const struct ddp__call *c);

/* y = act(y + bias): rows of c values, bias f32 or NULL. */
int ddp__cuda_bias_act(const struct ddp__cuda_run *r, enum ddp_dtype type,
                       void *y, const float *bias, enum ddp_act act,
                       size_t rows, size_t c);

/* Free the plan of any operation; and what all plans share. */
void ddp__cuda_plan_free(void *plan);
void ddp__cuda_plans_close(void);

#endif
