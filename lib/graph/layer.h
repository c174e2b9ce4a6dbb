/* layer.h - what all layers share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LAYER_SHARED_H
#define DDP_LAYER_SHARED_H

#include <stddef.h>

#include "ddp_layer.h"

/* "name" of child i of l: its own, or its number. */
void ddp__child_name(const ddp_layer_t *l, int i, char *out, size_t size);
/* Append ".name" to path; the old length, for cutting it again. */
size_t ddp__path_push(char *path, size_t size, const ddp_layer_t *l, int i);

/* A layer of several children, which it takes, also on failure. */
ddp_layer_t *ddp__composite_new(size_t size, const struct ddp_layer_ops *ops,
                                int n, ddp_layer_t *const child[]);
int ddp__layer_shape(const ddp_layer_t *l, struct ddp_shape x,
                     struct ddp_shape *y);

/* Call fn for l and then for each layer inside it, in order, where the input of
 * l has shape x; a negative code of fn ends it. */
typedef int (*ddp__layer_f)(const ddp_layer_t *l, const char *name,
                            struct ddp_shape x, struct ddp_shape y, void *arg);
int ddp__layer_each(const ddp_layer_t *l, struct ddp_shape x, ddp__layer_f fn,
                    void *arg);
/* The options of l; how many, or DDP_EINVAL if a custom layer returns more than
 * there is room for. */
int ddp__layer_options(const ddp_layer_t *l,
                       struct ddp_option o[DDP_MAX_OPTIONS]);

/* Whether a layer can begin so; else the message says what is wrong. */
bool ddp__init_valid(const struct ddp_weight_init *init, const char *kind);
/* What the last layer inside l can fuse. */
unsigned ddp__layer_fuses(const ddp_layer_t *l);

#endif
