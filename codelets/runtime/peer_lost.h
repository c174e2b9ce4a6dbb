/* peer_lost.h - what a rank says of another one that is lost
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * All fail with DDP_EPEER and the rank, its host and what it was doing.
 */
#ifndef DDP_PEER_LOST_H
#define DDP_PEER_LOST_H

struct ddp__net;

/* Its process has ended; it has been silent, or has done nothing that others
 * wait for, too long; it has ended without the others. */
int ddp__peer_dead(const struct ddp__net *n, int rank);
int ddp__peer_silent(const struct ddp__net *n, int rank, double seconds);
int ddp__peer_stuck(const struct ddp__net *n, int rank);
int ddp__peer_gone(const struct ddp__net *n, int rank);

/* MPI has not returned for so many seconds: of two ranks it is the other. */
int ddp__peer_inside(const struct ddp__net *n, double seconds);

#endif
