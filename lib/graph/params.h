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
    float *w; /* owned; NULL until there are values */
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
    size_t least;           /* of a bucket, before the next one begins */
    bool valued;            /* all have values, not only those that are set */
    ddp_t *ddp;             /* bound to; NULL: not */
    struct ddp__kept *kept; /* while bound; owned */
    char **metadata;        /* for files: key, value, ..., NULL; owned */
};

/* The parameters of a root chain, created at first use; their values are
 * created when they are first read, set or bound. */
struct ddp__params *ddp__params_of(ddp_chain_t *chain);
void ddp__params_free(struct ddp__params *p);
/* Have fewer and larger buckets from now on, if no context holds them yet. */
int ddp__params_join(struct ddp__params *p);
/* Find "block.param"; DDP_EINVAL. */
int ddp__params_find(const struct ddp__params *p, const char *name,
                     const struct ddp__param_block **b, int *i);
/* The same for a caller with so many values; DDP_ESHAPE: it has another number,
 * DDP_EINVAL: values is NULL. */
int ddp__params_find_for(const struct ddp__params *p, const char *name,
                         const float *values, size_t len,
                         const struct ddp__param_block **b, int *i);
/* "block.param" of the element at a place in all buckets. */
void ddp__params_name(const struct ddp__params *p, size_t place, char *out,
                      size_t size);
size_t ddp__param_len(const struct ddp_param *p);
/* "block.param" */
enum { DDP__PARAM_NAME = 160 };
void ddp__param_name(const struct ddp__param_block *b, int i,
                     char out[DDP__PARAM_NAME]);

#endif
