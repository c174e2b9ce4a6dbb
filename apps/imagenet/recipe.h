/* recipe.h - the hyperparameters of a run, from options and data
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef RECIPE_H
#define RECIPE_H

#include "ddp.h"

#include "options.h"

/* Refuse options that have no effect with the others, and settle those that
 * mean the same. */
int recipe_check(const struct opts *o, struct settings *s);

/* Fill in what was left to be derived: devices, batch, lanes, lr, epochs. Every
 * rank calls it.  OPTS_GO or the exit code. */
int recipe_resolve(const struct opts *o, struct settings *s, ddp_t *ddp,
                   const ddp_dataset_t *data);

/* The library's configuration of resolved settings. */
void recipe_config(const struct opts *o, const struct settings *s,
                   struct ddp_train_config *cfg);

#endif
