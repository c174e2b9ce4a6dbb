/* test_sched_owners.c - the ddp scheduler: which worker gets a lane
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "sched_jobs.h"

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

int main(void)
{
    begin_jobs();
    if (start("2")) {
        test_sticky();
        test_neighbours();
        test_choosy();
    } else {
        skip(6, "no two CPU workers here");
    }
    starpu_shutdown();

    setenv("DDP_INFLIGHT", "2", 1);
    if (start("2"))
        test_turn();
    else
        skip(1, "no two CPU workers here");
    starpu_shutdown();
    return done_testing();
}
