/* weights.h - files of weights that are not the chain's own
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WEIGHTS_H
#define DDP_WEIGHTS_H

#include "ddp.h"

/* Values of a parameter, as ddp_chain_get() gives them. */
typedef int (*ddp__values_f)(void *arg, const char *name, float *out,
                             size_t len);

/* ddp_chain_save_with() of other values for the chain's parameters. */
int ddp__weights_save(ddp_chain_t *c, const char *path, enum ddp_dtype dtype,
                      ddp__values_f get, void *arg);

#endif
