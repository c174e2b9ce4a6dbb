/* numa.c - what CPU workers read from the memory of other NUMA nodes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory is on the node of the worker that wrote it last: a buffer of a lane is
 * allocated by the worker that writes it first, and is the lane's.  SimGrid
 * runs one thread of the simulation at a time: no locks here.
 */
#include "config.h"

#include <stdlib.h>

#include "numa.h"

static int nodes = 1;
static double far_us; /* what a byte of another node takes longer */

/* By number of the buffer. */
static struct place {
    int node;                      /* 1 + that of its last writer; 0: nobody */
    double copied[DDP__NUMA_MOST]; /* bytes that each node has read since */
} * place;
static size_t places;

static double bytes_read, bytes_remote, bytes_once;

void ddp__numa_set(int n, double us)
{
    nodes = n;
    far_us = us;
}

/* NULL: there is no memory, and the buffer is not counted. */
static struct place *place_of(uint64_t buffer)
{
    size_t more = 2 * (size_t)buffer + 1024;
    struct place *p;

    if (buffer < places)
        return &place[buffer];
    if (!(p = realloc(place, more * sizeof(*p))))
        return NULL;
    for (size_t i = places; i < more; i++)
        p[i] = (struct place){0};
    place = p;
    places = more;
    return &place[buffer];
}

/* A part of a buffer that a node reads is one that it has not read yet, until
 * it has read as much as there is. */
static void count_read(double *copied, size_t size, double bytes)
{
    double fresh = (double)size - *copied;

    fresh = bytes < fresh ? bytes : fresh;
    bytes_remote += bytes;
    bytes_once += fresh;
    *copied += fresh;
}

static int node_of(int worker)
{
    return starpu_worker_get_devid(worker) * nodes /
           (int)starpu_cpu_worker_get_count();
}

static int home_of(const struct place *p, uint64_t buffer)
{
    return p && p->node ? p->node - 1 : (int)(buffer % (uint64_t)nodes);
}

bool ddp__numa_is_far(int worker, uint64_t buffer)
{
    const struct place *p = buffer < places ? &place[buffer] : NULL;

    return nodes > 1 && worker >= 0 && home_of(p, buffer) != node_of(worker);
}

double ddp__numa_far_us(double bytes)
{
    return far_us * bytes;
}

void ddp__numa_used(int worker, uint64_t buffer, size_t size, double bytes,
                    enum ddp_access access, bool was_far)
{
    struct place *p = nodes > 1 ? place_of(buffer) : NULL;
    int node = node_of(worker);

    if (!p)
        return;
    if (access != DDP_WRITE) {
        bytes_read += bytes;
        if (was_far)
            count_read(&p->copied[node], size, bytes);
    }
    if (access != DDP_READ)
        *p = (struct place){.node = node + 1};
}

void ddp__numa_seen(struct ddp_simulation *s)
{
    s->read_bytes = bytes_read;
    s->remote_bytes = bytes_remote;
    s->once_bytes = bytes_once;
}
