/* patch_run.h - tasks of a convolution as a product of patches
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PATCH_RUN_H
#define DDP_PATCH_RUN_H

#include "cpu/conv/plan.h"

/* A task of a plan that has a product. */
int ddp__patch_run(const struct ddp__task *t, struct ddp__plan *p);

#endif
