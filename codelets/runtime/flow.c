/* flow.c - tasks that belong together: their first failure, end and clock
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/context.h"
#include "runtime/flow.h"

double ddp__now(void)
{
    return 1e-6 * starpu_timing_now();
}

/* ---- tasks that are not done -------------------------------------------- */

void ddp__pending_init(struct ddp__pending *p)
{
    starpu_pthread_mutex_init(&p->lock, NULL);
    starpu_pthread_cond_init(&p->none, NULL);
    p->tasks = 0;
}

void ddp__pending_fini(struct ddp__pending *p)
{
    starpu_pthread_cond_destroy(&p->none);
    starpu_pthread_mutex_destroy(&p->lock);
}

static void pending_add(struct ddp__pending *p, int tasks)
{
    starpu_pthread_mutex_lock(&p->lock);
    p->tasks += tasks;
    if (p->tasks == 0)
        starpu_pthread_cond_broadcast(&p->none);
    starpu_pthread_mutex_unlock(&p->lock);
}

void ddp__pending_wait(struct ddp__pending *p)
{
    starpu_pthread_mutex_lock(&p->lock);
    while (p->tasks > 0)
        starpu_pthread_cond_wait(&p->none, &p->lock);
    starpu_pthread_mutex_unlock(&p->lock);
}

/* ---- a flow ------------------------------------------------------------- */

int ddp__flow_init(struct ddp__flow *f, ddp_t *ddp)
{
    memset(f, 0, sizeof(*f));
    f->failed_step = -1;
    f->updated_step = -1;
    if (pthread_mutex_init(&f->lock, NULL) != 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a mutex");
    ddp__pending_init(&f->pending);
    f->ddp = ddp;
    return 0;
}

void ddp__flow_fini(struct ddp__flow *f)
{
    ddp__pending_fini(&f->pending);
    pthread_mutex_destroy(&f->lock);
}

/* The flow's own count comes last: its owner may free it then. */
void ddp__flow_add(struct ddp__flow *f, int tasks)
{
    pending_add(&f->ddp->pending, tasks);
    pending_add(&f->pending, tasks);
}

void ddp__flow_wait(struct ddp__flow *f)
{
    ddp__pending_wait(&f->pending);
}

void ddp__flow_fail(struct ddp__flow *f, int64_t step, int rc, const char *op,
                    const char *device)
{
    pthread_mutex_lock(&f->lock);
    if (atomic_load(&f->rc) == 0 || step < atomic_load(&f->failed_step)) {
        snprintf(f->message, sizeof(f->message), "step %lld, %s on %s: %s",
                 (long long)step, op, device, ddp_errmsg());
        atomic_store(&f->failed_step, step);
        atomic_store(&f->rc, rc);
    }
    pthread_mutex_unlock(&f->lock);
}

int ddp__flow_error(struct ddp__flow *f)
{
    int rc = atomic_load(&f->rc);

    if (rc == 0)
        return 0;
    pthread_mutex_lock(&f->lock);
    ddp__fail(rc, "%s", f->message);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

void ddp__flow_who(struct ddp__flow *f, char *out, size_t size)
{
    int seen_by = atomic_exchange(&f->seen_by, 0);

    snprintf(out, size, "a device");
    if (seen_by)
        starpu_worker_get_name(seen_by - 1, out, size);
}
