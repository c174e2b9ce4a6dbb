/* lost.c - devices that fail under StarPU
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * StarPU is made to continue (lost_report.c), and ends what it has begun: a
 * copy counts as made, a task as done.  So from the failure on nothing is
 * copied and no buffer is read, and each step fails.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/error.h"
#include "device.h"
#include "runtime/copies.h"
#include "runtime/lost.h"

static const struct ddp__device *watched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int code;
static char why[512];
static bool measuring;   /* it was while StarPU measured copies */
static atomic_bool lost; /* what is above is complete */

void ddp__lost_watch(const struct ddp__device *d)
{
    atomic_store(&lost, false);
    watched = d && d->backends[0]->broken ? d : NULL;
}

bool ddp__lost_any(void)
{
    return atomic_load(&lost);
}

bool ddp__lost_measuring(void)
{
    return ddp__lost_any() && measuring;
}

int ddp__lost_check(void)
{
    return ddp__lost_any() ? ddp__fail(code, "%s", why) : 0;
}

/* The memory of a device that fails all calls, or -1; in words, the driver's.
 */
static int find_lost(char *words, size_t size)
{
    int nodes = (int)starpu_memory_nodes_get_count();

    for (int i = 0; i < nodes; i++)
        if (starpu_node_get_kind((unsigned)i) == watched->memory &&
            watched->backends[0]->broken(
                starpu_memory_node_get_devid((unsigned)i), words, size))
            return i;
    return -1;
}

static void explain(const char *function, int error)
{
    char words[256] = "no reason is known", copy[80], name[128] = "a device";
    const struct ddp__backend *b = watched->backends[0];
    int node;

    code = b->reason ? b->reason(error, words, sizeof(words)) : DDP_EDEVICE;
    if ((node = find_lost(words, sizeof(words))) >= 0) {
        code = DDP_EDEVICE;
        ddp__memory_name((unsigned)node, name, sizeof(name));
    } else if (ddp_last_copy(copy, sizeof(copy))) {
        snprintf(name, sizeof(name), "a device of the copy %s", copy);
    }
    if (code == DDP_ENOMEM)
        snprintf(why, sizeof(why),
                 "StarPU got no memory of %s: %s (in %s): wait for the program "
                 "that has it, or choose other devices",
                 name, words, function);
    else
        snprintf(why, sizeof(why), "%s was lost: %s (in %s)", name, words,
                 function);
}

bool ddp__lost_note(const char *function, int error, bool measures)
{
    if (!watched)
        return false;
    pthread_mutex_lock(&lock);
    if (!ddp__lost_any()) {
        explain(function, error);
        measuring = measures;
        atomic_store(&lost, true);
    }
    pthread_mutex_unlock(&lock);
    return true;
}
