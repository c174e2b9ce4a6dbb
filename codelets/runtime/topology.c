/* topology.c - what hwloc knows of the machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The affinity of the process (taskset, mpirun, batch systems) selects cores,
 * but removes none from hwloc's topology: StarPU loads the same one, and the
 * numbers of PUs must be the same there.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "base/cgroup.h"
#include "base/error.h"
#include "runtime/topology.h"

/* ---- loading ------------------------------------------------------------ */

static int load_hwloc(hwloc_topology_t *hw, bool devices)
{
    if (hwloc_topology_init(hw) < 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for hwloc's topology");
    if (devices)
        hwloc_topology_set_io_types_filter(*hw,
                                           HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(*hw) == 0)
        return 0;
    hwloc_topology_destroy(*hw);
    *hw = NULL;
    return ddp__fail(DDP_ENODEV,
                     "hwloc could not read the topology of this machine: %s",
                     strerror(errno));
}

/* Of all threads of the process: a library may have bound the one that calls.
 */
static hwloc_bitmap_t affinity(hwloc_topology_t hw)
{
    hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(hw);
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (!set)
        return NULL;
    if (hwloc_get_cpubind(hw, set, HWLOC_CPUBIND_PROCESS) < 0 ||
        !hwloc_bitmap_intersects(set, allowed))
        hwloc_bitmap_copy(set, allowed);
    hwloc_bitmap_and(set, set, allowed);
    return set;
}

/* Nodes with cores; a second node of the same cores (fast memory) is not where
 * the kernel takes pages from first. */
static void find_nodes(struct ddp__topology *t)
{
    hwloc_obj_t o = NULL;
    int i;

    while ((o = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_NUMANODE, o))) {
        for (i = 0; i < t->nodes; i++)
            if (hwloc_bitmap_intersects(o->cpuset, t->node[i]->cpuset))
                break;
        if (i == t->nodes && i < DDP__MAX_NODES &&
            !hwloc_bitmap_iszero(o->cpuset))
            t->node[t->nodes++] = o;
    }
    t->node_memory = t->nodes ? t->node[0]->attr->numanode.local_memory : 0;
}

static int node_of_set(const struct ddp__topology *t, hwloc_const_bitmap_t set)
{
    for (int i = 0; i < t->nodes; i++)
        if (hwloc_bitmap_isincluded(set, t->node[i]->cpuset))
            return i;
    return -1;
}

/* Where the system does not report cores, each PU is one. */
static int find_cores(struct ddp__topology *t, hwloc_const_bitmap_t may)
{
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_CORE) > 0
                                ? HWLOC_OBJ_CORE
                                : HWLOC_OBJ_PU;
    hwloc_obj_t o = NULL, pu;
    int node;

    t->seen = hwloc_get_nbobjs_by_type(t->hw, type);
    if (!(t->core = calloc((size_t)t->seen + 1, sizeof(*t->core))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %d cores", t->seen);
    while ((o = hwloc_get_next_obj_by_type(t->hw, type, o))) {
        for (pu = NULL; (pu = hwloc_get_next_obj_inside_cpuset_by_type(
                             t->hw, o->cpuset, HWLOC_OBJ_PU, pu));)
            if (hwloc_bitmap_isset(may, pu->os_index))
                break;
        if (!pu)
            continue;
        node = node_of_set(t, o->cpuset);
        t->core[t->machine.cores++] = (struct ddp__core){
            .pu = pu->logical_index, .node = node < 0 ? 0 : node};
    }
    return 0;
}

static int find_cpus(struct ddp__topology *t)
{
    hwloc_obj_t pu = NULL;
    int node;

    t->cpus = hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(t->hw)) + 1;
    if (t->nodes < 2)
        return 0;
    if (!(t->node_of_cpu = calloc((size_t)t->cpus + 1, 1)))
        return ddp__fail(DDP_ENOMEM, "out of memory for %d processors",
                         t->cpus);
    while ((pu = hwloc_get_next_obj_by_type(t->hw, HWLOC_OBJ_PU, pu)))
        if ((node = node_of_set(t, pu->cpuset)) > 0)
            t->node_of_cpu[pu->os_index] = (unsigned char)node;
    return 0;
}

/* The cache above the first core, and how many cores share it. */
static size_t cache(const struct ddp__topology *t, hwloc_obj_type_t type,
                    int *sharers)
{
    hwloc_obj_t o =
        t->machine.cores
            ? hwloc_get_obj_by_type(t->hw, HWLOC_OBJ_PU, t->core[0].pu)
            : NULL;

    while (o && o->type != type)
        o = o->parent;
    if (o && sharers)
        *sharers = hwloc_get_nbobjs_inside_cpuset_by_type(t->hw, o->cpuset,
                                                          HWLOC_OBJ_CORE);
    return o ? o->attr->cache.size : 0;
}

static void find_caches(struct ddp__topology *t)
{
    int sharers = 1;

    t->l3 = cache(t, HWLOC_OBJ_L3CACHE, NULL);
    t->l2 = cache(t, HWLOC_OBJ_L2CACHE, &sharers);
    t->machine.l2_of_core = t->l2 / (size_t)(sharers > 1 ? sharers : 1);
}

/* Threads of a group with a quota share all cores with other groups, which
 * would be bound to the same first ones. */
static void apply_quota(struct ddp__topology *t)
{
    int quota = hwloc_topology_is_thissystem(t->hw)
                    ? ddp__cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup")
                    : 0;

    if (quota == 0 || quota >= t->machine.cores)
        return;
    t->machine.cores = quota;
    snprintf(t->unbound, sizeof(t->unbound),
             "a CPU quota limits the time of this process, not its cores");
}

/* StarPU ends the process when it cannot bind a thread, so this tries, with the
 * affinity that the thread has already. */
static void try_binding(struct ddp__topology *t)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (!hwloc_topology_is_thissystem(t->hw))
        snprintf(t->unbound, sizeof(t->unbound),
                 "HWLOC_* variables describe another machine");
    else if (!set || hwloc_get_cpubind(t->hw, set, HWLOC_CPUBIND_THREAD) < 0 ||
             hwloc_set_cpubind(t->hw, set, HWLOC_CPUBIND_THREAD) < 0)
        snprintf(t->unbound, sizeof(t->unbound), "the system refuses it: %s",
                 strerror(errno));
    hwloc_bitmap_free(set);
}

static int find_all(struct ddp__topology *t)
{
    hwloc_bitmap_t may = affinity(t->hw);
    int rc;

    if (!may)
        return ddp__fail(DDP_ENOMEM, "out of memory for a set of processors");
    find_nodes(t);
    if ((rc = find_cores(t, may)) == 0 && (rc = find_cpus(t)) == 0) {
        find_caches(t);
        t->packages = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_PACKAGE);
        t->threads = hwloc_get_nbobjs_by_type(t->hw, HWLOC_OBJ_PU) / t->seen;
        try_binding(t);
        apply_quota(t);
    }
    hwloc_bitmap_free(may);
    return rc;
}

int ddp__topology_load(struct ddp__topology *t, bool devices)
{
    int rc;

    memset(t, 0, sizeof(*t));
    if ((rc = load_hwloc(&t->hw, devices)) == 0 && (rc = find_all(t)) < 0)
        ddp__topology_free(t);
    return rc;
}

void ddp__topology_free(struct ddp__topology *t)
{
    if (t->hw)
        hwloc_topology_destroy(t->hw);
    free(t->core);
    free(t->node_of_cpu);
    memset(t, 0, sizeof(*t));
}

int ddp_core_count(void)
{
    struct ddp__topology t;
    int rc = ddp__topology_load(&t, false), cores = t.machine.cores;

    if (rc < 0)
        return rc;
    ddp__topology_free(&t);
    return cores;
}

/* ---- ranks of one machine ----------------------------------------------- */

void ddp__topology_cores(const struct ddp__topology *t, struct ddp__cores *c)
{
    memset(c->set, 0, sizeof(c->set));
    for (int i = 0; i < t->machine.cores; i++)
        if (t->core[i].pu / 8 < sizeof(c->set))
            c->set[t->core[i].pu / 8] |=
                (unsigned char)(1 << t->core[i].pu % 8);
}

/* The ranks of a machine that may use a core. */
struct users {
    const struct ddp__cores **of; /* by place among those of the machine */
    int count, own;
};

static bool may_use(const struct ddp__cores *c, unsigned pu)
{
    return pu / 8 < sizeof(c->set) && (c->set[pu / 8] >> pu % 8 & 1);
}

static bool have_same_users(const struct users *u, unsigned a, unsigned b)
{
    for (int i = 0; i < u->count; i++)
        if (may_use(u->of[i], a) != may_use(u->of[i], b))
            return false;
    return true;
}

/* Cores that the same ranks may use are divided among these, side by side. */
static bool is_ours(const struct ddp__topology *t, const struct users *u,
                    int core)
{
    unsigned pu = t->core[core].pu;
    int cores = 0, before = 0, ranks = 0, own = 0;

    for (int i = 0; i < t->machine.cores; i++)
        if (have_same_users(u, t->core[i].pu, pu)) {
            before += i < core;
            cores++;
        }
    for (int i = 0; i < u->count; i++)
        if (i == u->own || may_use(u->of[i], pu)) {
            own += i < u->own;
            ranks++;
        }
    return before >= own * cores / ranks && before < (own + 1) * cores / ranks;
}

/* Where there are fewer cores than ranks, no thread is bound. */
static void keep_one(struct ddp__topology *t, const struct users *u)
{
    t->core[0] = t->core[u->own % t->machine.cores];
    t->machine.cores = 1;
    if (!t->unbound[0])
        snprintf(t->unbound, sizeof(t->unbound),
                 "there are more ranks than cores");
}

static void keep_ours(struct ddp__topology *t, const struct users *u,
                      bool *ours)
{
    int kept = 0;

    for (int i = 0; i < t->machine.cores; i++)
        ours[i] = is_ours(t, u, i);
    for (int i = 0; i < t->machine.cores; i++)
        if (ours[i])
            t->core[kept++] = t->core[i];
    if (kept)
        t->machine.cores = kept;
    else
        keep_one(t, u);
}

int ddp__topology_share(struct ddp__topology *t, const struct ddp__cores *all,
                        int ranks, int rank)
{
    struct users u = {.of = calloc((size_t)ranks, sizeof(*u.of))};
    bool *ours = calloc((size_t)t->machine.cores + 1, sizeof(*ours));
    int rc =
        u.of && ours ? 0 : ddp__fail(DDP_ENOMEM, "out of memory for ranks");

    for (int r = 0; rc == 0 && r < ranks; r++) {
        if (r == rank)
            u.own = u.count;
        if (all[r].machine == all[rank].machine)
            u.of[u.count++] = &all[r];
    }
    if (u.count > 1 && t->machine.cores > 0)
        keep_ours(t, &u, ours);
    free(u.of);
    free(ours);
    return rc;
}

/* ---- places ------------------------------------------------------------- */

int ddp__topology_node_near(const struct ddp__topology *t, unsigned domain,
                            unsigned bus, unsigned device)
{
    hwloc_obj_t o =
        t->hw ? hwloc_get_pcidev_by_busid(t->hw, domain, bus, device, 0) : NULL;

    o = o ? hwloc_get_non_io_ancestor_obj(t->hw, o) : NULL;
    return o ? node_of_set(t, o->cpuset) : -1;
}

/* The first free core of a node, or (-1) of any; -1: there is none. */
static int free_core(const struct ddp__topology *t, int node)
{
    for (int i = 0; i < t->machine.cores; i++)
        if (!t->core[i].taken && (node < 0 || t->core[i].node == node))
            return i;
    return -1;
}

/* Where there are more workers than cores, they share. */
static unsigned take_core(struct ddp__topology *t, int node)
{
    int at = free_core(t, node);

    if (at < 0 && (at = free_core(t, -1)) < 0) {
        for (int i = 0; i < t->machine.cores; i++)
            t->core[i].taken = false;
        at = 0;
    }
    t->core[at].taken = true;
    return t->core[at].pu;
}

bool ddp__topology_place(struct ddp__topology *t, int cpus, const int *near,
                         int gpus, unsigned *pu, int n)
{
    if (cpus + gpus < 1 || cpus + gpus > n || t->machine.cores < 1)
        return false;
    for (int g = 0; g < gpus; g++)
        pu[cpus + g] = take_core(t, near[g]);
    for (int i = 0; i < cpus; i++)
        pu[i] = take_core(t, gpus ? near[i % gpus] : -1);
    for (int i = cpus + gpus; i < n; i++)
        pu[i] = pu[i % (cpus + gpus)];
    return true;
}

/* ---- memory ------------------------------------------------------------- */

int ddp__topology_node_here(const struct ddp__topology *t)
{
    int cpu = t->nodes > 1 ? sched_getcpu() : -1;

    return cpu >= 0 && cpu < t->cpus ? t->node_of_cpu[cpu] : 0;
}

int ddp__topology_node_at(const struct ddp__topology *t, const void *p)
{
    hwloc_bitmap_t set = t->nodes > 1 ? hwloc_bitmap_alloc() : NULL;
    int node = -1;

    if (set &&
        hwloc_get_area_memlocation(t->hw, p, 1, set, HWLOC_MEMBIND_BYNODESET) ==
            0 &&
        hwloc_bitmap_weight(set) == 1)
        for (int i = 0; node < 0 && i < t->nodes; i++)
            if (hwloc_bitmap_isset(set, t->node[i]->os_index))
                node = i;
    hwloc_bitmap_free(set);
    return node >= 0 ? node : ddp__topology_node_here(t);
}

/* ---- description -------------------------------------------------------- */

struct text {
    char *s;
    size_t size, len;
};

static void append_text(struct text *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void append_text(struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (t->len < t->size)
        t->len += (size_t)vsnprintf(t->s + t->len, t->size - t->len, fmt, ap);
    va_end(ap);
}

static void append_size(struct text *t, const char *what, uint64_t bytes)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes / 1024;
    int u = 0;

    for (; v >= 1000 && u < 3; u++)
        v /= 1024;
    if (bytes)
        append_text(t, "%s%.*f %s", what, v < 10 && v != (int)v, v, unit[u]);
}

void ddp__topology_describe(const struct ddp__topology *t, char *s, size_t size)
{
    struct text out = {s, size, 0};
    int cores = t->machine.cores;

    *s = '\0';
    if (!t->hw)
        return;
    append_text(&out, "%d", cores);
    if (cores < t->seen)
        append_text(&out, " of %d", t->seen);
    append_text(&out, " core%s", t->seen == 1 ? "" : "s");
    if (t->threads > 1)
        append_text(&out, " of %d hyper-threads", t->threads);
    if (t->packages > 1)
        append_text(&out, " in %d packages", t->packages);
    append_text(&out, ", %d NUMA node%s", t->nodes, t->nodes == 1 ? "" : "s");
    append_size(&out, " of ", t->nodes > 1 ? t->node_memory : 0);
    append_size(&out, ", L2 ", t->l2);
    append_size(&out, ", L3 ", t->l3);
}
