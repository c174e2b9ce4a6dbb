/* stage.c - parts of a vector of a GPU in main memory, while they travel
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU copies vectors as a whole, so a long one would be copied first, then
 * sent, and then copied back.
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/stage.h"

static int copy_pieces(const struct ddp__stage *s, struct ddp__staged *p,
                       void *const *piece, int lanes, const struct ddp__cut *c,
                       char *room)
{
    size_t begin = c->begin + c->from;
    int rc = s->space->enter(s->device);

    for (int l = 0; l < lanes && rc == 0; l++) {
        if (!piece[l])
            continue;
        p->piece[l] = room;
        rc = s->space->carry(room + c->from, (char *)piece[l] + begin,
                             c->to - c->from, true);
        room += c->n;
    }
    p->sum = piece[0] ? p->piece[0] : room;
    return rc < 0 ? rc : s->space->mark(true, &p->ticket);
}

int ddp__stage_fetch(const struct ddp__stage *s, struct ddp__staged *p,
                     void *const *piece, int lanes, const struct ddp__cut *c,
                     char *room)
{
    if (!(p->piece = calloc((size_t)lanes, sizeof(*p->piece))))
        return ddp__fail(DDP_ENOMEM, "out of memory for an exchange");
    return copy_pieces(s, p, piece, lanes, c, room);
}

int ddp__stage_store(const struct ddp__stage *s, struct ddp__staged *p,
                     void *sum, const struct ddp__cut *c)
{
    int rc = s->space->enter(s->device);

    if (rc == 0)
        rc = s->space->carry((char *)sum + c->begin + c->from,
                             (char *)p->sum + c->from, c->to - c->from, false);
    return rc < 0 ? rc : s->space->mark(false, &p->ticket);
}

int ddp__stage_poll(const struct ddp__stage *s, struct ddp__staged *p)
{
    return p->ticket ? s->space->passed(&p->ticket) : 1;
}

/* The device writes to memory that others get next. */
void ddp__stage_end(const struct ddp__stage *s, struct ddp__staged *p)
{
    while (ddp__stage_poll(s, p) == 0)
        ;
    free(p->piece);
    p->piece = NULL;
}
