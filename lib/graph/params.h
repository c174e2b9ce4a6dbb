/* params.h - parameters of a chain, in buckets
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PARAMS_H
#define DDP_PARAMS_H

#include "ops.h"
#include "runtime/buffer.h"
#include "runtime/context.h"

struct ddp__param_block {
    ddp_layer_t *layer; /* not owned */
    char prefix[160];
    int bucket;
    size_t offset, len; /* elements, in the bucket */
    int params;
    struct ddp_param param[DDP_MAX_PARAMS];
    size_t param_offset[DDP_MAX_PARAMS]; /* elements in the block */
    bool set[DDP_MAX_PARAMS]; /* by the program, since all were initialised */
};

struct ddp__bucket {
    float *w; /* owned; NULL until the parameters are valued */
    size_t len;
    struct ddp__handle handle; /* of w, while bound */
    struct ddp__span *span;    /* owned */
    int spans;
};

/* An object that is built from a root chain once and cached for the next user.
 * Its free function identifies its kind. */
struct ddp__kept {
    struct ddp__kept *next;
    void (*free)(struct ddp__kept *k);
};

/* All parameters of a root chain, as buckets in reverse layer order. */
struct ddp__params {
    struct ddp__bound bound; /* to ddp, if that is set */
    struct ddp__param_block *block;
    int blocks;
    struct ddp__bucket *bucket;
    int buckets;
    size_t total;           /* elements of all blocks */
    size_t held;            /* of all buckets, with the gaps between blocks */
    bool valued;            /* buckets have memory, with values in it */
    ddp_t *ddp;             /* bound to; NULL: not */
    struct ddp__kept *kept; /* while bound; owned */
    char **metadata;        /* for files: key, value, ..., NULL; owned */
};

/* The parameters of a root chain, created at first use; their values are
 * created when they are first read, set or bound. */
struct ddp__params *ddp__params_of(ddp_chain_t *chain);
void ddp__params_free(struct ddp__params *p);
/* Allocate memory for values, all of which the caller sets next. */
int ddp__params_reserve(struct ddp__params *p);
/* Initialise those that the program has not set: the values of
 * ddp_chain_init(). */
int ddp__params_init_rest(struct ddp__params *p, uint64_t seed);
int ddp__params_bind(struct ddp__params *p, ddp_t *ddp);
void ddp__params_unbind(struct ddp__params *p);
/* Cache an object until the parameters are unbound; it replaces one with the
 * same function.  Take it back, or NULL. */
void ddp__params_keep(struct ddp__params *p, struct ddp__kept *k);
struct ddp__kept *ddp__params_take(struct ddp__params *p,
                                   void (*free)(struct ddp__kept *k));
/* Give the host access to the weights between begin and end. */
int ddp__params_begin(struct ddp__params *p, bool write);
void ddp__params_end(struct ddp__params *p);
/* Find "block.param"; DDP_EINVAL. */
int ddp__params_find(const struct ddp__params *p, const char *name,
                     const struct ddp__param_block **b, int *i);
/* "block.param" of the element at a place in all buckets. */
void ddp__params_name(const struct ddp__params *p, size_t place, char *out,
                      size_t size);
/* Copy between our order of elements and PyTorch's. */
void ddp__param_export(const struct ddp_param *p, const float *in, float *out);
void ddp__param_import(const struct ddp_param *p, const float *in, float *out);
size_t ddp__param_len(const struct ddp_param *p);
/* "block.param" */
enum { DDP__PARAM_NAME = 160 };
void ddp__param_name(const struct ddp__param_block *b, int i,
                     char out[DDP__PARAM_NAME]);

#endif
