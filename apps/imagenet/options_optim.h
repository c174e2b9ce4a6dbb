/* options_optim.h - the options of optimizers and schedules
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef OPTIONS_OPTIM_H
#define OPTIONS_OPTIM_H

#include <stddef.h>

#include "common/opt.h"

extern const struct opt_group options_optimizer_group, options_schedule_group;

/* The name of the i-th optimizer, or NULL after the last. */
const char *options_optimizer(int i);

/* Into `text` of `size` bytes: the optimizers that an option is for. */
void options_momentum_users(char *text, size_t size);
void options_beta_users(char *text, size_t size);
void options_eps_users(char *text, size_t size);
void options_lr_base_users(char *text, size_t size);

#endif
