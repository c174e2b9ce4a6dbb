/* visits.c - how often a search has been in each folder
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Where each of n folders has two links to the next, the last one is reached in
 * 2^n ways.  They are no cycle, so it takes a count to notice.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "storage/visits.h"

/* The slot of a folder, or the free one for it. */
static struct ddp__visit *find_slot(struct ddp__visit *slot, size_t room,
                                    dev_t dev, ino_t ino)
{
    uint64_t i = ((uint64_t)ino ^ (uint64_t)dev << 32) * 0x9E3779B97F4A7C15u;

    for (i >>= 20;; i++) {
        struct ddp__visit *s = &slot[i & (room - 1)];

        if (!s->times || (s->dev == dev && s->ino == ino))
            return s;
    }
}

/* Keep the table at most half full. */
static int grow_table(struct ddp__visits *v)
{
    size_t room = v->room ? 2 * v->room : 64;
    struct ddp__visit *slot;

    if (2 * (v->count + 1) <= v->room)
        return 0;
    if (!(slot = calloc(room, sizeof(*slot))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu folders", v->count);
    for (size_t i = 0; i < v->room; i++)
        if (v->slot[i].times)
            *find_slot(slot, room, v->slot[i].dev, v->slot[i].ino) = v->slot[i];
    free(v->slot);
    v->slot = slot;
    v->room = room;
    return 0;
}

int ddp__visits_count(struct ddp__visits *v, const struct stat *st)
{
    struct ddp__visit *s;
    int rc = grow_table(v);

    if (rc < 0)
        return rc;
    s = find_slot(v->slot, v->room, st->st_dev, st->st_ino);
    s->dev = st->st_dev;
    s->ino = st->st_ino;
    v->count += s->times == 0;
    return ++s->times;
}

void ddp__visits_free(struct ddp__visits *v)
{
    free(v->slot);
    *v = (struct ddp__visits){0};
}
