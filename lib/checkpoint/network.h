/* network.h - a network as its user wrote it, as JSON
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CHECKPOINT_NETWORK_H
#define DDP_CHECKPOINT_NETWORK_H

#include <jansson.h>

#include "ddp.h"

/* An array of all layers, those with others inside before these: their name,
 * kind, input and output shape, options, parameters with their shapes, number
 * of layers directly inside.  For input of shape in.  *out is to be freed. */
int ddp__network_json(ddp_chain_t *chain, struct ddp_shape in, json_t **out);

#endif
