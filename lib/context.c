/* context.c - starting and stopping StarPU and the devices */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "graph.h"

const char *ddp_version(void)
{
    static char text[96];
    int major, minor, release;

    starpu_get_version(&major, &minor, &release);
    snprintf(text, sizeof(text), "%s %s, StarPU %d.%d.%d", PACKAGE_NAME,
             PACKAGE_VERSION, major, minor, release);
    return text;
}

/* Tell StarPU 1.4 where the policy "ddp" is, unless the user has his own. */
static void offer_policy(void)
{
    Dl_info info;

    if (dladdr((void *)starpu_get_sched_lib_policies, &info) && info.dli_fname)
        setenv("STARPU_SCHED_LIB", info.dli_fname, 0);
}

static int start(const struct ddp_config *cfg)
{
    struct starpu_conf conf;
    int rc;

    if ((rc = ddp__sched_check(getenv("STARPU_SCHED"))) < 0)
        return rc;
    offer_policy();
    setenv("STARPU_SILENT", "1", 0); /* a library does not print */
    starpu_conf_init(&conf);
    conf.sched_policy = &ddp__sched_policy;
    if (!getenv("STARPU_CATCH_SIGNALS"))
        conf.catch_signals = 0; /* signals are the program's */
    if (cfg->cpus && conf.ncpus < 0)
        conf.ncpus = cfg->cpus < 0 ? 0 : cfg->cpus;
    if ((rc = starpu_init(&conf)) == 0)
        return 0;
    if (rc == -ENODEV)
        return ddp__fail(DDP_ENODEV,
                         "StarPU found no worker: STARPU_NCPU=%s, and no other "
                         "device",
                         getenv("STARPU_NCPU") ? getenv("STARPU_NCPU")
                                               : "(unset)");
    return ddp__fail(DDP_ENODEV, "StarPU did not start: %s", strerror(-rc));
}

static void describe(ddp_t *ddp)
{
    const struct starpu_sched_policy *p = starpu_sched_ctx_get_sched_policy(0);

    snprintf(ddp->describe, sizeof(ddp->describe),
             "%d CPU worker%s (%s), scheduler %s", ddp->workers,
             ddp->workers == 1 ? "" : "s", ddp__codelets_describe(),
             p && p->policy_name ? p->policy_name : "unknown");
}

ddp_t *ddp_init(const struct ddp_config *cfg)
{
    static const struct ddp_config none;
    ddp_t *ddp = calloc(1, sizeof(*ddp));

    if (!ddp) {
        ddp__fail(DDP_ENOMEM, "no memory for a context");
        return NULL;
    }
    cfg = cfg ? cfg : &none;
    if (start(cfg) < 0)
        goto free_ddp;
    if (ddp__codelets_init(cfg->backend ? cfg->backend
                                        : getenv("DDP_BACKEND")) < 0)
        goto stop;
    ddp->workers = (int)starpu_cpu_worker_get_count();
    if (ddp->workers < 1 || ddp->workers > DDP__MAX_WORKERS) {
        ddp__fail(DDP_ENODEV, "%d CPU workers, wants 1 to %d", ddp->workers,
                  DDP__MAX_WORKERS);
        goto fini;
    }
    describe(ddp);
    return ddp;

fini:
    ddp__codelets_fini();
stop:
    starpu_shutdown();
free_ddp:
    free(ddp);
    return NULL;
}

void ddp_finish(ddp_t *ddp)
{
    if (!ddp)
        return;
    starpu_task_wait_for_all();
    while (ddp->params)
        ddp__params_unbind(ddp->params);
    ddp__codelets_fini();
    starpu_shutdown();
    ddp__pool_trim();
    free(ddp);
}

const char *ddp_describe(const ddp_t *ddp)
{
    return ddp->describe;
}

int ddp_worker_count(const ddp_t *ddp)
{
    return ddp->workers;
}
