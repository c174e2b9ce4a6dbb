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
static int under_way;

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

static void carry_ready(void);

static void carried(void *arg)
{
    struct ddp__net_op *op = arg, **at;

    for (at = &first; *at != op; at = &(*at)->next)
        ;
    if (!(*at = op->next))
        end = at;
    under_way--;
    carry_ready();
    op->done(op, 0);
}

/* As the thread of a real one: the first in the order of submission, and one
 * more, whose first copies are made meanwhile. */
static void carry_ready(void)
{
    bool held = false, waits = false;

    for (struct ddp__net_op *op = first, *next; op && !held; op = next) {
        bool begins = op->ready && !op->begun && under_way < DDP__NET_UNDER_WAY;

        next = op->next;
        held = ddp__net_holds(op, &waits) && !begins;
        if (!begins)
            continue;
        op->begun = true;
        under_way++;
        simulated()->carry(&op->load, carried, op);
    }
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
    carry_ready();
}

void ddp__nodes_close(void)
{
    const struct ddp__device *d = simulated();

    if (d)
        d->close_nodes();
}
