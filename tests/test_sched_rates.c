/* test_sched_rates.c - the ddp scheduler: workers that are not equally fast
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "sched_jobs.h"

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

int main(void)
{
    begin_jobs();
    if (start("2")) {
        test_unequal(2, 16, 3);
        test_unequal(2, 8, 1);
        test_unequal(8, 8, 1);
        test_graphs();
        test_leaving();
        test_stall();
        test_overtaken_submission();
    } else {
        skip(13, "no two CPU workers here");
    }
    starpu_shutdown();

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
    test_slow_submission(1);
    starpu_shutdown();
    return done_testing();
}
