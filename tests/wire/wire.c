/* wire.c - messages between ranks that are processes of a test
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A module in place of that of MPI.  TEST_WIRE has the rank and a socket to
 * each rank, as ranks_fork.h writes it.  Receives end late now and then, so
 * that messages overtake those of other tags.  With TEST_WIRE_HOSTS each rank
 * is said to be on a host of its own.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ddp.h"
#include "wire.h"

enum { MOST = 16, TAGS = 1 << 16 };

struct header {
    int tag;
    size_t len;
};

struct request {
    struct request *next;
    struct header head;
    char *data; /* not owned */
    size_t done;
    int peer, late;
    bool sends, over;
};

struct message {
    struct message *next;
    int tag;
    size_t len, done;
    char data[];
};

static struct peer {
    int socket;
    bool gone;
    struct request *sends, *receives; /* not over, in order */
    struct message *messages;         /* that nobody has taken, in order */
    struct message *incoming;         /* NULL: the header is next */
    struct header head;
    size_t head_done;
} peer[MOST];

static char host[MOST][DDP__HOST_NAME];

ddp__wire_open_f ddp_wire_open;

static int random_delay(void)
{
    static uint32_t state = 1;

    state = state * 1664525u + 1013904223u;
    return (int)(state >> 29);
}

static void append_request(struct request **at, struct request *r)
{
    while (*at)
        at = &(*at)->next;
    *at = r;
}

static void append_message(struct message **at, struct message *m)
{
    while (*at)
        at = &(*at)->next;
    *at = m;
}

/* ---- sockets ------------------------------------------------------------ */

/* How many bytes went; 0: none now, or none ever again.  A process that ends
 * without reading all leaves ECONNRESET before what it had sent. */
static size_t moved(struct peer *p, ssize_t n)
{
    if (n > 0)
        return (size_t)n;
    p->gone |=
        n == 0 || (errno != EAGAIN && errno != EINTR && errno != ECONNRESET);
    return 0;
}

static size_t write_some(struct peer *p, const void *data, size_t len)
{
    return moved(p, send(p->socket, data, len, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static size_t read_some(struct peer *p, void *data, size_t len)
{
    return moved(p, recv(p->socket, data, len, MSG_DONTWAIT));
}

static void write_requests(struct peer *p)
{
    enum { HEAD = sizeof(struct header) };
    struct request *r;
    size_t n = 1;

    while ((r = p->sends) && n > 0) {
        n = r->done < HEAD
                ? write_some(p, (char *)&r->head + r->done, HEAD - r->done)
                : write_some(p, r->data + r->done - HEAD,
                             r->head.len + HEAD - r->done);
        r->done += n;
        r->over = r->done == r->head.len + HEAD;
        if (r->over)
            p->sends = r->next;
    }
}

/* Whether there may be more. */
static bool read_header(struct peer *p)
{
    size_t n = read_some(p, (char *)&p->head + p->head_done,
                         sizeof(p->head) - p->head_done);

    p->head_done += n;
    if (p->head_done < sizeof(p->head))
        return n > 0;
    p->head_done = 0;
    p->incoming = malloc(sizeof(*p->incoming) + p->head.len);
    *p->incoming = (struct message){.tag = p->head.tag, .len = p->head.len};
    return true;
}

static bool read_message(struct peer *p)
{
    struct message *m = p->incoming;
    size_t n = read_some(p, m->data + m->done, m->len - m->done);

    m->done += n;
    if (m->done < m->len)
        return n > 0;
    append_message(&p->messages, m);
    p->incoming = NULL;
    return true;
}

static void read_messages(struct peer *p)
{
    while (p->incoming ? read_message(p) : read_header(p))
        ;
}

/* ---- requests ----------------------------------------------------------- */

static struct message *take_message(struct peer *p, int tag)
{
    for (struct message **at = &p->messages; *at; at = &(*at)->next)
        if ((*at)->tag == tag) {
            struct message *m = *at;

            *at = m->next;
            return m;
        }
    return NULL;
}

/* The first receive of a tag gets the first message. */
static void match(struct peer *p)
{
    for (struct request **at = &p->receives, *r; (r = *at);) {
        struct message *m = take_message(p, r->head.tag);

        if (m) {
            if (m->len != r->head.len)
                abort();
            memcpy(r->data, m->data, m->len);
            free(m);
            r->over = true;
            *at = r->next;
        } else {
            at = &r->next;
        }
    }
}

static int begin(struct request ask, uintptr_t *request)
{
    struct request *r = malloc(sizeof(*r));
    struct peer *p = &peer[ask.peer];

    *r = ask;
    append_request(r->sends ? &p->sends : &p->receives, r);
    write_requests(p);
    *request = (uintptr_t)r;
    return 0;
}

/* TEST_WIRE_DIE=N: the process is killed instead of sending its N-th message,
 * beats not counted; -1: instead of closing. */
static void count_sends(const struct ddp__wire *w, int tag)
{
    static long sent;
    const char *last = getenv("TEST_WIRE_DIE");

    if (last && tag != w->tags - 1 && ++sent == atol(last))
        raise(SIGKILL);
}

static int wire_send(struct ddp__wire *w, int to, int tag, const void *data,
                     size_t len, uintptr_t *request)
{
    count_sends(w, tag);
    return begin((struct request){.head = {tag, len},
                                  .data = (char *)data,
                                  .peer = to,
                                  .sends = true},
                 request);
}

static int wire_recv(struct ddp__wire *w, int from, int tag, void *data,
                     size_t len, uintptr_t *request)
{
    (void)w;
    return begin((struct request){.head = {tag, len},
                                  .data = data,
                                  .peer = from,
                                  .late = random_delay()},
                 request);
}

static int wire_test(struct ddp__wire *w, uintptr_t *request)
{
    struct request *r = (struct request *)*request;

    for (int i = 0; i < w->count; i++)
        if (i != w->rank) {
            write_requests(&peer[i]);
            read_messages(&peer[i]);
            match(&peer[i]);
        }
    if (r->over && r->late-- <= 0) {
        free(r);
        *request = 0;
        return 1;
    }
    if (r->over || !peer[r->peer].gone)
        return 0;
    snprintf(w->why, sizeof(w->why), "the socket of rank %d is closed",
             r->peer);
    return DDP_EPEER;
}

static void wire_close(struct ddp__wire *w)
{
    const char *last = getenv("TEST_WIRE_DIE");

    (void)w;
    if (last && atol(last) == -1)
        raise(SIGKILL);
}

/* "RANK SOCKET SOCKET ...", its own being 0. */
int ddp_wire_open(struct ddp__wire *w)
{
    char *at = getenv("TEST_WIRE"), *end;

    if (!at)
        return DDP_ENODEV;
    w->rank = w->local_rank = w->share_rank = (int)strtol(at, &at, 10);
    for (w->count = 0; w->count < MOST; w->count++, at = end) {
        peer[w->count].socket = (int)strtol(at, &end, 10);
        if (end == at)
            break;
    }
    w->local_count = w->share_count = w->count;
    if (getenv("TEST_WIRE_HOSTS")) {
        w->local_rank = 0;
        w->local_count = 1;
    }
    w->tags = TAGS;
    w->send = wire_send;
    w->recv = wire_recv;
    w->test = wire_test;
    w->close = wire_close;
    for (int r = 0; r < w->count; r++)
        snprintf(host[r], sizeof(host[r]), "host%d", r);
    w->hosts = (const char(*)[DDP__HOST_NAME])host;
    snprintf(w->about, sizeof(w->about), "sockets");
    return 0;
}
