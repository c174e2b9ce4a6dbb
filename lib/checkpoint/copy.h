/* copy.h - all of a run's state in memory: what is written, or was read
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_COPY_H
#define DDP_CHECKPOINT_COPY_H

#include <jansson.h>

#include "engine/engine.h"
#include "weights/safetensors.h"

enum { DDP__CKPT_SETS = 8 };

/* A vector as long as the weights, in the same buckets, and the tensors that
 * store it.  Sets of the same file are consecutive.  To store more in
 * checkpoints, add a row to list_sets() in copy.c. */
struct ddp__ckpt_set {
    const char *file;
    const char *prefix, *suffix; /* "opt.NAME.exp_avg" of a parameter NAME */
    bool running;                /* statistics too */
    struct ddp__handle *(*handle)(const struct ddp__engine *e, int bucket);
    int index; /* of this vector, where a handle holds several */
};

struct ddp__ckpt_copy {
    const struct ddp__params *params; /* how buckets are laid out; not owned */
    struct ddp__ckpt_set set[DDP__CKPT_SETS];
    float *data[DDP__CKPT_SETS]; /* bucket after bucket; owned */
    int sets;
    size_t size;        /* bytes of each */
    int64_t step, best; /* best: the step of the best evaluation */
    json_t *state;      /* trainer.json; owned */
};

/* Allocate room for the state of an engine. */
int ddp__ckpt_copy_new(struct ddp__ckpt_copy *c, const struct ddp__engine *e);
void ddp__ckpt_copy_free(struct ddp__ckpt_copy *c);

/* Fill the sets from the engine that the copy was created for, or the engine
 * from the sets.  Between steps. */
int ddp__ckpt_copy_save(struct ddp__ckpt_copy *c, const struct ddp__engine *e);
/* Where ranks divide the optimizer's state, every rank calls this between
 * steps: fill the rest of c, which may be NULL, from the ranks that keep it. */
int ddp__ckpt_copy_collect(struct ddp__ckpt_copy *c,
                           const struct ddp__engine *e);
int ddp__ckpt_copy_restore(struct ddp__ckpt_copy *c,
                           const struct ddp__engine *e);

/* Where a tensor of a set is in a copy, and its name in the file. */
float *ddp__ckpt_copy_tensor(const struct ddp__ckpt_copy *c, int set,
                             const struct ddp__param_block *b, int i);
void ddp__ckpt_copy_name(const struct ddp__ckpt_copy *c, int set,
                         const struct ddp__param_block *b, int i,
                         char name[DDP__ST_NAME]);

#endif
