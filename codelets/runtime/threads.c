/* threads.c - whether as many threads as StarPU needs can be started
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "runtime/threads.h"

/* What StarPU and hwloc allocate at their start, without a look at whether they
 * got it, is a part of this.  It is never touched, so only a limit of address
 * space can refuse it. */
enum { RESERVE = 32 << 20 };

/* All threads live until the check opens it. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return NULL;
}

/* How many of them could be started; *rc has the reason why not all, or why
 * nothing was left for others. */
static int start(pthread_t *thread, int count, int *rc)
{
    void *volatile reserve; /* compilers leave out what nobody reads */
    int n = 0;

    *rc = 0;
    pthread_mutex_lock(&gate);
    while (n < count && !*rc)
        if ((*rc = pthread_create(&thread[n], NULL, wait_at_gate, NULL)) == 0)
            n++;
    reserve = malloc(RESERVE);
    if (!reserve)
        *rc = ENOMEM;
    free(reserve);
    pthread_mutex_unlock(&gate);
    return n;
}

static int check(pthread_t *thread, int count)
{
    int rc, n = start(thread, count, &rc);

    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    if (rc == 0)
        return 0;
    return ddp__fail(DDP_ENOMEM,
                     "out of memory for threads: the workers need %d and %d "
                     "MiB, %d could be started (%s): raise the limit of "
                     "address space (ulimit -v) or of threads (ulimit -u), or "
                     "use fewer workers",
                     count, RESERVE >> 20, n, strerror(rc));
}

int ddp__threads_check(int count)
{
    pthread_t *thread = calloc((size_t)count, sizeof(*thread));
    int rc;

    if (!thread)
        return ddp__fail(DDP_ENOMEM, "out of memory for %d threads", count);
    rc = check(thread, count);
    free(thread);
    return rc;
}
