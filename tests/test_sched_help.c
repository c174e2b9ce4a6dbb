/* test_sched_help.c - the ddp scheduler: idle workers help with sub-batches
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "sched_jobs.h"

/* The machine may hold a worker up in some of the rounds. */
enum { LONG = 5000, SHORT = 10, ROUNDS = 12, SOME = 3 }; /* us */

/* A task of the only lane of a step, after another one or (NULL) the first. */
static struct job *add_task(int step, struct job *before, int us)
{
    struct job *j = add(DDP__SCHED_LANE, step, 0);

    j->us = us;
    if (before)
        after(j, before->done);
    return j;
}

/* Whether two jobs that wait for a third run on different workers. */
static bool pair_is_shared(int step, int us)
{
    struct job *first = add_task(step, NULL, us), *one, *two;
    bool shared;

    submit(first, true);
    submit(one = add_task(step, first, us), true);
    two = add_task(step, first, us);
    two->tag.last = true;
    submit(two, true);
    starpu_task_wait_for_all();
    shared = one->worker != two->worker;
    clear();
    return shared;
}

static void test_pair(void)
{
    int of_long = 0, of_short = 0;

    for (int i = 0; i < ROUNDS; i++) {
        of_long += pair_is_shared(2 * i, LONG);
        of_short += pair_is_shared(2 * i + 1, SHORT);
    }
    ok(of_long >= ROUNDS - SOME,
       "two long tasks of a lane run on two workers: %d of %d", of_long,
       ROUNDS);
    ok(of_short <= SOME, "two short ones run where the lane is, but for %d",
       of_short);
}

/* Each task makes the next ready, so there is none to help with. */
static void test_chain(void)
{
    enum { TASKS = 6 };
    int moved = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct job *first, *j;

        submit(first = j = add_task(100 + i, NULL, LONG / 2), true);
        for (int k = 1; k < TASKS; k++) {
            j = add_task(100 + i, j, LONG / 2);
            j->tag.last = k == TASKS - 1;
            submit(j, true);
        }
        starpu_task_wait_for_all();
        for (; first <= j; first++)
            moved += first->worker != j->worker;
        clear();
    }
    is_int(moved, 0, "a lane of one task at a time stays where it is");
}

/* The owner makes a merge before the next task of its lane. */
static void test_merge(void)
{
    int moved = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct job *first = add_task(200 + i, NULL, LONG), *merge, *last;

        submit(first, true);
        merge = add(DDP__SCHED_MERGE, 200 + i, 0);
        merge->tag.at_lane = true;
        merge->us = LONG;
        after(merge, first->done);
        submit(merge, true);
        last = add_task(200 + i, first, LONG);
        last->tag.last = true;
        submit(last, true);
        starpu_task_wait_for_all();
        moved += last->worker != merge->worker;
        clear();
    }
    ok(moved >= ROUNDS - SOME,
       "another worker goes on while the owner merges: %d of %d", moved,
       ROUNDS);
}

int main(void)
{
    begin_jobs();
    if (start("2")) {
        test_pair();
        test_chain();
        test_merge();
    } else {
        skip(4, "no two CPU workers here");
    }
    starpu_shutdown();
    return done_testing();
}
