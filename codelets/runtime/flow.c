/* flow.c - tasks that belong together: their first failure, end and clock
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/flow.h"

double ddp__now(void)
{
    return 1e-6 * starpu_timing_now();
}

int ddp__flow_init(struct ddp__flow *f)
{
    memset(f, 0, sizeof(*f));
    f->failed_step = -1;
    f->updated_step = -1;
    if (pthread_mutex_init(&f->lock, NULL) != 0)
        return ddp__fail(DDP_ENOMEM, "no mutex to be had");
    starpu_pthread_mutex_init(&f->count_lock, NULL);
    starpu_pthread_cond_init(&f->done, NULL);
    return 0;
}

void ddp__flow_fini(struct ddp__flow *f)
{
    starpu_pthread_cond_destroy(&f->done);
    starpu_pthread_mutex_destroy(&f->count_lock);
    pthread_mutex_destroy(&f->lock);
}

void ddp__flow_add(struct ddp__flow *f, int tasks)
{
    starpu_pthread_mutex_lock(&f->count_lock);
    f->tasks += tasks;
    if (f->tasks == 0)
        starpu_pthread_cond_broadcast(&f->done);
    starpu_pthread_mutex_unlock(&f->count_lock);
}

void ddp__flow_wait(struct ddp__flow *f)
{
    starpu_pthread_mutex_lock(&f->count_lock);
    while (f->tasks > 0)
        starpu_pthread_cond_wait(&f->done, &f->count_lock);
    starpu_pthread_mutex_unlock(&f->count_lock);
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
