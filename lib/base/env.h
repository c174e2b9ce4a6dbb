/* env.h - numbers in the environment
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ENV_H
#define DDP_ENV_H

#include <stdbool.h>

/* Read a number from an environment variable, if it is set. */
int ddp__env_number(const char *name, int least, int most, int *value);

/* Whether it is 1; unset, empty or 0: no. */
int ddp__env_switch(const char *name, bool *on);

#endif
