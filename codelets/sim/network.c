/* network.c - the network between nodes of a simulation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "network.h"

static int nodes = 1;
static struct ddp_network_speed speed;

struct carried {
    struct carried *next;
    double over_s; /* when it is, in simulated time */
    void (*over)(void *arg);
    void *arg;
};

/* The thread that waits until loads are carried, one after another. */
static struct {
    starpu_pthread_t thread;
    starpu_pthread_mutex_t lock;
    starpu_pthread_cond_t changed;
    bool running, closing;
    struct carried *first, **end;
    double idle_s; /* when the link has carried all */
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

static double now_s(void)
{
    return 1e-6 * starpu_timing_now();
}

static double copy_s(double bytes)
{
    return bytes > 0 ? bytes / speed.copy_bytes_per_s + speed.copy_latency_s
                     : 0;
}

/* The link, the host and copies work at the same time; rounds follow each
 * other. */
static double link_s(const struct ddp__load *l)
{
    double link = l->bytes / speed.bytes_per_s;
    double host = l->messages * speed.message_s;
    double copies = copy_s(l->copied - fmax(l->before, l->after));

    return fmax(link, fmax(host, copies)) + l->rounds * speed.latency_s;
}

/* When it is over: it begins when its first part is in main memory and the link
 * has carried those before it, and ends when its last part is back. */
static double schedule(const struct ddp__load *l)
{
    double begin = fmax(now_s() + copy_s(l->before), carrier.idle_s);

    carrier.idle_s = begin + link_s(l);
    return carrier.idle_s + copy_s(l->after);
}

static void *carry_loads(void *unused)
{
    (void)unused;
    STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
    while (carrier.first || !carrier.closing) {
        struct carried *c = carrier.first;

        if (!c) {
            STARPU_PTHREAD_COND_WAIT(&carrier.changed, &carrier.lock);
            continue;
        }
        STARPU_PTHREAD_MUTEX_UNLOCK(&carrier.lock);
        starpu_sleep((float)fmax(c->over_s - now_s(), 0));
        c->over(c->arg); /* others may follow */
        STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
        if (!(carrier.first = c->next))
            carrier.end = &carrier.first;
        free(c);
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
    carrier.end = &carrier.first;
    carrier.idle_s = 0;
    carrier.running =
        starpu_pthread_create(&carrier.thread, NULL, carry_loads, NULL) == 0;
    return carrier.running;
}

/* Without a thread it takes no time. */
void ddp__network_carry(const struct ddp__load *l, void (*over)(void *arg),
                        void *arg)
{
    struct carried *c = calloc(1, sizeof(*c));

    if (!c || !is_running()) {
        free(c);
        over(arg);
        return;
    }
    STARPU_PTHREAD_MUTEX_LOCK(&carrier.lock);
    *c = (struct carried){NULL, schedule(l), over, arg};
    *carrier.end = c;
    carrier.end = &c->next;
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
