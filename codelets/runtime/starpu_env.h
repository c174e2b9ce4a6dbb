/* starpu_env.h - STARPU_* variables, checked before StarPU reads them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STARPU_ENV_H
#define DDP_STARPU_ENV_H

#include <stdbool.h>

#include "runtime/topology.h"

/* Before starpu_conf_init(): refuse values that StarPU answers with an abort.
 * Errors   DDP_EINVAL: the message has the variable, its value and what is
 *          expected. */
int ddp__starpu_env_check(void);

/* Before starpu_init(): the same for numbers that this machine limits. */
int ddp__starpu_env_fits(const struct ddp__topology *t);

/* Whether StarPU 1.3 or 1.4 reads the variable STARPU_<name>. */
bool ddp__starpu_env_known(const char *name);

#endif
