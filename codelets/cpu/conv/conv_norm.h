/* conv_norm.h - convolutions with the batch norm of evaluation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_CONV_NORM_H
#define DDP_CPU_CONV_NORM_H

#include "plan.h"

/* Numbers that a plan keeps of weights and norm together. */
size_t ddp__conv_norm_folds(const struct ddp__plan *p);

#endif
