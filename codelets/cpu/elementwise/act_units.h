/* act_units.h - elementwise activations and sums by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ACT_UNITS_H
#define DDP_ACT_UNITS_H

#include <stdbool.h>
#include <stddef.h>

#include "cpu/isa.h"
#include "ops.h"

/* If ddp__unit_v16(): y = act(x), or act(x + z) where there is a z, and
 * dx = dy act'(s), as ddp__act_grad() has s.  An input may be the result. */
DDP__X86_ONLY void ddp__act_units(enum ddp_act act, const void *x,
                                  const void *z, void *y, size_t len, bool b);
DDP__X86_ONLY void ddp__act_grad_units(enum ddp_act act, const void *s,
                                       const void *dy, void *dx, size_t len,
                                       bool b);

#endif
