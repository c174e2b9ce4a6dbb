/* share.h - the GPUs of one of several processes that see the same ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SHARE_H
#define DDP_SHARE_H

#include "device.h"

/* A number that processes of a host have in common if they see the same GPUs;
 * not negative. */
int ddp__gpus_key(const struct ddp__gpus *g);

/* Keep process `rank`'s share of what `ranks` processes see: asked GPUs, or
 * (asked < 0) as many as each can have for itself.  Where there are too few,
 * processes share a GPU. */
void ddp__gpus_share(struct ddp__gpus *g, int asked, int rank, int ranks);

#endif
