/* pad.h - images of three channels, widened
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_PAD_H
#define DDP_PAD_H

#include "ddp_layer.h"

/* Widen images for convolutions. */
void ddp__graph_pad(ddp_graph_t *g);

#endif
