/* nodes.h - the other nodes of a simulation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_NODES_H
#define DDP_NODES_H

#include "runtime/net.h"

/* How many there are; 1: this is no simulation, or one of a single node. */
int ddp__nodes_count(void);

/* In place of ddp__net_add() and ddp__net_ready(): an operation is done once
 * its load has been carried.  They are carried one after another. */
void ddp__nodes_add(struct ddp__net_op *op);
void ddp__nodes_ready(struct ddp__net_op *op);

void ddp__nodes_close(void);

#endif
