/* devices.c - the devices of a context: which backend runs a call, on what plan
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/env.h"
#include "base/error.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/cost.h"
#include "runtime/device_list.h"
#include "runtime/devices.h"
#include "runtime/task.h"

/* ---- start and stop ----------------------------------------------------- */

static const struct ddp__device *cpu_device(void)
{
    const struct ddp__device *const *d = ddp__devices;

    while (d[1])
        d++;
    return *d;
}

static int init_backends(const struct ddp__backend *const *list,
                         const struct ddp__machine *m)
{
    const struct ddp__backend *const *b;
    int rc;

    for (b = list; *b; b++)
        if ((*b)->init && (rc = (*b)->init(m)) < 0)
            goto fini;
    return 0;

fini:
    while (b-- > list)
        if ((*b)->fini)
            (*b)->fini();
    return rc;
}

static int add_device(ddp_t *ddp, const struct ddp__device *d,
                      const struct ddp__backend *const *backends)
{
    struct ddp__devices *all = &ddp->devices;
    int rc = init_backends(backends, &ddp->topology.machine);

    if (rc == 0)
        all->used[all->count++] = (struct ddp__used){d, backends};
    return rc;
}

/* Those of the CPU from `name` on. */
static const struct ddp__backend *const *backends_from(const char *name)
{
    const struct ddp__backend *const *b = cpu_device()->backends;

    while (*b && name && strcmp((*b)->name, name) != 0)
        b++;
    if (*b)
        return b;
    ddp__fail(DDP_EINVAL, "unknown backend '%s'; available: cpu, ref", name);
    return NULL;
}

int ddp__devices_init(ddp_t *ddp, const char *backend)
{
    const struct ddp__backend *const *b = backends_from(backend);
    int rc;

    if (!b)
        return DDP_EINVAL;
    if ((rc = ddp__env_switch("DDP_HYBRID", &ddp->devices.hybrid)) < 0)
        return rc;
    ddp__tasks_init();
    if (ddp->accelerator)
        rc = add_device(ddp, ddp->accelerator, ddp->accelerator->backends);
    if (rc == 0)
        rc = add_device(ddp, cpu_device(), b);
    if (rc < 0)
        ddp__devices_fini(ddp);
    return rc;
}

void ddp__devices_fini(ddp_t *ddp)
{
    struct ddp__devices *all = &ddp->devices;

    for (int i = 0; i < all->count; i++)
        for (const struct ddp__backend *const *b = all->used[i].backends; *b;
             b++)
            if ((*b)->fini)
                (*b)->fini();
    all->count = 0;
}

/* ---- what they are ------------------------------------------------------- */

const char *ddp__devices_describe(const struct ddp__used *u)
{
    const struct ddp__backend *b = u->backends[0];

    return b->describe ? b->describe() : b->name;
}

bool ddp__devices_slice(const ddp_t *ddp)
{
    const struct ddp__backend *b = ddp->devices.used[0].backends[0];

    return ddp->devices.count == 1 && b->slices && b->slices() &&
           !ddp__devices_simulated();
}

bool ddp__devices_normalise(const ddp_t *ddp, const struct ddp__call *c)
{
    const struct ddp__backend *b = ddp->devices.used[0].backends[0];

    return ddp->devices.count == 1 && b->normalises && b->normalises(c);
}

int ddp__device_workers(const struct ddp__device *d, int *devices)
{
    int id[STARPU_NMAXWORKERS], count, different = 0;

    count =
        (int)starpu_worker_get_ids_by_type(d->workers, id, STARPU_NMAXWORKERS);
    for (int i = 0, k; i < count; i++) {
        for (k = 0; k < i; k++)
            if (starpu_worker_get_devid(id[k]) ==
                starpu_worker_get_devid(id[i]))
                break;
        different += k == i;
    }
    if (devices)
        *devices = different;
    return count;
}

bool ddp__worker_accelerates(const ddp_t *ddp, int w)
{
    return ddp->accelerator && w < (int)starpu_worker_get_count() &&
           starpu_worker_get_type(w) == ddp->accelerator->workers;
}

int ddp__worker_slots(void)
{
    int n = (int)starpu_worker_get_count();

    return n < DDP__MAX_WORKERS ? n : DDP__MAX_WORKERS;
}

int ddp_worker_name(const ddp_t *ddp, int i, char *name, size_t size)
{
    if (!ddp || !name || size == 0)
        return ddp__fail_null(!ddp ? "ddp" : "name");
    *name = '\0';
    if (i < 0 || i >= ddp__worker_slots())
        return ddp__fail(DDP_EINVAL, "worker %d, expected 0 to %d", i,
                         ddp__worker_slots() - 1);
    starpu_worker_get_name(i, name, size);
    return 0;
}

static bool computes_in(const struct ddp__used *u, enum ddp_dtype type)
{
    const struct ddp__backend *b = u->backends[0];

    return type == DDP_F32 || (b->computes && b->computes(type));
}

static bool devices_compute(const ddp_t *ddp, enum ddp_dtype type)
{
    const struct ddp__devices *all = &ddp->devices;

    return computes_in(&all->used[0], type) &&
           (!all->hybrid || computes_in(&all->used[all->count - 1], type));
}

int ddp__devices_check(const ddp_t *ddp, enum ddp_dtype type)
{
    if (type != DDP_F32 && type != DDP_BF16 && type != DDP_F16)
        return ddp__fail(
            DDP_EINVAL,
            "activations of type %d, expected DDP_F32, DDP_BF16 or DDP_F16",
            (int)type);
    if (type == DDP_BF16 && !devices_compute(ddp, DDP_BF16))
        return ddp__fail(DDP_ENODEV,
                         "this processor has no bf16 arithmetic "
                         "that the backend uses: use f32%s",
                         devices_compute(ddp, DDP_F16) ? " or f16" : "");
    if (type == DDP_F16 && !devices_compute(ddp, DDP_F16))
        return ddp__fail(DDP_ENODEV,
                         "no device here computes in f16: use f32 or bf16 (or, "
                         "to try it, the backend ref, which is slow)");
    return 0;
}

size_t ddp__devices_scratch(const ddp_t *ddp)
{
    const struct ddp__device *d = ddp->accelerator;

    return d && d->backends[0]->scratch ? d->backends[0]->scratch() : 0;
}

bool ddp__devices_simulated(void)
{
    return ddp__devices[0]->simulated != NULL;
}

int ddp__devices_memory(const ddp_t *ddp, double *bytes)
{
    const struct ddp__device *d = ddp->accelerator;
    double least = 0, taken = 0, mib = 1 << 20;
    int count = 0;

    *bytes = 0;
    if (!d || d->memory == STARPU_CPU_RAM)
        return 0;
    for (unsigned i = 0; i < starpu_memory_nodes_get_count(); i++) {
        double have;

        if (starpu_node_get_kind(i) != d->memory)
            continue;
        have = (double)starpu_memory_get_total(i);
        if (count++ == 0 || have < least)
            least = have;
    }
    if (d->backends[0]->taken)
        taken = (double)d->backends[0]->taken();
    *bytes = least > taken + mib ? least - taken : least < mib ? least : mib;
    return count;
}

double ddp__devices_main_memory(void)
{
    double have =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    double given = (double)starpu_memory_get_total(STARPU_MAIN_RAM);

    have = fmin(have, ddp__memory_limit("/proc/self/cgroup", "/sys/fs/cgroup"));
    return given > 0 ? fmin(have, given) : have; /* STARPU_LIMIT_CPU_MEM */
}

/* ---- calls -------------------------------------------------------------- */

int ddp__devices_ready(ddp_t *ddp)
{
    struct ddp__devices *all = &ddp->devices;
    int rc = 0;

    ddp__pending_wait(&ddp->pending);
    for (int i = 0; rc == 0 && i < all->count; i++)
        for (const struct ddp__backend *const *b = all->used[i].backends; *b;
             b++)
            if ((*b)->ready && (rc = (*b)->ready()) < 0)
                break;
    return rc;
}

double ddp__call_us(const ddp_t *ddp, const struct ddp__call *c, int n)
{
    return ddp__cost_us(c, n, ddp ? ddp->devices.used[0].device : cpu_device());
}

/* Have the first backend of a device that can do so prepare the call. */
static int prepare_on(struct ddp__call *c, const struct ddp__used *u)
{
    struct ddp__choice *on = &c->on[u->device->kind];
    int rc;

    for (const struct ddp__backend *const *b = u->backends; *b; b++) {
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

/* Functions of lib/ run on the CPU; the kernels of a program where it has one;
 * the others where a backend has prepared them. */
static bool can_run(const struct ddp__call *c, const struct ddp__device *d)
{
    if (ddp__op_is(c->op, DDP__IS_HOST))
        return d->kind == DDP_CPU;
    if (ddp__op_is(c->op, DDP__IS_USER))
        return c->user.kernel->on[d->kind] != NULL;
    return c->on[d->kind].backend != NULL;
}

/* On the first device that can, so that the bits are those of one kind, unless
 * CPU workers are to help. */
uint32_t ddp__call_where(const ddp_t *ddp, const struct ddp__call *c)
{
    const struct ddp__devices *all = &ddp->devices;
    uint32_t where = 0;

    if (ddp__op_is(c->op, DDP__IS_HOST) && !c->host.fn)
        return STARPU_NOWHERE;
    for (int i = 0; i < all->count; i++) {
        if (!can_run(c, all->used[i].device))
            continue;
        where |= all->used[i].device->where;
        if (!all->hybrid)
            break;
    }
    return where;
}

const struct ddp__device *ddp__call_device(const ddp_t *ddp,
                                           const struct ddp__call *c,
                                           enum starpu_worker_archtype worker)
{
    const struct ddp__devices *all = &ddp->devices;
    const struct ddp__device *first = NULL;

    for (int i = 0; i < all->count; i++) {
        const struct ddp__device *d = all->used[i].device;

        if (d->workers != worker)
            continue;
        if (can_run(c, d))
            return d;
        if (!first)
            first = d;
    }
    return first ? first : cpu_device();
}

static int fail_no_backend(const struct ddp__call *c)
{
    if (ddp__op_is(c->op, DDP__IS_USER))
        return ddp__fail(DDP_ENODEV,
                         "kernel %s has no function for the workers there are",
                         c->user.kernel->name);
    return ddp__fail(DDP_ENODEV, "no backend can run %s",
                     ddp__signature[c->op].name);
}

static int prepare_call(const ddp_t *ddp, struct ddp__call *c)
{
    const struct ddp__devices *all = &ddp->devices;
    int rc = ddp__call_check(c);

    memset(c->on, 0, sizeof(c->on));
    if (rc < 0 || ddp__op_is(c->op, DDP__IS_HOST))
        return rc;
    for (int i = 0; i < all->count; i++) {
        const struct ddp__used *u = &all->used[i];

        if (ddp__op_is(c->op, DDP__IS_USER) ||
            (ddp__op_is(c->op, DDP__IS_SMALL) && u->device->kind != DDP_CPU))
            continue;
        if ((rc = prepare_on(c, u)) < 0 && rc != DDP_ENODEV)
            return rc;
        if (rc == 0 && !all->hybrid)
            return 0;
    }
    return ddp__call_where(ddp, c) ? 0 : fail_no_backend(c);
}

/* A backend that cannot run the call leaves a message, although the next one
 * can. */
int ddp__call_prepare(const ddp_t *ddp, struct ddp__call *c)
{
    struct ddp__error before = ddp__error_save();
    int rc = prepare_call(ddp, c);

    if (rc == 0)
        ddp__error_restore(&before);
    return rc;
}

size_t ddp__call_kept(const struct ddp__call *c)
{
    size_t size = 0;

    for (int k = 0; k < DDP_DEVICE_KINDS; k++)
        if (c->on[k].plan && c->on[k].backend->kept)
            size += c->on[k].backend->kept(c, c->on[k].plan);
    return size;
}

/* One kind of device packs weights. */
static const struct ddp__choice *sharing(const struct ddp__call *c)
{
    for (int k = 0; k < DDP_DEVICE_KINDS; k++)
        if (c->on[k].plan && c->on[k].backend->common)
            return &c->on[k];
    return NULL;
}

size_t ddp__call_common(const struct ddp__call *c)
{
    const struct ddp__choice *on = sharing(c);

    return on ? on->backend->common(c, on->plan) : 0;
}

void ddp__call_use_common(const struct ddp__call *c, void *memory)
{
    const struct ddp__choice *on = sharing(c);

    on->backend->share(on->plan, memory);
}

size_t ddp__call_room(const struct ddp__call *c, bool adds)
{
    size_t most = 0;

    for (int k = 0; k < DDP_DEVICE_KINDS; k++) {
        const struct ddp__choice *on = &c->on[k];
        size_t size = on->plan && on->backend->room
                          ? on->backend->room(c, on->plan, adds)
                          : 0;

        most = size > most ? size : most;
    }
    return most;
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

/* ---- many calls ---------------------------------------------------------- */

/* The backends begin with what takes long. */
static void warm_calls(const ddp_t *ddp, struct ddp__call *const *c, int calls)
{
    const struct ddp__devices *all = &ddp->devices;
    struct ddp__error before = ddp__error_save();

    for (int i = 0; i < all->count; i++)
        for (const struct ddp__backend *const *b = all->used[i].backends; *b;
             b++)
            if ((*b)->warm)
                (*b)->warm((const struct ddp__call *const *)c, calls);
    ddp__error_restore(&before);
}

struct preparation {
    const ddp_t *ddp;
    struct ddp__call *const *call;
    atomic_int rc; /* the first failure */
    struct ddp__error error;
};

static void prepare_next(void *arg, int i)
{
    struct preparation *p = arg;
    int none = 0, rc;

    if (atomic_load(&p->rc) < 0)
        return;
    rc = ddp__call_prepare(p->ddp, p->call[i]);
    if (rc < 0 && atomic_compare_exchange_strong(&p->rc, &none, rc))
        p->error = ddp__error_save();
}

/* Plans of an accelerator are made by one thread: warm() has prepared what
 * takes long. */
int ddp__calls_prepare(const ddp_t *ddp, struct ddp__call *const *c, int calls)
{
    struct preparation p = {.ddp = ddp, .call = c};

    warm_calls(ddp, c, calls);
    ddp__threads_each(calls, ddp->accelerator ? 1 : calls, prepare_next, &p);
    if (p.rc < 0)
        ddp__error_restore(&p.error);
    return p.rc;
}
