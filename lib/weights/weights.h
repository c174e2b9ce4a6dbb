/* weights.h - files of weights other than the chain's parameters
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_WEIGHTS_H
#define DDP_WEIGHTS_H

#include "ddp.h"

/* Get the values of a parameter, as ddp_chain_get() returns them. */
typedef int (*ddp__values_f)(void *arg, const char *name, float *out,
                             size_t len);

/* ddp_chain_save() with other values of the chain's parameters. */
int ddp__weights_save(ddp_chain_t *c, const char *path,
                      const struct ddp_save_options *given, ddp__values_f get,
                      void *arg);

#endif
