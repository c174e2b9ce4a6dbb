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
#include "base/options.h"
#include "runtime/borrowed.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/device_list.h"
#include "runtime/describe.h"
#include "runtime/devices.h"
#include "runtime/launch.h"
#include "runtime/lost.h"
#include "runtime/nodes.h"
#include "runtime/task_group.h"
#include "runtime/place.h"
#include "runtime/pool.h"
#include "runtime/profile.h"
#include "runtime/share.h"
#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"
#include "runtime/starpu_env.h"
#include "runtime/threads.h"

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

/* How many accelerators of a kind are asked for, or DDP_ALL: by its variable,
 * else by the program. */
static int asked_for(const struct ddp__device *d, const struct ddp_config *cfg)
{
    const char *env = d->count ? getenv(d->count) : NULL;

    return env && *env ? atoi(env) : cfg->gpus;
}

/* Whether there are that many devices of a kind; the message has the reason if
 * not. */
static bool find_accelerators(ddp_t *ddp, const struct ddp__device *d,
                              int asked, bool all)
{
    struct ddp__error before = ddp__error_save();
    struct ddp__gpus *g = &ddp->gpus;

    g->count = g->seen = 0;
    d->find(g, asked < 0 || all ? 0 : asked);
    ddp__error_restore(&before); /* g->why has the reasons */
    return g->count > 0 && g->count >= asked;
}

/* The first kind that is there.  That there are none is fine unless somebody
 * asked for them.  Several ranks may divide them later. */
static int find_gpus(ddp_t *ddp, const struct ddp_config *cfg)
{
    const char *why = ddp->gpus.why;
    int most = cfg->gpus, rc;
    bool ranks;

    if ((rc = ddp__launch(&ranks)) < 0 ||
        (rc = ddp__env_switch("DDP_UNLIKE_GPUS", &ddp->gpus.unlike)) < 0)
        return rc;
    ddp->gpus.chosen = ddp__starpu_env_gpus();
    for (int i = 0; ddp__devices[i]->find && !ddp->accelerator; i++) {
        const struct ddp__device *d = ddp__devices[i];

        ddp->asked_gpus = asked_for(d, cfg);
        if (ddp->asked_gpus == 0)
            continue;
        most = ddp->asked_gpus;
        if (find_accelerators(ddp, d, most, ranks))
            ddp->accelerator = d;
        if ((rc = ddp__starpu_env_fits_gpus(ddp->gpus.seen)) < 0)
            return rc;
    }
    if (most <= 0 || ddp->accelerator)
        return 0;
    if (!*why && ddp->gpus.chosen)
        why = "STARPU_WORKERS_CUDAID has no more";
    return ddp__fail(DDP_ENODEV, "%d GPUs were asked for, %d can be used%s%s",
                     most, ddp->gpus.count, *why ? ": " : "", why);
}

/* Have StarPU use this rank's share of that kind, and none of the others. */
static void configure_gpus(ddp_t *ddp, struct starpu_conf *conf)
{
    static const struct ddp__gpus none;

    for (int i = 0; ddp__devices[i]->find; i++)
        ddp__devices[i]->configure(conf, &none);
    if (!ddp->accelerator)
        return;
    ddp__gpus_share(&ddp->gpus, ddp->asked_gpus, ddp->net.wire.share_rank,
                    ddp->net.wire.share_count);
    ddp->accelerator->configure(conf, &ddp->gpus);
}

/* StarPU gives each GPU a processor of its own.  Where that leaves none for the
 * input, and the user has not set their number, one is shared. */
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

/* A simulated machine is in files that StarPU reads: it has nothing to do with
 * this one. */
static bool is_simulated(void)
{
    for (int i = 0; ddp__devices[i]; i++)
        if (ddp__devices[i]->simulated)
            return true;
    return false;
}

/* Unset a variable; the value is for show().  NULL: it is not set. */
static char *hide(const char *name)
{
    const char *text = getenv(name);
    char *value = text ? strdup(text) : NULL;

    if (value)
        unsetenv(name);
    return value;
}

static void show(const char *name, char *value)
{
    if (value)
        setenv(name, value, 1);
    free(value);
}

/* StarPU prefers variables to what it is given.  It finds "ddp" by the policy;
 * by its name it would not, and print that.  Of the GPUs it has this rank's. */
static int init_as_given(const ddp_t *ddp, struct starpu_conf *conf)
{
    const char *name = getenv("STARPU_SCHED");
    char *ours = NULL, *gpus = hide("STARPU_WORKERS_CUDAID");
    int rc;

    if (name && !strcmp(name, ddp__sched_policy.policy_name)) {
        conf->sched_policy_name = NULL;
        ours = hide("STARPU_SCHED");
    }
    rc = init_starpu(ddp, conf);
    show("STARPU_SCHED", ours);
    show("STARPU_WORKERS_CUDAID", gpus);
    return rc;
}

static int load_machine(ddp_t *ddp)
{
    return is_simulated()
               ? 0
               : ddp__topology_load(&ddp->topology, ddp->gpus.count > 0);
}

/* What StarPU needs to know of this machine, and would abort on. */
static int check_machine(ddp_t *ddp)
{
    int rc;

    if (is_simulated())
        return 0;
    if ((rc = ddp__starpu_env_fits(&ddp->topology)) < 0 ||
        (rc = ddp__net_share_cores(&ddp->net, &ddp->topology)) < 0)
        return rc;
    return starpu_is_initialized() ? 0 : ddp__starpu_home_choose(&ddp->home);
}

/* A worker is a thread. */
static int check_threads(const ddp_t *ddp, const struct starpu_conf *conf)
{
    int cpus = conf->ncpus >= 0 ? conf->ncpus : ddp->topology.machine.cores;

    if (is_simulated() || starpu_is_initialized())
        return 0;
    return ddp__threads_check(cpus + ddp->gpus.count);
}

static int start_starpu(ddp_t *ddp, const struct ddp_config *cfg)
{
    struct starpu_conf conf;
    int rc;

    ddp->segment_us = ddp->early = -1;
    if ((rc = ddp__sched_check(getenv("STARPU_SCHED"))) < 0 ||
        (rc = ddp__env_number("DDP_SEGMENT_US", 0, 1000000, &ddp->segment_us)) <
            0 ||
        (rc = ddp__env_number("DDP_EARLY", 0, 1, &ddp->early)) < 0)
        return rc;
    offer_policy();
    setenv("STARPU_SILENT", "1", 0); /* a library does not print */
    starpu_conf_init(&conf);
    conf.sched_policy = &ddp__sched_policy;
    if (!getenv("STARPU_CATCH_SIGNALS"))
        conf.catch_signals = 0; /* signals are the program's */
    if (cfg->cpus >= 0 && conf.ncpus < 0)
        conf.ncpus = cfg->cpus;
    ddp->asked_cpus = conf.ncpus;
    configure_gpus(ddp, &conf);
    if ((rc = check_machine(ddp)) < 0)
        return rc;
    ddp__place_workers(ddp, &conf);
    if ((rc = check_threads(ddp, &conf)) < 0)
        return rc;
    ddp__lost_watch(ddp->accelerator);
    rc = init_as_given(ddp, &conf);
    if (ddp__lost_measuring())
        ddp__starpu_home_forget();
    ddp__starpu_home_started(&ddp->home);
    if (rc == 0 && ddp__lost_any()) {
        starpu_shutdown();
        return ddp__lost_check();
    }
    if (rc == 0)
        return 0;
    if (rc == -ENODEV)
        return ddp__fail(DDP_ENODEV,
                         "StarPU found no worker: STARPU_NCPU=%s, and no other "
                         "device",
                         getenv("STARPU_NCPU") ? getenv("STARPU_NCPU")
                                               : "(unset)");
    return ddp__fail(DDP_ENODEV, "StarPU did not start: %s", strerror(-rc));
}

static int count_workers(ddp_t *ddp)
{
    ddp->cpu_workers = (int)starpu_cpu_worker_get_count();
    if (ddp->accelerator)
        ddp->gpu_workers = ddp__device_workers(ddp->accelerator, NULL);
    if (ddp->accelerator && !ddp->gpu_workers) {
        ddp->accelerator = NULL;
        snprintf(ddp->gpus.why, sizeof(ddp->gpus.why),
                 "StarPU started no worker for them");
    }
    if (ddp->cpu_workers < 1 || starpu_worker_get_count() > DDP__MAX_WORKERS)
        return ddp__fail(DDP_ENODEV,
                         "StarPU has %d CPU workers and %u workers in all, "
                         "expected at least 1 and at most %d",
                         ddp->cpu_workers, starpu_worker_get_count(),
                         DDP__MAX_WORKERS);
    return 0;
}

/* Once StarPU runs: kernels, and how many workers run them. */
static int open_devices(ddp_t *ddp, const struct ddp_config *cfg)
{
    const char *backend = cfg->backend ? cfg->backend : getenv("DDP_BACKEND");
    const struct ddp__device *d;
    int rc;

    if ((rc = count_workers(ddp)) < 0 ||
        (rc = ddp__devices_init(ddp, backend)) < 0)
        return rc;
    d = ddp->accelerator;
    ddp->workers = ddp->gpu_workers;
    if (!d || ddp->devices.hybrid)
        ddp->workers += ddp->cpu_workers;
    else
        ddp->channels = d->channels;
    ddp__pool_nodes(&ddp->topology);
    if (d)
        ddp__pool_pin(d->backends[0]->pin, d->backends[0]->unpin);
    ddp__borrowed_from(d ? d->backends[0] : NULL);
    return d ? 0 : ddp__profile_open();
}

/* There is one StarPU in a process, with one set of workers, and so one
 * context: a second one could not have other workers or another scheduler. */
static atomic_bool started;

static const struct ddp_config defaults = {.struct_size = sizeof(defaults),
                                           .cpus = DDP_ALL,
                                           .gpus = DDP_ALL,
                                           .peer_timeout = 300};

void ddp_config_init_sized(struct ddp_config *c, size_t size)
{
    ddp__options_init(c, size, &defaults, sizeof(defaults));
}

/* The labels at the end undo, in reverse order, what succeeded before a
 * failure. */
static bool start_context(ddp_t *ddp, const struct ddp_config *cfg)
{
    ddp__status_init(&ddp->status);
    if (ddp__starpu_env_check() < 0 || find_gpus(ddp, cfg) < 0 ||
        load_machine(ddp) < 0 ||
        ddp__net_open(&ddp->net, &ddp->status, cfg, ddp__gpus_key(&ddp->gpus),
                      &ddp->topology) < 0)
        goto close;
    if (start_starpu(ddp, cfg) < 0)
        goto leave;
    ddp__pending_init(&ddp->pending);
    if (open_devices(ddp, cfg) < 0)
        goto stop;
    ddp__describe(ddp);
    return true;

stop:
    ddp__pending_fini(&ddp->pending);
    starpu_shutdown();
leave:
    ddp__net_close(&ddp->net);
close:
    if (ddp->net.stuck)
        return false;
    ddp__status_fini(&ddp->status);
    ddp__starpu_home_free(&ddp->home);
    ddp__topology_free(&ddp->topology);
    return false;
}

ddp_t *ddp_init(const struct ddp_config *given)
{
    struct ddp_config cfg = defaults;
    ddp_t *ddp;

    if (ddp__options_copy(&cfg, sizeof(cfg), given, "ddp_config") < 0)
        return NULL;
    if (!(cfg.peer_timeout >= 0)) {
        ddp__fail(DDP_EINVAL, "peer_timeout %g must not be negative",
                  cfg.peer_timeout);
        return NULL;
    }
    if (atomic_exchange(&started, true)) {
        ddp__fail(DDP_EINVAL, "libddp is already started in this process; call "
                              "ddp_finish() first");
        return NULL;
    }
    if (!(ddp = calloc(1, sizeof(*ddp))))
        ddp__fail(DDP_ENOMEM, "out of memory for a context");
    else if (start_context(ddp, &cfg))
        return ddp;
    else if (ddp->net.stuck) /* nor can there be another context */
        return NULL;
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
    ddp__nodes_close();
    ddp__net_close(&ddp->net);
    ddp__devices_fini(ddp);
    ddp__pending_fini(&ddp->pending);
    ddp__profile_close();
    starpu_shutdown(); /* gives back the buffers that it keeps */
    ddp__lost_watch(NULL);
    if (!starpu_is_initialized()) /* it was not the program's */
        ddp__pool_pin(NULL, NULL);
    ddp__pool_trim();
    ddp__pool_nodes(NULL);
    ddp__starpu_home_free(&ddp->home);
    ddp__topology_free(&ddp->topology);
    ddp__status_fini(&ddp->status);
    free(ddp);
    atomic_store(&started, false);
}
