/* topology.h - the machine that this process may use: cores, caches, memory
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TOPOLOGY_H
#define DDP_TOPOLOGY_H

#include "ops_backend.h"

/* Further NUMA nodes count as the first. */
enum { DDP__MAX_NODES = 32 };

/* All 0: nothing is known, and every function below answers "node 0". */
struct ddp__topology {
    struct ddp__machine machine; /* for the backends */
    int seen;                    /* cores of the machine, allowed or not */
    int threads;                 /* hyper-threads of a core */
    int packages, nodes;         /* nodes: those that have cores */
    size_t l2, l3;               /* bytes of one cache; 0: none is known */
    uint64_t node_memory;        /* bytes of the first node */
    char unbound[128];           /* why threads cannot be bound to cores; "" */

    struct hwloc_topology *hw; /* owned */
    struct ddp__core {
        unsigned pu; /* the first one allowed, as hwloc and StarPU count */
        int node;
        bool taken;                         /* by ddp__topology_place() */
    } * core;                               /* owned; machine.cores of them */
    struct hwloc_obj *node[DDP__MAX_NODES]; /* not owned */
    unsigned char *node_of_cpu; /* owned; by the kernel's number of a CPU */
    int cpus;
};

/* Ask hwloc, which leaves out what a control group forbids, the process for its
 * affinity, and the control group for its CPU quota.  devices: with PCI
 * devices, which takes some milliseconds. Errors   DDP_ENODEV: hwloc cannot
 * read the topology; DDP_ENOMEM. */
int ddp__topology_load(struct ddp__topology *t, bool devices);
void ddp__topology_free(struct ddp__topology *t);

/* The cores that a rank may use, for those of its host. */
struct ddp__cores {
    uint64_t machine;       /* where numbers of cores hold */
    unsigned char set[512]; /* a bit for the PU of each; further ones count as
                               those of nobody else */
};
void ddp__topology_cores(const struct ddp__topology *t, struct ddp__cores *c);

/* Leave cores that other ranks of this machine may use, too, to them, so that
 * no two of them bind threads to the same; all is by rank.  DDP_ENOMEM. */
int ddp__topology_share(struct ddp__topology *t, const struct ddp__cores *all,
                        int ranks, int rank);

/* The node that is next to a PCI device; -1: unknown. */
int ddp__topology_node_near(const struct ddp__topology *t, unsigned domain,
                            unsigned bus, unsigned device);

/* Fill a list of n PUs, each of another core while there are cores: first
 * `cpus` for CPU workers, then one for each of `gpus` GPUs, then all of it
 * again.  near[i] is the node of GPU i, or -1: as far as there is room, its
 * worker is there, and CPU workers are where GPUs are.  False: that many
 * workers have no place in the list, or no core is known. */
bool ddp__topology_place(struct ddp__topology *t, int cpus, const int *near,
                         int gpus, unsigned *pu, int n);

/* The node that the calling thread runs on, and the one that p's memory is on
 * (or, where nobody knows, the former).  Both cost nothing on one node. */
int ddp__topology_node_here(const struct ddp__topology *t);
int ddp__topology_node_at(const struct ddp__topology *t, const void *p);

/* "2 cores, 1 NUMA node, L2 2 MiB, L3 105 MiB" */
void ddp__topology_describe(const struct ddp__topology *t, char *s,
                            size_t size);

#endif
