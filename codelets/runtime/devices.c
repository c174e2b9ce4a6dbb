/* devices.c - the devices: which backend runs a call, and with what plan
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/context.h"
#include "runtime/cost.h"
#include "runtime/devices.h"
#include "runtime/task.h"
#ifdef STARPU_SIMGRID
#include "sim/sim.h"
#else
#include "cpu/cpu.h"
#include "ref/ref.h"
#endif

/* The only list of devices: what a CPU worker prefers comes first. */
#ifdef STARPU_SIMGRID
const struct ddp__backend *const ddp__backends[] = {&ddp__sim_cpu, NULL};
#else
const struct ddp__backend *const ddp__backends[] = {&ddp__cpu, &ddp__ref, NULL};
#endif

/* For each kind of worker that there is, its backends in order of preference,
 * NULL at the end. */
static const struct ddp__backend *const *usable[DDP_DEVICE_KINDS];
static const struct ddp__backend *cuda[2];
static bool hybrid; /* CPU workers run what GPUs could */

static int find_backends(const char *name, const struct ddp__backend *gpu)
{
    memset(usable, 0, sizeof(usable));
    cuda[0] = gpu;
    if (gpu)
        usable[DDP_CUDA] = cuda;
    usable[DDP_CPU] = ddp__backends;
    if (!name)
        return 0;
    for (; *usable[DDP_CPU]; usable[DDP_CPU]++)
        if (strcmp((*usable[DDP_CPU])->name, name) == 0)
            return 0;
    return ddp__fail(DDP_EINVAL, "backend %s: choose one of cpu, ref", name);
}

static int init_kind(const struct ddp__backend *const *list,
                     const struct ddp__machine *m)
{
    const struct ddp__backend *const *b;
    int rc;

    for (b = list; b && *b; b++)
        if ((*b)->init && (rc = (*b)->init(m)) < 0)
            goto fini;
    return 0;

fini:
    while (b-- > list)
        if ((*b)->fini)
            (*b)->fini();
    return rc;
}

static void fini_kind(enum ddp_device k)
{
    for (const struct ddp__backend *const *b = usable[k]; b && *b; b++)
        if ((*b)->fini)
            (*b)->fini();
    usable[k] = NULL;
}

int ddp__codelets_init(const char *name, const struct ddp__backend *gpu,
                       const struct ddp__machine *m)
{
    const char *both = getenv("DDP_HYBRID");
    int rc;

    if ((rc = find_backends(name, gpu)) < 0)
        return rc;
    hybrid = both && strcmp(both, "1") == 0;
    ddp__tasks_init();
    if ((rc = init_kind(usable[DDP_CPU], m)) < 0)
        return rc;
    if ((rc = init_kind(usable[DDP_CUDA], m)) < 0)
        fini_kind(DDP_CPU);
    return rc;
}

void ddp__codelets_fini(void)
{
    fini_kind(DDP_CUDA);
    fini_kind(DDP_CPU);
}

/* The first backend of the kind of worker that trains. */
static const struct ddp__backend *first(void)
{
    return usable[DDP_CUDA] ? *usable[DDP_CUDA] : *usable[DDP_CPU];
}

const char *ddp__codelets_describe(enum ddp_device k)
{
    const struct ddp__backend *b = usable[k] ? *usable[k] : NULL;

    return !b ? "" : b->describe ? b->describe() : b->name;
}

bool ddp__codelets_hybrid(void)
{
    return hybrid;
}

static bool computes_in(const struct ddp__backend *b, enum ddp_dtype type)
{
    return type == DDP_F32 || (type == DDP_BF16 && b->bf16) ||
           (type == DDP_F16 && b->f16);
}

bool ddp__codelets_type(enum ddp_dtype type)
{
    return computes_in(first(), type) &&
           (!hybrid || computes_in(*usable[DDP_CPU], type));
}

int ddp__codelets_ready(ddp_t *ddp)
{
    int rc = 0;

    ddp__pending_wait(&ddp->pending);
    for (int k = 0; rc == 0 && k < DDP_DEVICE_KINDS; k++)
        for (const struct ddp__backend *const *b = usable[k]; b && *b; b++)
            if ((*b)->ready && (rc = (*b)->ready()) < 0)
                break;
    return rc;
}

size_t ddp__codelets_scratch(void)
{
    const struct ddp__backend *b = usable[DDP_CUDA] ? cuda[0] : NULL;

    return b && b->scratch ? b->scratch() : 0;
}

double ddp__call_us(const struct ddp__call *c, int n)
{
    return ddp__cost_us(c, n, usable[DDP_CUDA] ? DDP_CUDA : DDP_CPU);
}

void ddp__calls_warm(const struct ddp__call *const *c, int calls)
{
    for (int k = 0; k < DDP_DEVICE_KINDS; k++)
        for (const struct ddp__backend *const *b = usable[k]; b && *b; b++)
            if ((*b)->warm)
                (*b)->warm(c, calls);
}

/* Have the first backend of a kind that can do so prepare the call. */
static int prepare_on(struct ddp__call *c, enum ddp_device k)
{
    struct ddp__choice *on = &c->on[k];
    int rc;

    for (const struct ddp__backend *const *b = usable[k]; b && *b; b++) {
        if (!(*b)->kernel[c->op])
            continue;
        on->backend = *b;
        rc = (*b)->prepare ? (*b)->prepare(c, &on->plan) : 0;
        if (rc != DDP_ENODEV)
            return rc;
        *on = (struct ddp__choice){NULL, NULL};
    }
    return DDP_ENODEV;
}

/* On GPUs, if it can and unless CPU workers shall help, so that the bits are
 * those of one kind of device. */
uint32_t ddp__call_where(const struct ddp__call *c)
{
    bool user = ddp__op_is(c->op, DDP__IS_USER);
    bool host = ddp__op_is(c->op, DDP__IS_HOST);
    bool gpu = usable[DDP_CUDA] && (user ? c->user.kernel->on[DDP_CUDA] != NULL
                                         : c->on[DDP_CUDA].backend != NULL);
    bool cpu = user ? c->user.kernel->on[DDP_CPU] != NULL
                    : host || c->on[DDP_CPU].backend;

    if (host && !c->host.fn)
        return STARPU_NOWHERE;
    if (gpu && !hybrid)
        return STARPU_CUDA;
    return (gpu ? STARPU_CUDA : 0) | (cpu ? STARPU_CPU : 0);
}

int ddp__call_prepare(struct ddp__call *c)
{
    bool small = ddp__op_is(c->op, DDP__IS_SMALL);
    int rc = ddp__call_check(c);

    memset(c->on, 0, sizeof(c->on));
    if (rc < 0 || ddp__op_is(c->op, DDP__IS_HOST))
        return rc;
    if (ddp__op_is(c->op, DDP__IS_USER))
        return ddp__call_where(c) ? 0
                                  : ddp__fail(DDP_ENODEV,
                                              "kernel %s has no function for "
                                              "the workers there are",
                                              c->user.kernel->name);
    rc = DDP_ENODEV;
    if (!small && (rc = prepare_on(c, DDP_CUDA)) < 0 && rc != DDP_ENODEV)
        return rc;
    if (rc == 0 && !hybrid)
        return 0;
    if ((rc = prepare_on(c, DDP_CPU)) < 0 && rc != DDP_ENODEV)
        return rc;
    return ddp__call_where(c) ? 0
                              : ddp__fail(DDP_ENODEV, "no backend can run %s",
                                          ddp__signature[c->op].name);
}

void ddp__call_release(struct ddp__call *c)
{
    for (int k = 0; k < DDP_DEVICE_KINDS; k++) {
        struct ddp__choice *on = &c->on[k];

        if (on->plan)
            on->backend->release(on->plan);
        *on = (struct ddp__choice){NULL, NULL};
    }
}
