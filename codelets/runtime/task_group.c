/* task_group.c - tasks that belong together: their first failure, end and clock
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/context.h"
#include "runtime/lost.h"
#include "runtime/task_group.h"

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

void ddp__pending_add(struct ddp__pending *p, int tasks)
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

/* ---- a group ------------------------------------------------------------ */

int ddp__task_group_init(struct ddp__task_group *g, ddp_t *ddp, int steps)
{
    memset(g, 0, sizeof(*g));
    g->failed_step = -1;
    g->updated_step = -1;
    g->seen_len = steps;
    if (!(g->seen = calloc((size_t)steps, sizeof(*g->seen))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %d steps", steps);
    if (pthread_mutex_init(&g->lock, NULL) != 0)
        return ddp__fail(DDP_ENOMEM, "out of memory for a mutex");
    ddp__pending_init(&g->pending);
    g->ddp = ddp;
    return 0;
}

void ddp__task_group_fini(struct ddp__task_group *g)
{
    ddp__pending_fini(&g->pending);
    pthread_mutex_destroy(&g->lock);
    free(g->seen);
}

double ddp__task_group_part(const struct ddp__task_group *g, int w, int part)
{
    return atomic_load_explicit(&g->time_of[w].part_s[part],
                                memory_order_relaxed);
}

double ddp__task_group_busy(const struct ddp__task_group *g, int w)
{
    double sum = 0;

    for (int k = 0; k < DDP__PARTS; k++)
        sum += ddp__task_group_part(g, w, k);
    return sum;
}

/* The group's count comes last: its owner may free it then. */
void ddp__task_group_add(struct ddp__task_group *g, int tasks)
{
    if (tasks < 0)
        atomic_fetch_sub(&g->ddp->status.tasks, tasks);
    ddp__pending_add(&g->ddp->pending, tasks);
    ddp__pending_add(&g->pending, tasks);
}

void ddp__task_group_wait(struct ddp__task_group *g)
{
    ddp__pending_wait(&g->pending);
}

void ddp__task_group_fail(struct ddp__task_group *g, int64_t step, int rc,
                          const char *op, const char *device)
{
    pthread_mutex_lock(&g->lock);
    if (atomic_load(&g->rc) == 0 || step < atomic_load(&g->failed_step)) {
        if (op)
            snprintf(g->message, sizeof(g->message), "step %lld, %s%s%s: %s",
                     (long long)step, op, device ? " on " : "",
                     device ? device : "", ddp_errmsg());
        else
            snprintf(g->message, sizeof(g->message), "%s", ddp_errmsg());
        atomic_store(&g->failed_step, step);
        atomic_store(&g->rc, rc);
    }
    pthread_mutex_unlock(&g->lock);
}

void ddp__task_group_check(struct ddp__task_group *g, int64_t step)
{
    int rc = ddp__lost_check();

    if (rc < 0)
        ddp__task_group_fail(g, step, rc, NULL, NULL);
}

int ddp__task_group_error(struct ddp__task_group *g)
{
    int rc = atomic_load(&g->rc);

    if (rc == 0)
        return 0;
    pthread_mutex_lock(&g->lock);
    ddp__fail(rc, "%s", g->message);
    pthread_mutex_unlock(&g->lock);
    return rc;
}

/* ---- numbers that are not finite ---------------------------------------- */

/* The place of a step, and what it holds from the first worker on. */
static _Atomic int64_t *seen_at(struct ddp__task_group *g, int64_t step,
                                int64_t *first)
{
    *first = (step + 1) * DDP__MAX_WORKERS;
    return &g->seen[step % g->seen_len];
}

void ddp__task_group_see(struct ddp__task_group *g, int64_t step, int worker)
{
    int64_t first;
    _Atomic int64_t *at = seen_at(g, step, &first);
    int64_t was = atomic_load(at);

    while (was / DDP__MAX_WORKERS != step + 1 &&
           !atomic_compare_exchange_weak(at, &was, first + worker))
        ;
}

void ddp__task_group_seen_by(struct ddp__task_group *g, int64_t step, char *out,
                             size_t size)
{
    int64_t first;
    _Atomic int64_t *at = seen_at(g, step, &first);
    int64_t worker = atomic_exchange(at, 0) - first;

    snprintf(out, size, "a device");
    if (worker >= 0 && worker < DDP__MAX_WORKERS)
        starpu_worker_get_name((int)worker, out, size);
}
