/* describe.c - the line "devices:" of a context
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

#include "runtime/describe.h"
#include "runtime/devices.h"
#include "runtime/env_names.h"
#include "runtime/place.h"

static void add(ddp_t *ddp, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Append to the line, which is cut where it becomes too long. */
static void add(ddp_t *ddp, const char *fmt, ...)
{
    size_t used = strlen(ddp->describe);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(ddp->describe + used, sizeof(ddp->describe) - used, fmt, ap);
    va_end(ap);
}

static void add_accelerator(ddp_t *ddp)
{
    const struct ddp__devices *all = &ddp->devices;
    int n = ddp->gpu_workers, gpus = ddp_gpu_count(ddp, NULL);

    add(ddp, "%d %s worker%s on %d GPU%s (%s)%s ", n, ddp->accelerator->name,
        n == 1 ? "" : "s", gpus, gpus == 1 ? "" : "s",
        ddp__devices_describe(&all->used[0]),
        all->hybrid ? " and" : ", input by");
}

static void add_cpus(ddp_t *ddp)
{
    const struct ddp__devices *all = &ddp->devices;

    add(ddp, "%d CPU worker%s", ddp->cpu_workers,
        ddp->cpu_workers == 1 ? "" : "s");
    if (ddp->asked_cpus > ddp->cpu_workers)
        add(ddp, " of %d asked for", ddp->asked_cpus);
    add(ddp, " (%s)", ddp__devices_describe(&all->used[all->count - 1]));
}

/* Whether an earlier GPU is of the same model. */
static bool is_known_model(const struct ddp__gpus *g, int i)
{
    for (int k = 0; k < i; k++)
        if (ddp__gpus_alike(&g->info[k], &g->info[i]))
            return true;
    return false;
}

void ddp__describe_gpus(const ddp_t *ddp, char *text, size_t size)
{
    const struct ddp__gpus *g = &ddp->gpus;
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < g->count && used < size; i++)
        if (!is_known_model(g, i))
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     i ? ", " : "", g->info[i].name);
}

/* What is promised for devices of several kinds. */
static void add_promise(ddp_t *ddp)
{
    const struct ddp__gpus *g = &ddp->gpus;
    bool hybrid = ddp->accelerator && ddp->devices.hybrid, unlike = false;
    char names[256];

    for (int i = 1; i < g->count; i++)
        unlike = unlike || !ddp__gpus_alike(&g->info[0], &g->info[i]);
    if (!hybrid && !unlike)
        return;
    ddp__describe_gpus(ddp, names, sizeof(names));
    add(ddp,
        "; devices of several kinds train together (%s%s): which of them "
        "computes what depends on their speed, and the last bits of the "
        "weights on that, so that no run repeats another",
        names, hybrid ? ", CPU" : "");
}

/* What the user may want to change. */
static void add_notes(ddp_t *ddp)
{
    char unknown[256];

    if (ddp->home.temporary[0])
        add(ddp, "; StarPU's files are temporary: %s", ddp->home.why);
    if (ddp->gpus.why[0])
        add(ddp, "; GPUs not used: %s", ddp->gpus.why);
    ddp__env_unknown(unknown, sizeof(unknown));
    if (unknown[0])
        add(ddp, "; nothing reads %s, set in the environment", unknown);
}

void ddp__describe(ddp_t *ddp)
{
    const struct starpu_sched_policy *p = starpu_sched_ctx_get_sched_policy(0);
    char machine[320];

    ddp->describe[0] = '\0';
    if (ddp->accelerator)
        add_accelerator(ddp);
    add_cpus(ddp);
    add(ddp, ", scheduler %s",
        p && p->policy_name ? p->policy_name : "unknown");
    ddp__place_describe(ddp, machine, sizeof(machine));
    if (machine[0])
        add(ddp, "; %s", machine);
    add_promise(ddp);
    add_notes(ddp);
}
