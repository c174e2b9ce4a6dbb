/* common.c - packed weights that the ranks of a host share
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All ranks have the same weights, and would pack them as often as there are
 * ranks.  Those with the same calls, plans and places of copies share one.
 */
#include "config.h"

#include <string.h>

#include "base/crc32c.h"
#include "engine/engine.h"
#include "engine/common.h"
#include "runtime/devices.h"

static uint32_t add_call(uint32_t crc, const struct ddp__call *c, size_t size)
{
    uint64_t what[] = {(uint64_t)c->op, size};

    crc = ddp__crc32c(crc, what, sizeof(what));
    for (int i = 0; i < c->buffers; i++)
        crc = ddp__crc32c(crc, &c->buf[i].shape, sizeof(c->buf[i].shape));
    return crc;
}

/* The bytes of all copies, and what the calls and their processor are, as a
 * checksum: other instructions read other copies. */
static size_t describe(const struct ddp__engine *e, uint32_t *calls)
{
    const struct ddp__devices *d = &e->ddp->devices;
    const char *cpu = ddp__devices_describe(&d->used[d->count - 1]);
    size_t all = 0;

    *calls = ddp__crc32c(0, cpu, strlen(cpu));
    for (int i = 0; i < e->graph->nodes; i++) {
        const struct ddp__call *c = &e->graph->node[i]->call;
        size_t size = ddp__call_common(c);

        *calls = size ? add_call(*calls, c, size) : *calls;
        all += size;
    }
    return all;
}

static void use(const struct ddp__engine *e, char *at)
{
    for (int i = 0; i < e->graph->nodes; i++) {
        const struct ddp__call *c = &e->graph->node[i]->call;
        size_t size = ddp__call_common(c);

        if (size)
            ddp__call_use_common(c, at);
        at += size;
    }
}

int ddp__common_new(struct ddp__engine *e)
{
    uint32_t calls;
    size_t size;
    int rc;

    if (e->ranks == 1 || e->simulated)
        return 0;
    size = describe(e, &calls);
    rc = ddp__host_map(e->ddp, "ddp-weights", size, calls, &e->common);
    if (rc == 0 && e->common.at)
        use(e, e->common.at);
    return rc;
}
