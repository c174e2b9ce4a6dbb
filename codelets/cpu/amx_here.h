/* amx_here.h - whether there are AMX tiles
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_AMX_HERE_H
#define DDP_AMX_HERE_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) &&          \
    (defined(__clang__) || __GNUC__ >= 11)
#define DDP__AMX 1
#endif

/* Whether this process may use tiles of a processor that has them: Intel's
 * since Sapphire Rapids, unless oneDNN's limit of instructions excludes them.
 * Kernels that were measured there alone ask, too. */
bool ddp__amx_here(void);

#endif
