/* test_sched_order.c - the ddp scheduler: what runs first; all tasks run
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "sched_jobs.h"

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

int main(void)
{
    begin_jobs();
    if (start("2")) {
        test_later_step_first();
        test_random("2 workers", false);
        test_random("2 workers, some tasks for one of them only", true);
    } else {
        skip(4, "no two CPU workers here");
    }
    starpu_shutdown();

    setenv("DDP_INFLIGHT", "2", 1);
    if (start("2"))
        test_random("two lanes in flight", true);
    else
        skip(1, "no two CPU workers here");
    starpu_shutdown();
    unsetenv("DDP_INFLIGHT");

    if (!start("1"))
        bail_out("no CPU worker");
    test_order();
    test_random("1 worker", false);
    starpu_shutdown();
    return done_testing();
}
