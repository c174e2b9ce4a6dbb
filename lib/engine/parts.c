/* parts.c - a sum over ranks of a long vector, part by part
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * While one part is added others are under way; and a part of a few megabytes
 * travels faster through shared memory than a longer one.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/parts.h"

/* Elements.  With many ranks parts are longer: a short message costs more than
 * its bytes do. */
enum { PART = 1 << 20, LEAST_SLICE = 1 << 14 };

enum { AHEAD = 4 }; /* parts under way at a time */

static size_t part_len(int ranks)
{
    size_t least = (size_t)ranks * LEAST_SLICE;

    return least > PART ? least : PART;
}

int ddp__parts_count(size_t len, int ranks)
{
    return (int)((len + part_len(ranks) - 1) / part_len(ranks));
}

/* Of one part; slices differ by an element. */
static size_t part_room(int ranks, int others)
{
    return (size_t)others * (part_len(ranks) / (size_t)ranks + 1);
}

size_t ddp__parts_room(size_t len, int ranks, int others)
{
    return part_room(ranks, others) * (size_t)ddp__parts_count(len, ranks);
}

size_t ddp__parts_under_way(size_t len, int ranks)
{
    size_t most = AHEAD * part_len(ranks);

    return len < most ? len : most;
}

static int parts_new(struct ddp__parts *p, int ranks)
{
    p->count = ddp__parts_count(p->len, ranks);
    p->part = calloc((size_t)p->count, sizeof(*p->part));
    return p->part ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for an exchange");
}

static int begin_part(struct ddp__parts *p, struct ddp__wire *w,
                      const struct ddp__split *s, int tag)
{
    int i = p->begun++;
    size_t begin = (size_t)i * part_len(s->ranks);
    size_t end = begin + part_len(s->ranks);
    struct ddp__exchange *x = &p->part[i];

    *x = p->all;
    x->begin = begin;
    x->end = end < p->len ? end : p->len;
    if (x->space)
        x->room += (size_t)i * part_room(s->ranks, p->others) * x->size;
    return ddp__exchange_begin(x, w, s, tag + i);
}

/* Parts end in the order in which they began, as far as memory goes. */
int ddp__parts_poll(struct ddp__parts *p, struct ddp__wire *w,
                    const struct ddp__split *s, int tag)
{
    int rc = p->part ? 0 : parts_new(p, s->ranks);

    while (rc == 0 && p->begun < p->count && p->begun < p->ended + AHEAD)
        rc = begin_part(p, w, s, tag);
    for (int i = p->ended; rc >= 0 && i < p->begun; i++) {
        rc = ddp__exchange_poll(&p->part[i]);
        if (rc == 1 && i == p->ended)
            ddp__exchange_end(&p->part[p->ended++]);
    }
    return rc < 0 ? rc : p->ended == p->count;
}

void ddp__parts_free(struct ddp__parts *p)
{
    free(p->part);
}
