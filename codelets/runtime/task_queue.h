/* task_queue.h - ready tasks of the scheduler: by priority, then first come
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_TASK_QUEUE_H
#define DDP_TASK_QUEUE_H

#include <stdbool.h>

#include <starpu.h>
#include <starpu_scheduler.h>

/* Linked by task->next, which is the scheduler's while it has the task. */
struct queue {
    struct starpu_task *first, *last;
};

static inline bool can_run(int id, struct starpu_task *t)
{
    return starpu_worker_can_execute_task_first_impl((unsigned)id, t, NULL);
}

/* Whether a worker's memory is the main one. */
static inline bool is_in_main(int id)
{
    return starpu_worker_get_memory_node((unsigned)id) == STARPU_MAIN_RAM;
}

static inline void queue_put(struct queue *q, struct starpu_task *t)
{
    struct starpu_task **at = &q->first;

    if (q->last && q->last->priority >= t->priority)
        at = &q->last->next;
    while (*at && (*at)->priority >= t->priority)
        at = &(*at)->next;
    t->prev = NULL;
    t->next = *at;
    *at = t;
    if (!t->next)
        q->last = t;
}

/* The first task of q that the worker can run, or NULL. */
static inline struct starpu_task *queue_first(const struct queue *q, int id)
{
    struct starpu_task *t = q->first;

    while (t && !can_run(id, t))
        t = t->next;
    return t;
}

static inline void queue_remove(struct queue *q, struct starpu_task *t)
{
    struct starpu_task **at = &q->first, *before = NULL;

    while (*at != t) {
        before = *at;
        at = &before->next;
    }
    *at = t->next;
    if (q->last == t)
        q->last = before;
    t->next = NULL;
}

static inline struct starpu_task *queue_take(struct queue *q, int id)
{
    struct starpu_task *t = queue_first(q, id);

    if (t)
        queue_remove(q, t);
    return t;
}

#endif
