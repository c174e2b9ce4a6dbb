/* packed.h - forward passes by libddp's kernels that read packed weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_PACKED_H
#define DDP_CPU_PACKED_H

#include "plan.h"

/* Whether a plan has such a kernel. */
bool ddp__packed_has(const struct ddp__plan *p);

/* A forward pass or data gradient of such a plan.  by: factors of the filters,
 * which a plan of inference needs, or NULL; bias: used if the layer has one. */
int ddp__packed_run(const struct ddp__task *t, struct ddp__plan *p,
                    const float *by, const float *bias);

/* Phase (a, b) of a data gradient, whose plan has one that multiplies integers.
 */
int ddp__packed_phase(const struct ddp__task *t, const struct ddp__plan *p,
                      int a, int b);

/* What names the weights of a task if other processes may have them packed; 0:
 * none have. */
uint64_t ddp__packed_key(const struct ddp__task *t, const struct ddp__plan *p);

#endif
