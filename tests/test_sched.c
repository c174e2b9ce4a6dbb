/* test_sched.c - the ddp scheduler: no sub-batch is split, no task is forgotten
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/scheduler.h"
#include "runtime/scheduler_names.h"
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

static struct job job[JOBS];
static int jobs;
static atomic_int clock_;
static atomic_bool go; /* ends the tasks that take UNTIL_GO */
static int cpu[2];     /* ids of the workers */

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

static struct job *add(enum ddp__sched_kind kind, int64_t step, int number)
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

static void after(struct job *j, starpu_data_handle_t handle)
{
    for (int i = 0; i < j->deps; i++)
        if (j->after[i] == handle)
            return;
    if (j->deps < DEPS)
        j->after[j->deps++] = handle;
}

static void submit(struct job *j, bool tagged)
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

/* Something that holds back the tasks after its handle. */
struct gate {
    starpu_data_handle_t handle;
    struct starpu_task *opener;
};

static struct gate gate_new(void)
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

static void gate_open(struct gate *g)
{
    if (starpu_task_submit(g->opener) < 0)
        bail_out("starpu_task_submit");
}

/* Once all has run. */
static void gate_free(struct gate *g)
{
    starpu_data_unregister(g->handle);
}

/* Wait for so many tasks to begin, or 10 s. */
static void wait_begun(int n)
{
    struct timespec ms = {.tv_nsec = 1000000};

    for (int i = 0; i < 10000 && clock_ < n; i++)
        nanosleep(&ms, NULL);
}

static void clear(void)
{
    for (int i = 0; i < jobs; i++)
        starpu_data_unregister(job[i].done);
    jobs = 0;
    clock_ = 0;
}

static int all_ran(void)
{
    int n = 0;

    for (int i = 0; i < jobs; i++)
        n += job[i].order > 0;
    return n;
}

static bool start(const char *ncpu)
{
    struct starpu_conf conf;

    setenv("STARPU_NCPU", ncpu, 1);
    starpu_conf_init(&conf);
    conf.sched_policy = &ddp__sched_policy;
    if (starpu_init(&conf) < 0)
        bail_out("starpu_init");
    starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, cpu, 2);
    return (int)starpu_cpu_worker_get_count() == atoi(ncpu);
}

/* steps x lanes chains of k tasks; every step waits for an update that waits
 * for all lanes of the one before. */
static void submit_steps(int steps, int lanes, int k, int us)
{
    struct job *update = NULL, *before, *j, *merge;

    for (int s = 0; s < steps; s++) {
        merge = NULL;
        for (int l = 0; l < lanes; l++) {
            before = update;
            for (int i = 0; i < k; i++, before = j) {
                j = add(DDP__SCHED_LANE, s, l);
                j->us = us;
                j->tag.last = i == k - 1;
                if (before)
                    after(j, before->done);
                submit(j, true);
            }
            j = add(DDP__SCHED_MERGE, s, l);
            after(j, before->done);
            if (merge)
                after(j, merge->done);
            submit(j, true);
            merge = j;
        }
        update = add(DDP__SCHED_UPDATE, s, s);
        if (merge)
            after(update, merge->done);
        submit(update, true);
    }
}

/* Lanes whose tasks did not all run on one worker; and, in had[], how many
 * lanes each worker had. */
static int split_lanes(int steps, int lanes, int had[2], int owner[])
{
    int split = 0;

    had[0] = had[1] = 0;
    for (int n = 0; n < steps * lanes; n++) {
        int worker = -1;
        bool whole = true;

        for (int i = 0; i < jobs; i++) {
            const struct job *j = &job[i];

            if (j->tag.kind != DDP__SCHED_LANE || j->tag.step != n / lanes ||
                j->tag.lane != n % lanes)
                continue;
            if (worker >= 0 && worker != j->worker)
                whole = false;
            worker = j->worker;
        }
        split += !whole;
        owner[n] = worker;
        had[worker == cpu[1]]++;
    }
    return split;
}

/* The most lanes of one step that a worker, or both together, had begun and not
 * ended. */
static int most_in_flight(bool together)
{
    int most = 0;

    for (int i = 0; i < jobs; i++) {
        const struct job *a = &job[i];
        int open = 0;

        if (a->tag.kind != DDP__SCHED_LANE)
            continue;
        /* At a's start: lanes begun before or then, with a task to come. */
        for (int b = 0; b < jobs; b++) {
            int first = 1 << 30, last = 0;
            const struct job *j = &job[b];

            if (j->tag.kind != DDP__SCHED_LANE || !j->tag.last ||
                j->tag.step != a->tag.step ||
                (j->worker != a->worker && !together))
                continue;
            for (int c = 0; c < jobs; c++)
                if (job[c].tag.kind == DDP__SCHED_LANE &&
                    job[c].tag.step == j->tag.step &&
                    job[c].tag.lane == j->tag.lane) {
                    first = job[c].order < first ? job[c].order : first;
                    last = job[c].order > last ? job[c].order : last;
                }
            open += first <= a->order && a->order <= last;
        }
        most = open > most ? open : most;
    }
    return most;
}

static void test_lanes(void)
{
    enum { STEPS = 4, LANES = 8, K = 6 };
    int had[2], owner[STEPS * LANES];

    submit_steps(STEPS, LANES, K, 200);
    starpu_task_wait_for_all();
    is_int(all_ran(), jobs, "%d steps of %d lanes: every task ran", STEPS,
           LANES);
    is_int(split_lanes(STEPS, LANES, had, owner), 0,
           "no lane of a step ran on two workers");
    ok(had[0] > 0 && had[1] > 0, "both workers had lanes");
    is_int(most_in_flight(false), 1, "a worker ends a lane before the next");
    clear();
}

/* The machine may hold a worker up, so the best of five runs counts. */
static void test_balance(void)
{
    enum { LANES = 8, K = 4 };
    int had[2], owner[LANES], even = 0;

    for (int try = 0; try < 5 && !even; try++) {
        submit_steps(1, LANES, K, 2000);
        starpu_task_wait_for_all();
        split_lanes(1, LANES, had, owner);
        even = had[0] == LANES / 2;
        clear();
    }
    ok(even, "8 equal lanes on 2 workers: 4 each");
}

/* ---- unequal workers ---------------------------------------------------- */

/* A step of sub-batches of K tasks each, which take 4 times as long on the
 * second worker; a lane has its own one after another.  The first may stop the
 * first worker. */
static void submit_unequal(int step, int lanes, int subs, int k, bool stops)
{
    struct job *last[8] = {NULL};

    for (int s = 0; s < subs; s++)
        for (int i = 0; i < k; i++) {
            struct job *j = add(DDP__SCHED_LANE, step, s % lanes);

            j->us = stops && s == 0 ? UNTIL_GO : 4000;
            j->only = stops && s == 0 ? cpu[0] : ANY;
            j->slow = 4;
            j->tag.sub = s;
            j->tag.subs = subs;
            j->tag.last = i == k - 1;
            if (last[s % lanes])
                after(j, last[s % lanes]->done);
            last[s % lanes] = j;
            submit(j, true);
        }
}

/* Sub-batches that the second worker had; -1: one was split. */
static int slow_had(int subs, int k)
{
    int had = 0;

    for (int s = 0; s < subs; s++) {
        for (int i = 1; i < k; i++)
            if (job[s * k + i].worker != job[s * k].worker)
                return -1;
        had += job[s * k].worker == cpu[1];
    }
    return had;
}

/* Ideal is that both end at the same time, four fifths of the work done by the
 * first.  Sub-batches are indivisible, and those of a lane wait for each other,
 * so the best schedule of these takes 1.094 times as long (all schedules were
 * tried).  The first step shows how fast workers are; the machine may hold one
 * up, so the best of thirty runs counts. */
static void test_unequal(int lanes, int subs, int most)
{
    enum { K = 2 };
    int had, least = subs;
    double begin, seconds, ideal = subs * K * 4e-3 * 4 / 5, best = INFINITY;
    bool whole = true;

    for (int try = 0; try < 30 && (least > most || best > 1.15 * ideal); try++)
        for (int step = 0; step < 2; step++) {
            begin = ddp__now();
            submit_unequal(step, lanes, subs, K, false);
            starpu_task_wait_for_all();
            seconds = ddp__now() - begin;
            best = step == 1 && seconds < best ? seconds : best;
            had = slow_had(subs, K);
            whole = whole && had >= 0;
            if (step == 1 && had < least)
                least = had;
            clear();
        }
    ok(whole, "%d sub-batches in %d lanes: none is split", subs, lanes);
    ok(least <= most,
       "a worker that takes 4 times as long gets %d of them, at most %d", least,
       most);
    ok(best <= 1.15 * ideal, "%.1f ms, ideal %.1f and 15 %%", 1e3 * best,
       1e3 * ideal);
}

/* The second worker is slower with one graph, but not with another, of which
 * nothing is known: it takes half of that at once.  The machine may hold it up.
 */
static void test_graphs(void)
{
    int halves = 0;

    for (int try = 1; try <= 10; try++) {
        for (int step = 0; step < 3; step++) {
            submit_unequal(step, 4, 4, 1, false);
            starpu_task_wait_for_all();
            clear();
        }
        for (int s = 0; s < 2; s++) {
            struct job *j = add(DDP__SCHED_LANE, try, s);

            j->us = 5000;
            j->tag.graph = try;
            j->tag.sub = s;
            j->tag.subs = 2;
            j->tag.last = true;
            submit(j, true);
        }
        starpu_task_wait_for_all();
        halves += slow_had(2, 1) == 1;
        clear();
    }
    ok(halves > 5,
       "a worker that is slower with another graph does its half, %d of 10 "
       "times",
       halves);
}

/* Who leaves work to a faster worker takes no time of a processor meanwhile. */
static void test_leaving(void)
{
    double used = 1, wall = 0;

    for (int step = 0; step < 6; step++) {
        double begin = ddp__now();
        clock_t before = clock();

        submit_unequal(step, 2, 2, 10, false);
        starpu_task_wait_for_all();
        wall = ddp__now() - begin;
        if (slow_had(2, 10) == 0)
            used =
                fmin(used, (double)(clock() - before) / CLOCKS_PER_SEC / wall);
        clear();
    }
    ok(used < 0.1,
       "leaving all to a faster worker takes %.0f %% of a processor",
       100 * used);
}

/* The fast worker stops in the middle of a step: what it has not begun, the
 * slow one does, although it would be slower. */
static void test_stall(void)
{
    enum { SUBS = 6 };
    int begun;

    submit_unequal(0, SUBS, SUBS, 1, false);
    starpu_task_wait_for_all();
    clear();
    go = false;
    submit_unequal(1, SUBS, SUBS, 1, true);
    wait_begun(SUBS);
    begun = clock_;
    go = true;
    starpu_task_wait_for_all();
    is_int(begun, SUBS, "nothing waits for a worker that has stopped");
    clear();
}

/* Lanes that begin (all at once) and then wait. */
static void submit_waiting(int step, int lanes, const struct gate *begin,
                           const struct gate *rest)
{
    for (int l = 0; l < lanes; l++) {
        struct job *first = add(DDP__SCHED_LANE, step, l), *j;

        after(first, begin->handle);
        submit(first, true);
        j = add(DDP__SCHED_LANE, step, l);
        j->tag.last = true;
        after(j, first->done);
        after(j, rest->handle);
        submit(j, true);
    }
}

static void test_cap(void)
{
    struct gate begin = gate_new(), rest = gate_new();
    struct timespec moment = {.tv_nsec = 50000000};

    submit_waiting(0, 5, &begin, &rest);
    gate_open(&begin);
    wait_begun(2);
    nanosleep(&moment, NULL);
    is_int(clock_, 2,
           "two workers begin two lanes, and no third while these "
           "wait");
    gate_open(&rest);
    starpu_task_wait_for_all();
    is_int(all_ran(), 10, "then they run all of them");
    gate_free(&begin);
    gate_free(&rest);
    clear();
}

/* Both workers are busy until both lanes of the second step are ready. */
static void test_sticky(void)
{
    int kept = 0;

    for (int round = 0; round < 10; round++) {
        struct job *j[4], *busy;

        for (int l = 0; l < 2; l++) {
            j[l] = add(DDP__SCHED_LANE, 0, l);
            j[l]->only = cpu[(l + round) % 2];
            j[l]->tag.last = true;
            submit(j[l], true);
        }
        starpu_task_wait_for_all();
        go = false;
        for (int w = 0; w < 2; w++) {
            busy = add(DDP__SCHED_INPUT, 0, 0);
            busy->only = cpu[w];
            busy->us = UNTIL_GO;
            submit(busy, true);
        }
        wait_begun(4);
        for (int l = 0; l < 2; l++) {
            j[2 + l] = add(DDP__SCHED_LANE, 1, l);
            j[2 + l]->us = 30000;
            j[2 + l]->tag.last = true;
            submit(j[2 + l], true);
        }
        go = true;
        starpu_task_wait_for_all();
        kept += j[2]->worker == j[0]->worker && j[3]->worker == j[1]->worker;
        clear();
    }
    /* A worker held up for longer than a lane takes may lose its own. */
    ok(kept >= 8, "lanes come back to their worker (%d of 10 times)", kept);
}

/* A task that keeps a worker busy, for so long. */
static void keep_busy(int worker, int us)
{
    struct job *busy = add(DDP__SCHED_INPUT, 0, 0);

    busy->only = worker;
    busy->us = us;
    submit(busy, true);
}

/* Lanes that know their place among all. */
static void submit_places(struct job *lane[], int lanes, int us)
{
    for (int l = 0; l < lanes; l++) {
        lane[l] = add(DDP__SCHED_LANE, 0, l);
        lane[l]->us = us;
        lane[l]->tag.last = true;
        lane[l]->tag.nth = l;
        lane[l]->tag.lanes = lanes;
        submit(lane[l], true);
    }
}

/* Both workers are busy until all lanes are submitted; then one is, or none.
 * The machine may hold a worker up, so the best of five runs counts. */
static void test_neighbours(void)
{
    static const int order[] = {0, 1, 2, 3, 7, 6, 5, 4};
    enum { LANES = 8 };
    struct job *lane[LANES];
    int kept = 0, ordered = 0;

    for (int try = 0; try < 5 && kept < LANES; try++, clear()) {
        keep_busy(cpu[0], 20000);
        keep_busy(cpu[1], 20000);
        wait_begun(2);
        submit_places(lane, LANES, 10000);
        starpu_task_wait_for_all();
        kept = 0;
        for (int l = 0; l < LANES; l++)
            kept += lane[l]->worker == cpu[l >= LANES / 2];
    }
    is_int(kept, LANES, "each worker has lanes that are neighbours");
    for (int try = 0; try < 5 && ordered < LANES; try++, clear()) {
        go = false;
        keep_busy(cpu[0], 20000);
        keep_busy(cpu[1], UNTIL_GO);
        wait_begun(2);
        submit_places(lane, LANES, 0);
        wait_begun(2 + LANES);
        go = true;
        starpu_task_wait_for_all();
        ordered = 0;
        for (int i = 0; i < LANES; i++)
            ordered += lane[order[i]]->order == 3 + i;
    }
    is_int(ordered, LANES,
           "one without any takes the last ones of another that is busy");
}

/* One step, each lane submitted when the one before has begun: nobody else lets
 * idle workers look again.  The second worker leaves its own to the first. */
static bool submit_slowly(int step, int lanes)
{
    bool live = true;

    for (int l = 0; l < lanes; l++) {
        struct job *j = add(DDP__SCHED_LANE, step, l);

        j->us = 1000;
        j->slow = 4;
        j->tag.last = true;
        j->tag.graph = lanes;
        j->tag.sub = j->tag.nth = l;
        j->tag.subs = j->tag.lanes = lanes;
        submit(j, true);
        if (live)
            wait_begun(l + 1);
        live = clock_ > l;
    }
    return live;
}

static void test_slow_submission(int workers)
{
    enum { STEPS = 12, MOST = 8 };
    int lanes, step = 0;
    bool live = true;

    for (lanes = 1; lanes <= MOST && live; lanes++)
        for (int i = 0; i < STEPS && live; i++) {
            live = submit_slowly(step++, lanes);
            starpu_task_wait_for_all();
            clear();
        }
    ok(live, "%d workers: a lane begins before the next is submitted", workers);
}

/* One sub-batch, of a graph of its own.  If it is overtaken, its first tasks
 * have ended before others are submitted. */
static void submit_sub(int step, int lane, bool overtaken)
{
    enum { TASKS = 40, SHORT = 2 };
    struct job *before = NULL;

    for (int i = 0; i < TASKS; i++) {
        struct job *j = add(DDP__SCHED_LANE, step, lane);

        j->us = i < SHORT ? 100 : 1000;
        j->tag.last = i == TASKS - 1;
        j->tag.graph = 12;
        j->tag.sub = j->tag.nth = lane;
        j->tag.subs = j->tag.lanes = 2;
        if (before)
            after(j, before->done);
        submit(j, true);
        before = j;
        if (overtaken && i < SHORT)
            starpu_task_wait_for_all();
    }
}

/* A worker that ends tasks sooner than they are submitted has not ended its
 * sub-batch each time, nor is it faster than the other one. */
static void test_overtaken_submission(void)
{
    enum { STEPS = 6 };
    int shared = 0;

    for (int step = 0; step < STEPS; step++) {
        for (int lane = 0; lane < 2; lane++)
            submit_sub(step, lane, step == 0 && lane == 0);
        starpu_task_wait_for_all();
        shared += step > 1 && slow_had(2, jobs / 2) == 1;
        clear();
    }
    ok(shared >= STEPS - 3,
       "%d of %d steps are shared after one that came slowly", shared,
       STEPS - 2);
}

/* What waits while the only worker is busy comes out in order of rank. */
static void test_order(void)
{
    static const char *const want = "MMUabcdxyFI";
    char got[32] = "";
    struct job *gate, *j;

    gate = add(DDP__SCHED_INPUT, 0, 0);
    gate->us = 20000;
    submit(gate, false);
    wait_begun(1);
    for (const char *c = "IFxyabdcUMM"; *c; c++) {
        enum ddp__sched_kind kind = *c == 'I'   ? DDP__SCHED_INPUT
                                    : *c == 'M' ? DDP__SCHED_MERGE
                                    : *c == 'U' ? DDP__SCHED_UPDATE
                                                : DDP__SCHED_LANE;

        j = add(kind, 0, 0);
        j->us = *c; /* to know it by */
        j->priority = *c == 'U' ? -1 : *c == 'd' ? -1 : 0;
        if (*c == 'x' || *c == 'y')
            j->tag.lane = 3;
        j->tag.last = *c == 'y' || *c == 'c';
        submit(j, *c != 'F');
    }
    starpu_task_wait_for_all();
    for (int i = 1; i < jobs; i++)
        got[job[i].order - 2] = (char)job[i].us;
    is_str(got, want,
           "merges, updates, lanes in order and by priority, foreign, input");
    clear();
}

/* Lanes of step 1 that can begin early must not keep step 0 from running:
 * their second tasks wait for it. */
static void test_later_step_first(void)
{
    struct gate gate = gate_new();
    struct job *early, *j, *update = add(DDP__SCHED_UPDATE, 0, 0);

    for (int l = 0; l < 2; l++) {
        j = add(DDP__SCHED_LANE, 0, l);
        j->tag.last = true;
        after(j, gate.handle);
        submit(j, true);
        after(update, j->done);
    }
    submit(update, true);
    for (int l = 0; l < 2; l++) {
        early = add(DDP__SCHED_LANE, 1, l);
        submit(early, true);
        j = add(DDP__SCHED_LANE, 1, l);
        j->tag.last = true;
        after(j, early->done);
        after(j, update->done);
        submit(j, true);
    }
    wait_begun(2);
    is_int(clock_, 2, "lanes of the next step begin when they can");
    gate_open(&gate);
    starpu_task_wait_for_all();
    gate_free(&gate);
    is_int(all_ran(), jobs, "and do not keep the older step from running");
    clear();
}

/* Tasks that only one worker can run, in lanes that the other may have. */
static void test_choosy(void)
{
    struct job *j, *before;
    int right = 0, impl = 0;

    for (int l = 0; l < 8; l++) {
        before = NULL;
        for (int i = 0; i < 6; i++, before = j) {
            j = add(DDP__SCHED_LANE, 0, l);
            j->only = i % 2 ? cpu[(l + i / 2) % 2] : ANY;
            j->impl = (unsigned)i / 3;
            j->tag.last = i == 5;
            if (before)
                after(j, before->done);
            submit(j, true);
        }
        j = add(DDP__SCHED_MERGE, 0, l);
        j->only = cpu[l % 2];
        after(j, before->done);
        submit(j, true);
        j = add(DDP__SCHED_INPUT, 0, 0);
        j->only = cpu[1 - l % 2];
        submit(j, l % 3);
    }
    starpu_task_wait_for_all();
    is_int(all_ran(), jobs, "tasks for one of the workers: all ran");
    for (int i = 0; i < jobs; i++) {
        right += job[i].only == ANY || job[i].only == job[i].worker;
        impl += job[i].ran_impl == (int)job[i].impl;
    }
    is_int(right, jobs, "each where it can");
    is_int(impl, jobs, "each by the implementation that can");
    clear();
}

/* ---- random graphs ------------------------------------------------------ */

static uint32_t seed = 20261120;

static int below(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)n);
}

/* j may wait for i only if no lane comes to wait for another of its step. */
static bool may_wait(const struct job *j, const struct job *i)
{
    if (j->tag.kind == DDP__SCHED_LANE)
        return i->tag.step < j->tag.step ||
               (i->tag.kind == DDP__SCHED_LANE && i->tag.lane == j->tag.lane);
    if (j->tag.kind == DDP__SCHED_INPUT)
        return i->tag.kind == DDP__SCHED_INPUT;
    return true;
}

static void submit_random(bool choosy)
{
    int steps = 1 + below(3), lanes = 1 + below(6), tasks = 10 + below(20);
    int begin = jobs;

    for (int s = 0; s < steps; s++)
        for (int n = 0; n < tasks; n++) {
            int kind = below(10);
            struct job *j = add(kind < 6   ? DDP__SCHED_LANE
                                : kind < 7 ? DDP__SCHED_MERGE
                                : kind < 8 ? DDP__SCHED_UPDATE
                                           : DDP__SCHED_INPUT,
                                s, below(lanes));

            j->us = below(4) ? 0 : below(100);
            j->priority = below(3) - 1;
            if (choosy && below(4) == 0)
                j->only = cpu[below(2)];
            for (int d = below(4); d > 0 && jobs - 1 > begin; d--) {
                const struct job *i = &job[begin + below(jobs - 1 - begin)];

                if (may_wait(j, i))
                    after(j, i->done);
            }
            submit(j, below(20) > 0 || j->tag.kind == DDP__SCHED_LANE);
        }
}

/* None of these lanes has a `last` task: nothing may hang all the same. */
static void test_random(const char *what, bool choosy)
{
    int lost = 0;

    for (int round = 0; round < 200; round++) {
        submit_random(choosy);
        if (below(2))
            starpu_task_wait_for_all();
        submit_random(choosy);
        starpu_task_wait_for_all();
        lost += jobs - all_ran();
        clear();
    }
    is_int(lost, 0, "200 random graphs, %s: every task ran", what);
}

/* Two lanes in flight, two workers: the first must not have both, though its
 * own has nothing to do. */
static void test_fair(void)
{
    int had[2], owner[8], most = 0, split = 0, unfair = 0;

    for (int round = 0; round < 50; round++) {
        struct gate begin = gate_new(), rest = gate_new();

        submit_waiting(0, 2, &begin, &rest);
        gate_open(&begin);
        wait_begun(2);
        gate_open(&rest);
        starpu_task_wait_for_all();
        gate_free(&begin);
        gate_free(&rest);
        split += split_lanes(1, 2, had, owner);
        unfair += had[0] != 1;
        clear();
        submit_steps(1, 8, 3, 100);
        starpu_task_wait_for_all();
        split += split_lanes(1, 8, had, owner);
        most = most_in_flight(false) > most ? most_in_flight(false) : most;
        clear();
    }
    is_int(split, 0, "DDP_INFLIGHT=2: no lane is split");
    is_int(unfair, 0, "two lanes go to two workers");
    ok(most <= 2, "no worker has more than two lanes begun");
}

/* Worker 0 has a lane that waits, and leaves the third to worker 1, which has
 * none; when worker 1 has taken the second, it is worker 0's turn. */
static void test_turn(void)
{
    struct gate rest = gate_new();
    struct job *busy = add(DDP__SCHED_INPUT, 0, 0), *j[3], *end;

    go = false;
    busy->only = cpu[1];
    busy->us = UNTIL_GO;
    submit(busy, true);
    wait_begun(1);
    for (int l = 0; l < 3; l++) {
        j[l] = add(DDP__SCHED_LANE, 0, 40 + l); /* in no other test */
        j[l]->only = l < 2 ? cpu[l] : ANY;
        j[l]->us = l == 1 ? 300000 : 0;
        submit(j[l], true);
        end = add(DDP__SCHED_LANE, 0, 40 + l);
        end->tag.last = true;
        after(end, j[l]->done);
        after(end, rest.handle);
        submit(end, true);
    }
    wait_begun(2);
    go = true;
    wait_begun(4);
    gate_open(&rest);
    starpu_task_wait_for_all();
    gate_free(&rest);
    is_int(j[2]->worker, cpu[0], "a worker is called when it is its turn");
    clear();
}

static void test_names(void)
{
    struct starpu_sched_policy **p = starpu_sched_get_predefined_policies();
    int bad = 0, refused = 0;

    unsetenv("STARPU_SCHED_LIB");
    for (; *p; p++) {
        const char *name = (*p)->policy_name;
        bool unusable = name && (!strcmp(name, "heteroprio") ||
                                 !strcmp(name, "graph_test") ||
                                 !strcmp(name, "modular-heteroprio-heft"));

        refused += unusable;
        bad += (ddp__sched_check(name) != 0) != unusable;
    }
    is_int(bad, 0, "STARPU_SCHED may name the schedulers of StarPU's");
    ok(refused > 0 && ddp__sched_check("heteroprio") == DDP_EINVAL &&
           strstr(ddp_errmsg(), "cannot run tasks of libddp"),
       "but those that would abort or wait for ever: %s", ddp_errmsg());
    is_int(ddp__sched_check("help"), DDP_EINVAL, "nor one that prints");
    is_int(ddp__sched_check("ddp"), 0, "and ddp");
    is_int(ddp__sched_check(NULL), 0, "and be unset");
    is_int(ddp__sched_check(""), 0, "or empty");
    is_int(ddp__sched_check("egaer"), DDP_EINVAL, "but not misspelt");
    ok(strstr(ddp_errmsg(), "'egaer' in STARPU_SCHED") &&
           strstr(ddp_errmsg(), "ddp, ") && strstr(ddp_errmsg(), "eager, "),
       "the message has the name and the choices");
    setenv("STARPU_SCHED_LIB", "/nonexistent.so", 1);
    is_int(ddp__sched_check("mine"), DDP_EINVAL, "nor from a missing library");
    unsetenv("STARPU_SCHED_LIB");
    ok(starpu_get_sched_lib_policy("ddp") == &ddp__sched_policy &&
           !starpu_get_sched_lib_policy("eager"),
       "the library offers ddp to StarPU");
    ok(starpu_get_sched_lib_policies()[0] == &ddp__sched_policy &&
           !starpu_get_sched_lib_policies()[1],
       "and lists it");
    for (const char **v =
             (const char *[]){"0", "-1", "two", "1x", "9999999999", NULL};
         *v; v++) {
        setenv("DDP_INFLIGHT", *v, 1);
        is_int(ddp__sched_check("ddp"), DDP_EINVAL, "DDP_INFLIGHT=%s", *v);
    }
    unsetenv("DDP_INFLIGHT");
}

/* As if main memory had room for the values of one sub-batch only. */
static void test_room(void)
{
    enum { STEPS = 3, LANES = 6, K = 4 };

    submit_steps(STEPS, LANES, K, 1000);
    starpu_task_wait_for_all();
    is_int(most_in_flight(true), 2, "two workers run two lanes at a time");
    clear();
    ddp__sched_limit_main(1);
    submit_steps(STEPS, LANES, K, 1000);
    starpu_task_wait_for_all();
    is_int(all_ran(), jobs, "little memory: every task ran");
    is_int(most_in_flight(true), 1, "a lane begins when no other is in flight");
    clear();
}

int main(void)
{
    alarm(200);                  /* a lost wake-up would last for ever */
    prctl(PR_SET_TIMERSLACK, 1); /* sleep no longer than asked, workers too */
    test_names();
    unsetenv("STARPU_SCHED");

    if (start("2")) {
        test_lanes();
        test_balance();
        test_unequal(2, 16, 3);
        test_unequal(2, 8, 1);
        test_unequal(8, 8, 1);
        test_graphs();
        test_leaving();
        test_stall();
        test_overtaken_submission();
        test_cap();
        test_sticky();
        test_neighbours();
        test_later_step_first();
        test_choosy();
        test_random("2 workers", false);
        test_random("2 workers, some tasks for one of them only", true);
        test_room();
    } else {
        skip(33, "no two CPU workers here");
    }
    starpu_shutdown();

    setenv("DDP_INFLIGHT", "2", 1);
    if (start("2")) {
        test_fair();
        test_turn();
        test_random("two lanes in flight", true);
    } else {
        skip(5, "no two CPU workers here");
    }
    starpu_shutdown();
    unsetenv("DDP_INFLIGHT");

    setenv("HWLOC_SYNTHETIC", "core:4 pu:1", 1); /* more than there are */
    for (int n = 2; n <= 4; n++) {
        if (start((const char *[]){"2", "3", "4"}[n - 2]))
            test_slow_submission(n);
        else
            skip(1, "no %d CPU workers here", n);
        starpu_shutdown();
    }
    unsetenv("HWLOC_SYNTHETIC");

    if (!start("1"))
        bail_out("no CPU worker");
    cpu[1] = ANY; /* none is slow */
    test_slow_submission(1);
    test_order();
    test_random("1 worker", false);
    starpu_shutdown();
    return done_testing();
}
