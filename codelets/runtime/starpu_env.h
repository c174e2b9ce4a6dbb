/* starpu_env.h - STARPU_* variables, checked before StarPU reads them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_STARPU_ENV_H
#define DDP_STARPU_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/topology.h"

/* Before starpu_conf_init(): refuse values that StarPU answers with an abort.
 * Errors   DDP_EINVAL: the message has the variable, its value and what is
 *          expected. */
int ddp__starpu_env_check(void);

/* Before starpu_init(): the same for numbers that this machine limits. */
int ddp__starpu_env_fits(const struct ddp__topology *t);

/* The GPUs of STARPU_WORKERS_CUDAID, a bit for each; 0: it is not set.  And
 * whether all of them are there, of that many; 0: nobody has looked. */
uint32_t ddp__starpu_env_gpus(void);
int ddp__starpu_env_fits_gpus(int seen);

/* Whether StarPU 1.3 or 1.4 reads the variable STARPU_<name>. */
bool ddp__starpu_env_known(const char *name);

#endif
