/* place.c - the core that each of StarPU's threads runs on
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU gives out conf.workers_bindid to CPU workers first, then to GPUs.  By
 * itself it counts cores, not hyper-threads, too, but leaves the affinity of
 * the process, and does not look at where a GPU is when it places CPU workers.
 * All of this is a default, which the user's variables replace.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/task_group.h"
#include "runtime/place.h"

/* The variable by which the user places StarPU's threads; NULL: there is none,
 * and it is up to us. */
static const char *placed_by_user(void)
{
    static const char *const name[] = {
        "STARPU_WORKERS_NOBIND",     "STARPU_WORKERS_CPUID",
        "STARPU_WORKERS_COREID",     "STARPU_WORKERS_GETBIND",
        "STARPU_NTHREADS_PER_CORE",  "STARPU_RESERVE_NCPU",
        "STARPU_MAIN_THREAD_BIND",   "STARPU_MAIN_THREAD_CPUID",
        "STARPU_MAIN_THREAD_COREID", "STARPU_HWLOC_INPUT",
    };

    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
        if (getenv(name[i]))
            return name[i];
    return NULL;
}

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

/* A CPU worker for each core that GPUs leave, as far as StarPU and we have room
 * for workers.  With GPUs one more core is left, for the thread that submits
 * tasks: idle workers of a StarPU with CUDA keep their cores busy, and a step
 * of a small network does not last as long as a thread may have to wait for
 * one. */
static int default_cpus(ddp_t *ddp, int gpus)
{
    int most = lesser(STARPU_NMAXWORKERS, DDP__MAX_WORKERS) - gpus;
    int cpus = ddp->topology.machine.cores - gpus - (gpus > 0);

    most = lesser(most, STARPU_MAXCPUS);
    if (cpus > most)
        ddp->most_cpus = cpus = most;
    return cpus > 1 ? cpus : 1;
}

void ddp__place_workers(ddp_t *ddp, struct starpu_conf *conf)
{
    struct ddp__topology *t = &ddp->topology;
    int near[DDP__MAX_GPUS], gpus = ddp->gpus.count;

    if (!t->machine.cores || placed_by_user())
        return;
    if (conf->ncpus < 0)
        conf->ncpus = default_cpus(ddp, gpus);
    for (int i = 0; i < gpus; i++) {
        const struct ddp__pci *p = &ddp->gpus.pci[i];

        near[i] = ddp__topology_node_near(t, p->domain, p->bus, p->device);
    }
    conf->use_explicit_workers_bindid = ddp__topology_place(
        t, conf->ncpus, near, gpus, conf->workers_bindid, STARPU_NMAXWORKERS);
}

int ddp__place_init(const struct ddp__topology *t, struct starpu_conf *conf)
{
    bool keep = !t->unbound[0] || getenv("STARPU_WORKERS_NOBIND");
    int rc;

    if (!keep)
        setenv("STARPU_WORKERS_NOBIND", "1", 1);
    rc = starpu_init(conf);
    if (!keep)
        unsetenv("STARPU_WORKERS_NOBIND");
    return rc;
}

void ddp__place_describe(const ddp_t *ddp, char *s, size_t size)
{
    const struct ddp__topology *t = &ddp->topology;
    const char *user = placed_by_user();
    size_t len;

    ddp__topology_describe(t, s, size);
    len = strlen(s);
    if (ddp->most_cpus)
        len += (size_t)snprintf(s + len, size - len,
                                "; StarPU was built for %d CPU workers, "
                                "contrib/build-starpu builds one for more",
                                ddp->most_cpus);
    if (user && len < size)
        snprintf(s + len, size - len, "; %s=%s places workers", user,
                 getenv(user));
    else if (t->unbound[0] && len < size)
        snprintf(s + len, size - len, "; workers are not bound to cores: %s",
                 t->unbound);
}
