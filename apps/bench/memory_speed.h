/* memory_speed.h - how fast the cores copy and read memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef MEMORY_SPEED_H
#define MEMORY_SPEED_H

/* Bytes a second of memory, past the caches, of all cores together. */
struct memory {
    double copy; /* read and written by copies */
    double read; /* by cores that only read */
};

/* Measure this many cores at once, for about `seconds` each time.  -1 when
 * threads cannot be started, or there is no memory. */
int memory_measure(struct memory *m, int cores, double seconds);

/* How long it takes at least to read and write so many bytes, `read` of them
 * read: as a copy does it, and no faster than the cores read. */
double memory_seconds(const struct memory *m, double bytes, double read);

#endif
