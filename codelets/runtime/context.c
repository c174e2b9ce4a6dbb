/* context.c - starting and stopping StarPU and the devices
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/devices.h"
#include "runtime/flow.h"
#include "runtime/place.h"
#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"

const char *ddp_version(void)
{
    static char text[96];
    int major, minor, release;

    starpu_get_version(&major, &minor, &release);
    snprintf(text, sizeof(text), "%s %s, StarPU %d.%d.%d", PACKAGE_NAME,
             PACKAGE_VERSION, major, minor, release);
    return text;
}

/* Tell StarPU 1.4 where the policy "ddp" is, unless the user has his own. Where
 * that is the program itself, which has no name here, it cannot be opened. */
static void offer_policy(void)
{
    struct link_map *library = NULL;
    Dl_info info;

    if (dladdr1((void *)starpu_get_sched_lib_policies, &info, (void **)&library,
                RTLD_DL_LINKMAP) &&
        library && library->l_name[0])
        setenv("STARPU_SCHED_LIB", library->l_name, 0);
}

/* The GPUs StarPU shall use, if the environment leaves it to us.  That there
 * are none is fine unless somebody asked for them. */
static int choose_gpus(ddp_t *ddp, const struct ddp_config *cfg,
                       struct starpu_conf *conf)
{
    const char *env = getenv("STARPU_NCUDA");
    int asked = env && *env ? atoi(env) : cfg->gpus;

    conf->ncuda = 0;
    if (asked < 0 || (asked == 0 && env && *env))
        return 0;
    ddp__gpus_find(&ddp->gpus, asked);
    if (asked > 0 && asked > ddp->gpus.count)
        return ddp__fail(
            DDP_ENODEV, "%d GPUs were asked for, %d can be used%s%s", asked,
            ddp->gpus.count, ddp->gpus.why[0] ? ": " : "", ddp->gpus.why);
    if (ddp->gpus.count == 0)
        return 0;
    conf->ncuda = asked > 0 ? asked : ddp->gpus.count;
    if (ddp->gpus.count < ddp->gpus.seen) {
        conf->use_explicit_workers_cuda_gpuid = 1;
        for (int i = 0; i < ddp->gpus.count; i++)
            conf->workers_cuda_gpuid[i] = (unsigned)ddp->gpus.id[i];
    }
    return 0;
}

/* StarPU gives each GPU a processor of its own.  Where that leaves none for the
 * input, and nobody has said how many it shall be, one is shared. */
static int init_starpu(const ddp_t *ddp, struct starpu_conf *conf)
{
    bool ours = !starpu_is_initialized();
    int rc = ddp__place_init(&ddp->topology, conf);

    if (rc < 0 || !ours || starpu_cpu_worker_get_count() > 0 ||
        conf->ncpus >= 0)
        return rc;
    starpu_shutdown();
    conf->ncpus = 1;
    return ddp__place_init(&ddp->topology, conf);
}

static int start(ddp_t *ddp, const struct ddp_config *cfg)
{
    struct starpu_conf conf;
    int rc;

    ddp->segment_us = -1;
    if ((rc = ddp__sched_check(getenv("STARPU_SCHED"))) < 0 ||
        (rc = ddp__env_number("DDP_SEGMENT_US", 0, 1000000, &ddp->segment_us)) <
            0)
        return rc;
    offer_policy();
    setenv("STARPU_SILENT", "1", 0); /* a library does not print */
    starpu_conf_init(&conf);
    conf.sched_policy = &ddp__sched_policy;
    if (!getenv("STARPU_CATCH_SIGNALS"))
        conf.catch_signals = 0; /* signals are the program's */
    if (cfg->cpus && conf.ncpus < 0)
        conf.ncpus = cfg->cpus < 0 ? 0 : cfg->cpus;
    if ((rc = choose_gpus(ddp, cfg, &conf)) < 0)
        return rc;
#ifndef STARPU_SIMGRID /* whose machine is another one */
    if ((rc = ddp__topology_load(&ddp->topology, conf.ncuda > 0)) < 0)
        return rc;
#endif
    ddp__place_workers(ddp, &conf);
    if ((rc = init_starpu(ddp, &conf)) == 0)
        return 0;
    if (rc == -ENODEV)
        return ddp__fail(DDP_ENODEV,
                         "StarPU found no worker: STARPU_NCPU=%s, and no other "
                         "device",
                         getenv("STARPU_NCPU") ? getenv("STARPU_NCPU")
                                               : "(unset)");
    return ddp__fail(DDP_ENODEV, "StarPU did not start: %s", strerror(-rc));
}

/* Those that have workers. */
static int gpus_used(void)
{
    int n = 0;

    for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++)
        n += starpu_node_get_kind(i) == STARPU_CUDA_RAM;
    return n;
}

static void describe(ddp_t *ddp)
{
    const struct starpu_sched_policy *p = starpu_sched_ctx_get_sched_policy(0);
    const char *with = ddp__codelets_hybrid() ? " and" : ", input by";
    char gpus[192] = "", why[sizeof(ddp->gpus.why) + 32] = "";
    char machine[320];
    int used = gpus_used();

    if (ddp->gpu_workers)
        snprintf(gpus, sizeof(gpus), "%d CUDA worker%s on %d GPU%s (%s)%s ",
                 ddp->gpu_workers, ddp->gpu_workers == 1 ? "" : "s", used,
                 used == 1 ? "" : "s", ddp__codelets_describe(DDP_CUDA), with);
    if (ddp->gpus.why[0])
        snprintf(why, sizeof(why), "; GPUs not used: %s", ddp->gpus.why);
    ddp__place_describe(ddp, machine, sizeof(machine));
    snprintf(ddp->describe, sizeof(ddp->describe),
             "%s%d CPU worker%s (%s), scheduler %s%s%s%s", gpus,
             ddp->cpu_workers, ddp->cpu_workers == 1 ? "" : "s",
             ddp__codelets_describe(DDP_CPU),
             p && p->policy_name ? p->policy_name : "unknown",
             machine[0] ? "; " : "", machine, why);
}

/* Once StarPU runs: kernels, and how many workers run them. */
static int open_devices(ddp_t *ddp, const struct ddp_config *cfg)
{
    int rc;

    ddp->cpu_workers = (int)starpu_cpu_worker_get_count();
    ddp->gpu_workers =
        ddp->gpus.backend ? (int)starpu_cuda_worker_get_count() : 0;
    if (ddp->cpu_workers < 1 || starpu_worker_get_count() > DDP__MAX_WORKERS)
        return ddp__fail(DDP_ENODEV,
                         "%d CPU workers of %u in all, wants at least 1 and at "
                         "most %d in all",
                         ddp->cpu_workers, starpu_worker_get_count(),
                         DDP__MAX_WORKERS);
    rc = ddp__codelets_init(cfg->backend ? cfg->backend : getenv("DDP_BACKEND"),
                            ddp->gpu_workers ? ddp->gpus.backend : NULL,
                            &ddp->topology.machine);
    if (rc < 0)
        return rc;
    if (ddp->gpu_workers && !ddp__codelets_hybrid())
        ddp->channels = 8;
    ddp->workers = ddp->gpu_workers;
    if (!ddp->gpu_workers || ddp__codelets_hybrid())
        ddp->workers += ddp->cpu_workers;
    if (ddp->gpus.count && !ddp->gpu_workers)
        snprintf(ddp->gpus.why, sizeof(ddp->gpus.why),
                 "StarPU started no worker for them");
    ddp__pool_nodes(&ddp->topology);
    if (ddp->gpu_workers)
        ddp__pool_pin(ddp->gpus.backend->pin, ddp->gpus.backend->unpin);
    return 0;
}

/* There is one StarPU in a process, with one set of workers, and so one
 * context: a second one could not have other workers or another scheduler. */
static atomic_bool started;

ddp_t *ddp_init(const struct ddp_config *cfg)
{
    static const struct ddp_config none;
    ddp_t *ddp = NULL;

    if (atomic_exchange(&started, true)) {
        ddp__fail(DDP_EINVAL, "libddp is already started in this process; call "
                              "ddp_finish() first");
        return NULL;
    }
    if (!(ddp = calloc(1, sizeof(*ddp)))) {
        ddp__fail(DDP_ENOMEM, "out of memory for a context");
        goto not_started;
    }
    cfg = cfg ? cfg : &none;
    if (start(ddp, cfg) < 0)
        goto free_ddp;
    ddp__pending_init(&ddp->pending);
    if (open_devices(ddp, cfg) < 0)
        goto stop;
    describe(ddp);
    return ddp;

stop:
    ddp__pending_fini(&ddp->pending);
    starpu_shutdown();
free_ddp:
    ddp__topology_free(&ddp->topology);
not_started:
    free(ddp);
    atomic_store(&started, false);
    return NULL;
}

void ddp__context_bind(ddp_t *ddp, struct ddp__bound *b)
{
    b->next = ddp->bound;
    ddp->bound = b;
}

void ddp__context_unbind(ddp_t *ddp, struct ddp__bound *b)
{
    struct ddp__bound **at;

    for (at = &ddp->bound; *at != b; at = &(*at)->next)
        ;
    *at = b->next;
}

void ddp_finish(ddp_t *ddp)
{
    if (!ddp)
        return;
    ddp__pending_wait(&ddp->pending);
    while (ddp->bound)
        ddp->bound->unbind(ddp->bound);
    ddp__codelets_fini();
    ddp__pending_fini(&ddp->pending);
    starpu_shutdown();            /* gives back the buffers that it keeps */
    if (!starpu_is_initialized()) /* it was not the program's */
        ddp__pool_pin(NULL, NULL);
    ddp__pool_trim();
    ddp__pool_nodes(NULL);
    ddp__topology_free(&ddp->topology);
    free(ddp);
    atomic_store(&started, false);
}

const char *ddp_describe(const ddp_t *ddp)
{
    return ddp->describe;
}

int ddp_gpu_worker_count(const ddp_t *ddp)
{
    return ddp->gpu_workers;
}

int ddp_gpu_count(const ddp_t *ddp, struct ddp_gpu_info *first)
{
    int count = ddp->gpu_workers ? gpus_used() : 0;

    if (first && count)
        *first = ddp->gpus.first;
    return count;
}

int ddp_worker_count(const ddp_t *ddp)
{
    return ddp->workers;
}
