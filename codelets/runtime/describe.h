/* describe.h - the line "devices:" of a context
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DESCRIBE_H
#define DDP_DESCRIBE_H

#include "runtime/context.h"

/* Fill in ddp->describe, once workers run and kernels are chosen. */
void ddp__describe(ddp_t *ddp);

/* The models of the GPUs that have workers, each once: "NVIDIA H100, Tesla T4".
 */
void ddp__describe_gpus(const ddp_t *ddp, char *text, size_t size);

#endif
