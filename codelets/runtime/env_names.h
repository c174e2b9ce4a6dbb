/* env_names.h - variables of the environment that nothing reads
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ENV_NAMES_H
#define DDP_ENV_NAMES_H

#include <stddef.h>

/* The names, with commas, of variables called DDP_ or STARPU_ something that
 * neither libddp nor StarPU reads; "": there are none. */
void ddp__env_unknown(char *list, size_t size);

#endif
