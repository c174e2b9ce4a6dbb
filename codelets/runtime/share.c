/* share.c - the GPUs of one of several processes that see the same ones
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A launcher may give each process GPUs of its own; only those that several
 * processes see are divided.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "runtime/share.h"

/* Parts of a GPU have its place, but not its name. */
int ddp__gpus_key(const struct ddp__gpus *g)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    uint32_t crc = ddp__crc32c(0, g->pci, sizeof(*g->pci) * (size_t)g->count);

    if (visible)
        crc = ddp__crc32c(crc, visible, strlen(visible));
    return (int)(crc & 0x7fffffff);
}

void ddp__gpus_share(struct ddp__gpus *g, int asked, int rank, int ranks)
{
    struct ddp__gpus all = *g;
    int begin = rank * all.count / ranks;
    int end = (rank + 1) * all.count / ranks;

    if (ranks < 2 || all.count == 0)
        return;
    if (asked > 0)
        end = (begin = rank * asked) + asked;
    else if (all.count < ranks)
        end = (begin = rank) + 1;
    g->count = 0;
    for (int i = begin; i < end && g->count < all.count; i++) {
        g->id[g->count] = all.id[i % all.count];
        g->pci[g->count] = all.pci[i % all.count];
        g->info[g->count++] = all.info[i % all.count];
    }
}
