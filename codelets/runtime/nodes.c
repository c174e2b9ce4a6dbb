/* nodes.c - the other nodes of a simulation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All nodes do the same, so one is simulated, and of its exchanges the time
 * that they take.  SimGrid runs one thread of the simulation at a time: no
 * locks here.
 */
#include "config.h"

#include "runtime/devices.h"
#include "runtime/device_list.h"
#include "runtime/nodes.h"

static struct ddp__net_op *first, **end = &first;

static const struct ddp__device *simulated(void)
{
    for (int i = 0; ddp__devices[i]; i++)
        if (ddp__devices[i]->nodes)
            return ddp__devices[i];
    return NULL;
}

int ddp__nodes_count(void)
{
    const struct ddp__device *d = simulated();

    return d ? d->nodes() : 1;
}

static void carry_first(void);

static void carried(void *arg)
{
    struct ddp__net_op *op = arg;

    if (!(first = op->next))
        end = &first;
    carry_first();
    op->done(op, 0);
}

static void carry_first(void)
{
    if (!first || !first->ready || first->begun)
        return;
    first->begun = true;
    simulated()->carry(&first->load, carried, first);
}

void ddp__nodes_add(struct ddp__net_op *op)
{
    op->next = NULL;
    *end = op;
    end = &op->next;
}

void ddp__nodes_ready(struct ddp__net_op *op)
{
    op->ready = true;
    carry_first();
}

void ddp__nodes_close(void)
{
    const struct ddp__device *d = simulated();

    if (d)
        d->close_nodes();
}
