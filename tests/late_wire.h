/* late_wire.h - a wire between threads that are ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Messages are late and overtake those of other tags.
 */
#ifndef LATE_WIRE_H
#define LATE_WIRE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/exchange.h"

enum { RANKS = 16, TAGS = 6 };

struct rank {
    pthread_t thread;
    struct ddp__wire wire;
    struct ddp__split split;
    bool good;
};

/* Where a rank has its vectors, and how many bytes are or will be received in
 * other places. */
struct place {
    const char *begin, *end;
    size_t staged, most;
};
extern struct place place[RANKS];

struct message;
extern struct message *messages; /* that nobody has received */
extern size_t bytes;             /* of all messages */
extern bool broken;              /* messages are refused */

struct ddp__wire wire_of(int rank, int count);

/* Number messages from 0 again. */
void renumber(void);

#endif
