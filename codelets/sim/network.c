/* network.c - the network between nodes of a simulation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdbool.h>

#include "network.h"

static int nodes = 1;
static struct ddp_network_speed speed;

/* The thread that carries loads, one after another, and what it has to. */
static struct {
    starpu_pthread_t thread;
    starpu_pthread_mutex_t lock;
    starpu_pthread_cond_t changed;
    bool running, closing;
    double seconds;
    void (*over)(void *arg); /* NULL: nothing to carry */
    void *arg;
} carrier;

void ddp__network_set(int count, const struct ddp_network_speed *s)
{
    nodes = count;
    speed = *s;
}

int ddp__network_nodes(void)
{
    return nodes;
}

/* The link and the host work at the same time; rounds follow each other. */
static double seconds_of(const struct ddp__load *l)
{
    double link = l->bytes / speed.bytes_per_s;
    double host = l->messages * speed.message_s;

    return (link > host ? link : host) + l->rounds * speed.latency_s;
}

static void *carry_loads(void *unused)
{
    (void)unused;
    STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
    for (;;) {
        void (*over)(void *arg) = carrier.over;
        void *arg = carrier.arg;

        if (!over && carrier.closing)
            break;
        if (!over) {
            STARPU_PTHREAD_COND_WAIT(&carrier.changed, &carrier.lock);
            continue;
        }
        carrier.over = NULL;
        STARPU_PTHREAD_MUTEX_UNLOCK(&carrier.lock);
        starpu_sleep((float)carrier.seconds);
        over(arg); /* it may have another load */
        STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
    }
    STARPU_PTHREAD_MUTEX_UNLOCK(&carrier.lock);
    return NULL;
}

static bool is_running(void)
{
    if (carrier.running)
        return true;
    STARPU_PTHREAD_MUTEX_INIT(&carrier.lock, NULL);
    STARPU_PTHREAD_COND_INIT(&carrier.changed, NULL);
    carrier.closing = false;
    carrier.running =
        starpu_pthread_create(&carrier.thread, NULL, carry_loads, NULL) == 0;
    return carrier.running;
}

/* Without a thread it takes no time. */
void ddp__network_carry(const struct ddp__load *l, void (*over)(void *arg),
                        void *arg)
{
    if (!is_running()) {
        over(arg);
        return;
    }
    STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
    carrier.seconds = seconds_of(l);
    carrier.over = over;
    carrier.arg = arg;
    STARPU_PTHREAD_COND_SIGNAL(&carrier.changed);
    STARPU_PTHREAD_MUTEX_UNLOCK(&carrier.lock);
}

void ddp__network_close(void)
{
    if (!carrier.running)
        return;
    STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
    carrier.closing = true;
    STARPU_PTHREAD_COND_SIGNAL(&carrier.changed);
    STARPU_PTHREAD_MUTEX_UNLOCK(&carrier.lock);
    starpu_pthread_join(carrier.thread, NULL);
    STARPU_PTHREAD_COND_DESTROY(&carrier.changed);
    STARPU_PTHREAD_MUTEX_DESTROY(&carrier.lock);
    carrier.running = false;
}
