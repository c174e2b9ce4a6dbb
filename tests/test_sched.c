/* test_sched.c - the ddp scheduler: lanes remain whole, and few are in flight
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "sched_jobs.h"

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
    begin_jobs();
    if (start("2")) {
        test_lanes();
        test_balance();
        test_cap();
        test_room();
    } else {
        skip(10, "no two CPU workers here");
    }
    starpu_shutdown();

    setenv("DDP_INFLIGHT", "2", 1);
    if (start("2"))
        test_fair();
    else
        skip(3, "no two CPU workers here");
    starpu_shutdown();
    return done_testing();
}
