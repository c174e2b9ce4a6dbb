/* near_sum.c - a sum over ranks that map each other's vectors
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A rank notifies the others when its pieces are ready, adds its slice of all
 * pieces once every rank's are, writes the sum to where each rank needs it, and
 * notifies them again.  After the last of these notices the sum is complete and
 * the pieces may be reused.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/near_sum.h"

/* Elements that are added at a time where they are: they remain in the caches
 * until the sum has been copied. */
enum { NEAR = 4096 };

enum { ABSENT, READY };

/* Exchange notices with all ranks. */
static int notify(struct ddp__exchange *x, int what)
{
    static const char notice[] = {[ABSENT] = ABSENT, [READY] = READY};
    int rc = 0;

    x->said[x->m.wire->rank] = notice[what];
    for (int r = 0; r < x->split.ranks && rc == 0; r++)
        if (r != x->m.wire->rank &&
            (rc = ddp__messages_send(&x->m, r, &notice[what], 1)) == 0)
            rc = ddp__messages_receive(&x->m, r, &x->said[r], 1);
    return rc;
}

static bool are_ready(const struct ddp__exchange *x)
{
    for (int r = 0; r < x->split.ranks; r++)
        if (x->said[r] != READY)
            return false;
    return true;
}

static char *element(const struct ddp__exchange *x, int lane, size_t at)
{
    return (char *)x->near[lane] + at * x->size;
}

static void add(const struct ddp__exchange *x, size_t at, size_t n)
{
    struct ddp__merge m = {0};

    while (ddp__tree_next(x->split.used, &m))
        if (!ddp__merge_is_local(&x->split, &m))
            x->add(element(x, m.to, at), element(x, m.from, at), n);
}

/* The sum, to the ranks that get it. */
static void spread(const struct ddp__exchange *x, size_t at, size_t n)
{
    for (int r = 0; r < x->split.ranks; r++) {
        int lane = ddp__lanes_begin(x->split.lanes, x->split.ranks, r);

        if (lane > 0 && (x->kind != DDP__REDUCE || r == x->root))
            memcpy(element(x, lane, at), element(x, 0, at), n * x->size);
    }
}

/* This rank's slice.  A rank that is absent may be using its memory. */
int ddp__near_sum_make(struct ddp__exchange *x)
{
    size_t end = ddp__exchange_begins(x, x->m.wire->rank + 1), n;

    x->added = true;
    for (size_t at = ddp__exchange_begins(x, x->m.wire->rank);
         are_ready(x) && at < end; at += n) {
        n = end - at < NEAR ? end - at : NEAR;
        add(x, at, n);
        spread(x, at, n);
    }
    return notify(x, READY);
}

int ddp__near_sum_begin(struct ddp__exchange *x)
{
    if (x->added) /* every rank's sum is whole */
        return 0;
    if (!(x->said = calloc((size_t)x->split.ranks, sizeof(*x->said))))
        return ddp__fail(DDP_ENOMEM, "out of memory for an exchange");
    return notify(x, x->absent ? ABSENT : READY);
}
