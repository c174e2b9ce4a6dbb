/* network.c - the network between nodes of a simulation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "network.h"

static int nodes = 1;
static struct ddp_network_speed speed;

struct carried {
    float seconds;
    void (*over)(void *arg);
    void *arg;
};

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

static void *wait_for(void *arg)
{
    struct carried c = *(struct carried *)arg;

    free(arg);
    starpu_sleep(c.seconds);
    c.over(c.arg);
    return NULL;
}

/* Without memory or a thread it takes no time. */
void ddp__network_carry(const struct ddp__load *l, void (*over)(void *arg),
                        void *arg)
{
    struct carried *c = malloc(sizeof(*c));
    starpu_pthread_t thread;

    if (c)
        *c = (struct carried){(float)seconds_of(l), over, arg};
    if (c && starpu_pthread_create(&thread, NULL, wait_for, c) == 0)
        return;
    free(c);
    over(arg);
}
