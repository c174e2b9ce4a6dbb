/* sched_jobs.c - tasks for the ddp scheduler, and what became of them
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "sched_jobs.h"

struct job job[JOBS];
int jobs;
atomic_int clock_;
atomic_bool go;
int cpu[2];

void begin_jobs(void)
{
    alarm(200);                  /* a lost wake-up would last for ever */
    prctl(PR_SET_TIMERSLACK, 1); /* sleep no longer than asked, workers too */
    unsetenv("STARPU_SCHED");
}

/* Sleeping takes the same time however busy the machine is. */
static void run(struct job *j, int impl)
{
    struct timespec t = {.tv_nsec = j->us * 1000L}, ms = {.tv_nsec = 1000000};

    j->order = ++clock_;
    j->worker = starpu_worker_get_id();
    if (j->slow && j->worker == cpu[1])
        t.tv_nsec *= j->slow;
    j->ran_impl = impl;
    if (j->us > 0)
        nanosleep(&t, NULL);
    while (j->us == UNTIL_GO && !go)
        nanosleep(&ms, NULL);
}

static void run0(void *buffers[], void *arg)
{
    (void)buffers;
    run(arg, 0);
}

static void run1(void *buffers[], void *arg)
{
    (void)buffers;
    run(arg, 1);
}

static int can(unsigned worker, struct starpu_task *task, unsigned impl)
{
    const struct job *j = task->cl_arg;

    return impl == j->impl && (j->only == ANY || j->only == (int)worker);
}

static struct starpu_codelet cl = {
    .cpu_funcs = {run0, run1},
    .can_execute = can,
    .nbuffers = STARPU_VARIABLE_NBUFFERS,
    .name = "job",
};

struct job *add(enum ddp__sched_kind kind, int64_t step, int number)
{
    struct job *j = &job[jobs++];

    if (jobs > JOBS)
        bail_out("more than %d jobs", JOBS);
    *j = (struct job){.only = ANY, .worker = -1};
    j->tag = (struct ddp__sched_tag){.magic = DDP__SCHED_MAGIC,
                                     .kind = kind,
                                     .step = step,
                                     .lane = number,
                                     .owner = number};
    return j;
}

void after(struct job *j, starpu_data_handle_t handle)
{
    for (int i = 0; i < j->deps; i++)
        if (j->after[i] == handle)
            return;
    if (j->deps < DEPS)
        j->after[j->deps++] = handle;
}

void submit(struct job *j, bool tagged)
{
    struct starpu_task *t = starpu_task_create();

    starpu_void_data_register(&j->done);
    t->cl = &cl;
    t->cl_arg = j;
    t->priority = j->priority;
    t->nbuffers = 1 + j->deps;
    t->handles[0] = j->done;
    t->modes[0] = STARPU_W;
    for (int i = 0; i < j->deps; i++) {
        t->handles[1 + i] = j->after[i];
        t->modes[1 + i] = STARPU_R;
    }
    if (tagged)
        t->sched_data = &j->tag;
    if (starpu_task_submit(t) < 0)
        bail_out("starpu_task_submit");
}

struct gate gate_new(void)
{
    static struct starpu_codelet nothing = {
        .where = STARPU_NOWHERE, .nbuffers = 1, .modes = {STARPU_W}};
    struct gate g = {.opener = starpu_task_create()};
    struct starpu_task *t = starpu_task_create();

    starpu_void_data_register(&g.handle);
    t->cl = &nothing;
    t->handles[0] = g.handle;
    starpu_task_declare_deps_array(t, 1, &g.opener);
    if (starpu_task_submit(t) < 0)
        bail_out("starpu_task_submit");
    return g;
}

void gate_open(struct gate *g)
{
    if (starpu_task_submit(g->opener) < 0)
        bail_out("starpu_task_submit");
}

void gate_free(struct gate *g)
{
    starpu_data_unregister(g->handle);
}

void wait_begun(int n)
{
    struct timespec ms = {.tv_nsec = 1000000};

    for (int i = 0; i < 10000 && clock_ < n; i++)
        nanosleep(&ms, NULL);
}

void clear(void)
{
    for (int i = 0; i < jobs; i++)
        starpu_data_unregister(job[i].done);
    jobs = 0;
    clock_ = 0;
}

int all_ran(void)
{
    int n = 0;

    for (int i = 0; i < jobs; i++)
        n += job[i].order > 0;
    return n;
}

bool start(const char *ncpu)
{
    struct starpu_conf conf;

    setenv("STARPU_NCPU", ncpu, 1);
    starpu_conf_init(&conf);
    conf.sched_policy = &ddp__sched_policy;
    if (starpu_init(&conf) < 0)
        bail_out("starpu_init");
    cpu[0] = cpu[1] = ANY;
    starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, cpu, 2);
    return (int)starpu_cpu_worker_get_count() == atoi(ncpu);
}
