/* layer.h - what all layers share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LAYER_SHARED_H
#define DDP_LAYER_SHARED_H

#include <stddef.h>

#include "ddp_layer.h"

/* "name" of child i of l: its name if set, else its number. */
void ddp__child_name(const ddp_layer_t *l, int i, char *out, size_t size);
/* Append ".name" to path; returns the old length, to truncate path again. */
size_t ddp__path_push(char *path, size_t size, const ddp_layer_t *l, int i);

/* A layer with several children, which it owns, also on failure. */
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
/* The options of l; returns their number, or DDP_EINVAL if a custom layer
 * returns more than fit. */
int ddp__layer_options(const ddp_layer_t *l,
                       struct ddp_option o[DDP_MAX_OPTIONS]);

/* Whether the initialisation is valid; else sets a message. */
bool ddp__init_valid(const struct ddp_weight_init *init, const char *kind);
/* The operations that the last layer inside l can fuse. */
unsigned ddp__layer_fuses(const ddp_layer_t *l);

#endif
