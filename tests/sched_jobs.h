/* sched_jobs.h - tasks for the ddp scheduler, and what became of them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A task takes some time and notes which worker ran it, and when.  A program
 * calls begin_jobs(), and for each set of workers start() and
 * starpu_shutdown().
 */
#ifndef SCHED_JOBS_H
#define SCHED_JOBS_H

#include <stdatomic.h>

#include "runtime/scheduler.h"
#include "runtime/task_group.h"
#include "tap.h"

enum { JOBS = 2048, DEPS = 7, ANY = -1, UNTIL_GO = -1 };

/* A task, and what became of it. */
struct job {
    struct ddp__sched_tag tag;
    int us;        /* how long it takes */
    int slow;      /* times as long on the second worker; 0: as long */
    int only;      /* the worker that can run it, or ANY */
    unsigned impl; /* the implementation that can */
    int priority;
    starpu_data_handle_t done, after[DEPS]; /* written; read */
    int deps;
    int worker, order, ran_impl; /* filled in by the run; order from 1 */
};

extern struct job job[JOBS];
extern int jobs;
extern atomic_int clock_; /* tasks that have begun */
extern atomic_bool go;    /* ends the tasks that take UNTIL_GO */
extern int cpu[2];        /* ids of the workers; ANY: there is none */

/* Once, before all else. */
void begin_jobs(void);

/* StarPU with so many workers; false: there are fewer. */
bool start(const char *ncpu);

/* One more job, which submit() submits after those that after() has named. */
struct job *add(enum ddp__sched_kind kind, int64_t step, int number);
void after(struct job *j, starpu_data_handle_t handle);
void submit(struct job *j, bool tagged);

/* Wait for so many tasks to begin, or 10 s. */
void wait_begun(int n);

int all_ran(void);

/* Forget all jobs, once they have run. */
void clear(void);

/* ---- gates -------------------------------------------------------------- */

/* Something that holds back the tasks after its handle. */
struct gate {
    starpu_data_handle_t handle;
    struct starpu_task *opener;
};

struct gate gate_new(void);
void gate_open(struct gate *g);

/* Once all has run. */
void gate_free(struct gate *g);

#endif
