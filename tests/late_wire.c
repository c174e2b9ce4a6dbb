/* late_wire.c - a wire between threads that are ranks
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ddp.h"
#include "late_wire.h"
#include "tap.h"

/* The k-th message from a rank to another with a tag. */
struct message {
    struct message *next;
    int from, to, tag, number;
    int late; /* tests that do not see it yet */
    size_t len;
    char data[];
};

struct request {
    int from, tag, number;
    void *data; /* NULL: it is sent */
    size_t len;
    int late;
};

struct place place[RANKS];

static size_t staged_bytes(int rank, const struct request *r)
{
    const char *at = r->data;

    return at < place[rank].begin || at >= place[rank].end ? r->len : 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct message *messages;
static int sent[RANKS][RANKS][TAGS], asked[RANKS][RANKS][TAGS];
size_t bytes;
bool broken;

static int delay(void)
{
    static _Thread_local uint32_t state;

    state = state * 1664525u + 1013904223u + (uint32_t)(uintptr_t)&state;
    return (int)(state >> 29);
}

static int wire_send(struct ddp__wire *w, int to, int tag, const void *data,
                     size_t len, uintptr_t *request)
{
    struct message *m = malloc(sizeof(*m) + len);
    struct request *r = calloc(1, sizeof(*r));

    if (broken) {
        free(m);
        free(r);
        snprintf(w->why, sizeof(w->why), "the cable is cut");
        return DDP_EIO;
    }
    *m = (struct message){NULL, w->rank, to, tag, 0, delay(), len};
    memcpy(m->data, data, len);
    r->late = delay();
    *request = (uintptr_t)r;
    pthread_mutex_lock(&lock);
    m->number = sent[w->rank][to][tag]++;
    bytes += len;
    m->next = messages;
    messages = m;
    pthread_mutex_unlock(&lock);
    return 0;
}

static int wire_recv(struct ddp__wire *w, int from, int tag, void *data,
                     size_t len, uintptr_t *request)
{
    struct request *r = calloc(1, sizeof(*r));

    *r = (struct request){from, tag, 0, data, len, 0};
    pthread_mutex_lock(&lock);
    r->number = asked[from][w->rank][tag]++;
    pthread_mutex_unlock(&lock);
    place[w->rank].staged += staged_bytes(w->rank, r);
    if (place[w->rank].most < place[w->rank].staged)
        place[w->rank].most = place[w->rank].staged;
    *request = (uintptr_t)r;
    return 0;
}

static bool take(const struct ddp__wire *w, const struct request *r)
{
    for (struct message **m = &messages; *m; m = &(*m)->next) {
        struct message *is = *m;

        if (is->to != w->rank || is->from != r->from || is->tag != r->tag ||
            is->number != r->number)
            continue;
        if (is->late-- > 0)
            return false;
        if (is->len != r->len)
            bail_out("%zu bytes came, %zu were expected", is->len, r->len);
        memcpy(r->data, is->data, is->len);
        *m = is->next;
        free(is);
        return true;
    }
    return false;
}

static int wire_test(struct ddp__wire *w, uintptr_t *request)
{
    struct request *r = (struct request *)*request;
    bool done;

    if (r->data) {
        pthread_mutex_lock(&lock);
        done = take(w, r);
        pthread_mutex_unlock(&lock);
        place[w->rank].staged -= done ? staged_bytes(w->rank, r) : 0;
    } else {
        done = r->late-- <= 0;
    }
    if (!done)
        return 0;
    free(r);
    *request = 0;
    return 1;
}

static const char hosts[RANKS][DDP__HOST_NAME] = {"a", "b", "c", "d"};

struct ddp__wire wire_of(int rank, int count)
{
    return (struct ddp__wire){.rank = rank,
                              .count = count,
                              .tags = TAGS + 1,
                              .hosts = hosts,
                              .send = wire_send,
                              .recv = wire_recv,
                              .test = wire_test};
}

void renumber(void)
{
    memset(sent, 0, sizeof(sent));
    memset(asked, 0, sizeof(asked));
}
