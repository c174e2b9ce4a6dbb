/* network.h - the network between nodes of a simulation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_SIM_NETWORK_H
#define DDP_SIM_NETWORK_H

#include "ddp.h"
#include "device.h"

void ddp__network_set(int nodes, const struct ddp_network_speed *s);
int ddp__network_nodes(void);
void ddp__network_carry(const struct ddp__load *l, void (*over)(void *arg),
                        void *arg);
void ddp__network_close(void);

#endif
