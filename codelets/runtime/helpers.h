/* helpers.h - workers that have no task help with a long one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_HELPERS_H
#define DDP_HELPERS_H

#include "ddp.h"

struct ddp__helpers;

/* The kernels of the task that this worker begins are shared with workers that
 * are idle before it ends.  NULL: there are none. */
struct ddp__helpers *ddp__helpers_begin(ddp_t *ddp);

/* NULL: nothing happens. */
void ddp__helpers_end(struct ddp__helpers *h);

#endif
