/* parts.c - where the time of a step goes, as a table
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "parts.h"

static const char *const names[DDP_STEP_PARTS] = {
    [DDP_PART_INPUT] = "input: reading, decoding",
    [DDP_PART_FORWARD] = "forward",
    [DDP_PART_BACKWARD] = "backward",
    [DDP_PART_MERGE] = "merge of the lanes' gradients",
    [DDP_PART_UPDATE] = "update",
};

void parts_add(struct parts *p, const struct ddp_progress *step, double seconds)
{
    p->steps++;
    p->wall_s += seconds;
    for (int i = 0; i < DDP_STEP_PARTS; i++)
        p->part_s[i] += step->part_seconds[i];
}

static void print_row(const char *name, double s, double step_s)
{
    printf("| %-31s | %10.3f | %6.1f |\n", name, 1e3 * s, 100 * s / step_s);
}

/* What is left after its tasks and the runtime's work between them is what a
 * worker waits, for data of others or for a task. */
void parts_print(const struct parts *p, const struct ddp_stats *all,
                 int workers)
{
    double steps = (double)p->steps, each = steps * workers;
    double step_s = p->wall_s / steps, left = step_s;
    double runtime =
        (all->sched_s - all->submit_s) / ((double)all->steps * (double)workers);

    printf("| a worker's time in a step       |         ms |      %% |\n"
           "| ------------------------------- | ---------: | -----: |\n");
    for (int i = 0; i < DDP_STEP_PARTS; i++) {
        print_row(names[i], p->part_s[i] / each, step_s);
        left -= p->part_s[i] / each;
    }
    runtime = fmin(runtime, fmax(0, left));
    print_row("runtime: scheduling, release", runtime, step_s);
    print_row("waiting, and other tasks", left - runtime, step_s);
    print_row("step", step_s, step_s);
    printf("\nMeans of %lld steps and %d workers.  Submission takes another "
           "thread %.3f ms a step.\n",
           (long long)p->steps, workers,
           1e3 * all->submit_s / (double)all->steps);
}
