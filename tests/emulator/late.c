/* late.c - StarPU that begins to send input late, as when the thread has no
 * core SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <starpu.h>

int starpu_idle_prefetch_task_input_for(struct starpu_task *task,
                                        unsigned worker)
{
    void *symbol = dlsym(RTLD_NEXT, "starpu_idle_prefetch_task_input_for");
    const char *text = getenv("EMULATED_LATE_US");
    int (*prefetch)(struct starpu_task *, unsigned);

    if (text)
        usleep((useconds_t)atoi(text));
    memcpy(&prefetch, &symbol, sizeof(prefetch));
    return prefetch(task, worker);
}
