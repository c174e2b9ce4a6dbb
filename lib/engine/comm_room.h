/* comm_room.h - what sums over ranks need in memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_COMM_ROOM_H
#define DDP_COMM_ROOM_H

struct ddp__engine;

/* Bytes of main memory that the exchanges of a step of so many sub-batches take
 * on this rank, beside the sums; 0 without other ranks.  DDP_ENOMEM. */
int ddp__comm_room(const struct ddp__engine *e, int subs, double *bytes);

#endif
