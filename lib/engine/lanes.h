/* lanes.h - the lanes of each rank, and the tree in which all lanes are summed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_LANES_H
#define DDP_LANES_H

#include <stdbool.h>

/* The lanes of all ranks, and how many of them have samples in a step. */
struct ddp__split {
    int lanes, used, ranks;
};

/* The first lane of a rank; that of the next rank ends its lanes. */
int ddp__lanes_begin(int lanes, int ranks, int rank);
int ddp__lanes_rank(int lanes, int ranks, int lane);

/* One addition of the tree: lane `from` to lane `to`, each the sum of a block
 * of `stride` lanes (the last block may be shorter). */
struct ddp__merge {
    int stride, to, from;
};

/* The next one in the order of the tree, for so many lanes; before the first,
 * all is 0. */
bool ddp__tree_next(int lanes, struct ddp__merge *m);

/* Whether one rank has all lanes of both blocks; then it makes the addition
 * before the ranks exchange anything. */
bool ddp__merge_is_local(const struct ddp__split *s,
                         const struct ddp__merge *m);

/* The sums that are left of lanes begin..end-1 when all additions among them
 * are made: blocks of the tree over so many lanes. */
int ddp__lanes_sums(int begin, int end, int lanes);

/* Mark the lanes that have a sum when all local additions are made: the first
 * of each block that the exchange begins with.  first[lanes]. */
void ddp__pieces(const struct ddp__split *s, bool *first);

#endif
