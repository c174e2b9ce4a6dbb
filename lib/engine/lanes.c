/* lanes.c - the lanes of each rank, and the tree in which all lanes are summed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The tree depends only on the number of lanes.  A rank has consecutive lanes,
 * so it can make many of the additions alone; the others are made between
 * ranks, so the sum has the same bits on any number of ranks.
 */
#include "config.h"

#include <stdint.h>

#include "engine/lanes.h"

int ddp__lanes_begin(int lanes, int ranks, int rank)
{
    return (int)((int64_t)rank * lanes / ranks);
}

int ddp__lanes_rank(int lanes, int ranks, int lane)
{
    int rank = (int)((int64_t)lane * ranks / lanes);

    while (ddp__lanes_begin(lanes, ranks, rank + 1) <= lane)
        rank++;
    return rank;
}

bool ddp__tree_next(int lanes, struct ddp__merge *m)
{
    m->to += 2 * m->stride;
    if (m->stride == 0)
        m->stride = 1;
    for (; m->stride < lanes; m->stride *= 2, m->to = 0) {
        m->from = m->to + m->stride;
        if (m->from < lanes)
            return true;
    }
    return false;
}

bool ddp__merge_is_local(const struct ddp__split *s, const struct ddp__merge *m)
{
    int last = m->from + m->stride - 1;

    if (last >= s->used)
        last = s->used - 1;
    return ddp__lanes_rank(s->lanes, s->ranks, m->to) ==
           ddp__lanes_rank(s->lanes, s->ranks, last);
}

/* Whether a block of the tree begins at a lane, and ends by `end`. */
static bool is_block(int lane, int stride, int end, int lanes)
{
    return lane % stride == 0 && (lane + stride <= end || end == lanes);
}

int ddp__lanes_sums(int begin, int end, int lanes)
{
    int sums = 0, stride;

    for (; begin < end; begin += stride, sums++)
        for (stride = 1;
             stride < lanes && is_block(begin, 2 * stride, end, lanes);)
            stride *= 2;
    return sums;
}

void ddp__pieces(const struct ddp__split *s, bool *first)
{
    struct ddp__merge m = {0};

    for (int l = 0; l < s->lanes; l++)
        first[l] = l < s->used;
    while (ddp__tree_next(s->used, &m))
        if (ddp__merge_is_local(s, &m))
            first[m.from] = false;
}
