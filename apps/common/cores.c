/* cores.c - the cores that a program may use
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "ddp.h"

#include "common/cores.h"

int app_cores(void)
{
    int cores = ddp_core_count();

    return cores > 0 ? cores : 1;
}

/* Whether a CPU is the first hyper-thread of its core that may be used. */
static bool first_of_core(int cpu, const cpu_set_t *may)
{
    char path[96];
    int first = cpu;
    FILE *f;

    snprintf(path, sizeof(path),
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    if ((f = fopen(path, "re"))) {
        if (fscanf(f, "%d", &first) != 1)
            first = cpu;
        fclose(f);
    }
    return first == cpu || first < 0 || !CPU_ISSET(first, may);
}

void app_pin(int nth)
{
    cpu_set_t may, one;

    if (sched_getaffinity(0, sizeof(may), &may) < 0)
        return;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &may) && first_of_core(i, &may) && nth-- == 0)
            CPU_SET(i, &one);
    if (CPU_COUNT(&one))
        pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}
