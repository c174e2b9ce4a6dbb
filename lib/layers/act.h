/* act.h - what a layer of activations is
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_ACT_H
#define DDP_ACT_H

#include "ddp.h"

/* The activation if l consists only of one, else DDP_IDENTITY. */
enum ddp_act ddp__layer_act(const ddp_layer_t *l);

#endif
