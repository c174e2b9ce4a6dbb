/* helpers.c - workers that have no task help with a long one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * To help is a task without data, which any policy gives to a worker that has
 * nothing better to do.  It is submitted when the one that it helps runs, so
 * that no worker waits for a task that has not begun, and ends with it.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/team.h"
#include "runtime/context.h"
#include "runtime/helpers.h"
#include "runtime/task_group.h"

enum { MOST = 7 }; /* a kernel has eight parts at most */

struct ddp__helpers {
    struct ddp__team team;
    atomic_int users;
    ddp_t *ddp; /* not owned */
};

static void help(void *buffers[], void *arg)
{
    (void)buffers;
    ddp__team_help(&((struct ddp__helpers *)arg)->team);
}

static struct starpu_codelet codelet = {
    .name = "help",
    .where = STARPU_CPU,
    .cpu_funcs = {help},
    .cpu_funcs_name = {"help"},
};

/* The last one frees it. */
static void release(struct ddp__helpers *h)
{
    if (atomic_fetch_sub(&h->users, 1) == 1)
        free(h);
}

static void end_help(void *arg)
{
    struct ddp__helpers *h = arg;
    ddp_t *ddp = h->ddp;

    release(h);
    ddp__pending_add(&ddp->pending, -1);
}

/* Without memory, or a worker, nobody helps. */
static void call_helper(struct ddp__helpers *h)
{
    struct starpu_task *task = starpu_task_create();

    if (!task)
        return;
    task->cl = &codelet;
    task->name = codelet.name;
    task->cl_arg = h;
    task->callback_func = end_help;
    task->callback_arg = h;
    atomic_fetch_add(&h->users, 1);
    ddp__pending_add(&h->ddp->pending, 1);
    if (starpu_task_submit(task) == 0)
        return;
    end_help(h);
    task->destroy = 0;
    starpu_task_destroy(task);
}

struct ddp__helpers *ddp__helpers_begin(ddp_t *ddp)
{
    int others = ddp_worker_count(ddp) - 1;
    struct ddp__helpers *h = others > 0 ? calloc(1, sizeof(*h)) : NULL;

    if (!h)
        return NULL;
    atomic_store(&h->users, 1);
    h->ddp = ddp;
    ddp__team_enter(&h->team);
    for (int i = 0; i < others && i < MOST; i++)
        call_helper(h);
    return h;
}

void ddp__helpers_end(struct ddp__helpers *h)
{
    if (!h)
        return;
    ddp__team_leave();
    release(h);
}
