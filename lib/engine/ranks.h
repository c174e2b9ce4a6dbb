/* ranks.h - exchanges between ranks outside of steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_RANKS_H
#define DDP_RANKS_H

#include <stddef.h>

#include "ddp.h"

/* Send len bytes to every rank and wait for theirs: all[len * ranks].  Every
 * rank calls it.  DDP_EPEER: a rank has ended. */
int ddp__ranks_gather(ddp_t *ddp, const void *mine, size_t len, void *all);

/* Whether this step of the preparations, with the result rc and ddp_errmsg(),
 * succeeded on all ranks; else the error of the first on which it failed. */
int ddp__ranks_agree(ddp_t *ddp, int rc);

#endif
