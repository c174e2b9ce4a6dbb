/* params_bind.h - parameters that a context holds as StarPU data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PARAMS_BIND_H
#define DDP_PARAMS_BIND_H

#include "graph/params.h"

/* A chain belongs to the first context that uses it, until that ends.  Without
 * `values` the caller gives it initial ones, which take a while, later. */
int ddp__params_bind(struct ddp__params *p, ddp_t *ddp, bool values);
void ddp__params_unbind(struct ddp__params *p);
/* Cache an object until the parameters are unbound; it replaces one with the
 * same function.  Take it back, or NULL. */
void ddp__params_keep(struct ddp__params *p, struct ddp__kept *k);
struct ddp__kept *ddp__params_take(struct ddp__params *p,
                                   void (*free)(struct ddp__kept *k));
/* Give the host access to the weights between begin and end; for writing, those
 * that have no values yet get none. */
int ddp__params_begin(struct ddp__params *p, bool write);
void ddp__params_end(struct ddp__params *p);

#endif
