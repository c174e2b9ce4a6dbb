/* peers.c - whether the other ranks live, and what they do
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A rank that is killed on this host is noticed by its process; one that hangs,
 * or whose host is lost, because it is silent or does not do its part for too
 * long.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "runtime/hello.h"
#include "runtime/net.h"
#include "runtime/peer_lost.h"
#include "runtime/peers.h"

/* Seconds. */
#define BEAT 0.5     /* between two beats */
#define LOOK 0.1     /* between two looks for what has arrived or died */
#define LAST 0.3     /* for the last beat of a process that has ended */
#define PAUSE 5.0    /* without a look: this process itself had been stopped */
#define PATIENCE 1.0 /* with others after a failure, of theirs or ours */
#define SILENCE 4.0  /* of who is gone when a message has failed */
#define NAP 1e-3

static int control_tag(const struct ddp__net *n)
{
    return n->wire.tags - 1;
}

/* ---- processes ---------------------------------------------------------- */

/* Not all kernels have it. */
static int open_process(int64_t number)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
#else
    (void)number;
    return -1;
#endif
}

static bool has_died(int process)
{
    struct pollfd p = {.fd = process, .events = POLLIN};

    return process >= 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
}

/* ---- beats -------------------------------------------------------------- */

static bool is_other(const struct ddp__net *n, int rank)
{
    return rank != n->wire.rank;
}

static void take_host(const struct ddp__net *n, int rank, struct ddp__beat *b)
{
    memcpy(b->status.host, n->wire.hosts[rank], sizeof(b->status.host));
}

static int await_beat(struct ddp__net *n, int rank)
{
    struct ddp__peer *p = &n->peers.peer[rank];

    return n->wire.recv(&n->wire, rank, control_tag(n), &p->incoming,
                        sizeof(p->incoming), &p->receive);
}

static void take_beat(struct ddp__net *n, int rank)
{
    struct ddp__peer *p = &n->peers.peer[rank];
    bool first = p->last.process == 0;
    double now = ddp__clock();

    if (p->incoming.tasks != p->last.tasks ||
        p->incoming.ready != p->last.ready)
        p->moved = now;
    pthread_mutex_lock(&n->peers.lock);
    p->last = p->incoming;
    p->heard = now;
    if (first && p->last.machine != 0 &&
        p->last.machine == ddp__hello_machine())
        p->process = open_process(p->last.process);
    pthread_mutex_unlock(&n->peers.lock);
}

/* Messages from or to it fail. */
static void lose(struct ddp__net *n, int rank)
{
    struct ddp__peer *p = &n->peers.peer[rank];
    struct ddp__beat *b = &p->last;

    p->receive = 0;
    p->lost = true;
    pthread_mutex_lock(&n->peers.lock);
    b->failed = true;
    snprintf(b->why, sizeof(b->why),
             "rank %d (%s) cannot be reached any more; it was last heard of "
             "%s, after step %lld",
             rank, b->status.host, ddp_phase_name(b->status.phase),
             (long long)b->status.step);
    pthread_mutex_unlock(&n->peers.lock);
}

static void listen_to(struct ddp__net *n, int rank)
{
    struct ddp__peer *p = &n->peers.peer[rank];
    int rc;

    while (p->receive && (rc = n->wire.test(&n->wire, &p->receive)) != 0) {
        if (rc < 0) {
            lose(n, rank);
            return;
        }
        take_beat(n, rank);
        if (p->last.ended || await_beat(n, rank) < 0)
            return;
    }
}

static struct ddp__beat make_beat(struct ddp__net *n)
{
    struct ddp__beat b = {.ended = n->ended,
                          .failed = n->rc < 0,
                          .machine = ddp__hello_machine(),
                          .process = getpid()};

    b.tasks = atomic_load(&n->status->tasks);
    ddp__status_get(n->status, &b.status);
    take_host(n, n->wire.rank, &b);
    ddp__net_counts(n, &b.ops, &b.ready);
    if (n->rc == DDP_EPEER)
        snprintf(b.why, sizeof(b.why), "%.*s", (int)sizeof(b.why) - 1, n->why);
    return b;
}

/* Who has not taken the beat before is not sent another one. */
static void send_beat(struct ddp__net *n, int rank, const struct ddp__beat *b)
{
    struct ddp__peer *p = &n->peers.peer[rank];
    int rc = p->send ? n->wire.test(&n->wire, &p->send) : 1;

    if (rc == 0)
        return;
    p->outgoing = *b;
    if (rc > 0)
        rc = n->wire.send(&n->wire, rank, control_tag(n), &p->outgoing,
                          sizeof(p->outgoing), &p->send);
    if (rc == 0)
        return;
    listen_to(n, rank); /* it may have ended */
    if (p->receive)
        lose(n, rank);
}

static void tell_all(struct ddp__net *n)
{
    struct ddp__beat b = make_beat(n);

    for (int r = 0; r < n->wire.count; r++)
        if (is_other(n, r))
            send_beat(n, r, &b);
    n->peers.told = ddp__clock();
}

/* ---- who is gone -------------------------------------------------------- */

/* Time during which this process was stopped itself says nothing of others. */
static void forgive_pause(struct ddp__net *n, double now)
{
    if (n->peers.looked == 0 || now < n->peers.looked + PAUSE)
        return;
    n->moved = now;
    for (int r = 0; r < n->wire.count; r++)
        n->peers.peer[r].heard = n->peers.peer[r].moved = now;
}

void ddp__peers_hurry(struct ddp__net *n, double seconds)
{
    double most = 1e3 * seconds;

    atomic_store(&n->peers.hurry, most < 1e9 ? (int)most + 1 : 0);
}

/* The silence after which a rank counts as lost; 0: none does. */
static double patience(const struct ddp__net *n)
{
    double soon = 1e-3 * atomic_load(&n->peers.hurry);
    double timeout = n->peers.timeout;

    return soon > 0 && (timeout == 0 || soon < timeout) ? soon : timeout;
}

/* The last beat of a process may arrive when it has ended. */
static int check_peer(struct ddp__net *n, int rank, double now)
{
    struct ddp__peer *p = &n->peers.peer[rank];
    double most = patience(n);

    listen_to(n, rank);
    if (!p->receive && !p->lost)
        return 0;
    if (p->died == 0 && has_died(p->process))
        p->died = now;
    if (p->died > 0 && now > p->died + LAST)
        return ddp__peer_dead(n, rank);
    if (p->receive && most > 0 && now > p->heard + most)
        return ddp__peer_silent(n, rank, now - p->heard);
    return 0;
}

int ddp__peers_tend(struct ddp__net *n)
{
    double now = ddp__clock();
    int rc = 0;

    if (now < n->peers.looked + LOOK)
        return 0;
    forgive_pause(n, now);
    if (!n->ended && now > n->peers.told + BEAT)
        tell_all(n);
    for (int r = 0; r < n->wire.count && rc == 0; r++)
        if (is_other(n, r))
            rc = check_peer(n, r, now);
    n->peers.looked = now;
    return rc;
}

int ddp__peers_inside(struct ddp__net *n, double seconds)
{
    double most = patience(n);
    int rc = 0;

    pthread_mutex_lock(&n->peers.lock);
    for (int r = 0; r < n->wire.count && rc == 0; r++) {
        const struct ddp__peer *p = &n->peers.peer[r];

        if (!p->last.ended && has_died(p->process))
            rc = ddp__peer_dead(n, r);
    }
    if (rc == 0 && most > 0 && seconds > most)
        rc = ddp__peer_inside(n, seconds);
    pthread_mutex_unlock(&n->peers.lock);
    return rc;
}

/* Whether a rank that speaks holds up an operation, and has done nothing for
 * too long. */
static bool is_stuck(const struct ddp__net *n, int rank, int64_t op, double now)
{
    const struct ddp__peer *p = &n->peers.peer[rank];

    return is_other(n, rank) && p->last.ready < op && n->peers.timeout > 0 &&
           now < p->heard + PATIENCE && now > n->moved + n->peers.timeout &&
           now > p->moved + n->peers.timeout;
}

/* Whether it has ended without an operation, or has failed and not sent what it
 * should have by now. */
static bool is_gone(const struct ddp__net *n, int rank, int64_t op, double now)
{
    const struct ddp__peer *p = &n->peers.peer[rank];

    return (p->last.ended && p->last.ops < op) ||
           (p->last.failed && now > n->moved + PATIENCE);
}

/* The last operation, up to op, before which nothing waits for this rank:
 * others hold up no more than that. */
static int64_t held_up(struct ddp__net *n, int64_t op)
{
    int64_t ops, ready;

    ddp__net_counts(n, &ops, &ready);
    return ready < op ? ready : op;
}

int ddp__peers_missing(struct ddp__net *n, int64_t op)
{
    int64_t held = held_up(n, op);
    double now = ddp__clock();
    int stuck = -1;

    for (int r = 0; r < n->wire.count; r++) {
        const struct ddp__beat *b = &n->peers.peer[r].last;

        listen_to(n, r);
        if (is_gone(n, r, op, now))
            return ddp__peer_gone(n, r);
        if (is_stuck(n, r, held, now) &&
            (stuck < 0 || b->ready < n->peers.peer[stuck].last.ready))
            stuck = r;
    }
    return stuck < 0 ? 0 : ddp__peer_stuck(n, stuck);
}

static void nap(struct ddp__net *n)
{
    ddp__watch_tick(n);
    usleep((useconds_t)(1e6 * NAP));
}

int ddp__peers_blame(struct ddp__net *n, int64_t op)
{
    struct ddp__error message = ddp__error_save();
    double end;
    int rc = 0;

    ddp__peers_hurry(n, SILENCE);
    end = ddp__clock() + patience(n) + PATIENCE;
    while (rc == 0 && ddp__clock() < end) {
        nap(n);
        if ((rc = ddp__peers_tend(n)) == 0)
            rc = ddp__peers_missing(n, op);
    }
    if (rc == 0)
        ddp__error_restore(&message);
    return DDP_EPEER;
}

/* ---- the end ------------------------------------------------------------ */

static bool is_taken(struct ddp__net *n, int rank)
{
    struct ddp__peer *p = &n->peers.peer[rank];

    return !p->send || n->wire.test(&n->wire, &p->send) != 0;
}

/* The others may be gone after a failure. */
static void say_farewell(struct ddp__net *n)
{
    double end = ddp__clock() + PATIENCE;
    struct ddp__beat b = make_beat(n);

    for (int r = 0; r < n->wire.count; r++) {
        if (!is_other(n, r))
            continue;
        while (!is_taken(n, r) && (!b.failed || ddp__clock() < end))
            nap(n);
        send_beat(n, r, &b);
        while (!is_taken(n, r) && (!b.failed || ddp__clock() < end))
            nap(n);
    }
}

static bool all_have_ended(struct ddp__net *n)
{
    for (int r = 0; r < n->wire.count; r++) {
        listen_to(n, r);
        if (n->peers.peer[r].receive)
            return false;
    }
    return true;
}

static bool all_is_well(const struct ddp__net *n)
{
    for (int r = 0; r < n->wire.count; r++) {
        const struct ddp__beat *b = &n->peers.peer[r].last;

        if (is_other(n, r) && (b->failed || b->ops != n->ops))
            return false;
    }
    return n->rc == 0;
}

static int find_lost(const struct ddp__net *n)
{
    for (int r = 0; r < n->wire.count; r++)
        if (n->peers.peer[r].lost)
            return ddp__peer_gone(n, r);
    return 0;
}

int ddp__peers_leave(struct ddp__net *n)
{
    double end;
    int rc;

    n->ended = true;
    say_farewell(n);
    end = ddp__clock() + PATIENCE;
    while (!all_have_ended(n)) {
        if ((rc = ddp__peers_tend(n)) < 0)
            return rc;
        if (n->rc < 0 && ddp__clock() > end)
            return 0;
        nap(n);
    }
    if ((rc = find_lost(n)) < 0)
        return rc;
    return all_is_well(n);
}

/* ---- start -------------------------------------------------------------- */

int ddp__peers_new(struct ddp__net *n)
{
    struct ddp__peers *p = &n->peers;
    int rc = 0;

    p->peer = calloc((size_t)n->wire.count, sizeof(*p->peer));
    if (!p->peer)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    for (int r = 0; r < n->wire.count; r++) {
        p->peer[r].process = -1;
        p->peer[r].heard = p->peer[r].moved = ddp__clock();
        take_host(n, r, &p->peer[r].last);
        if (is_other(n, r) && rc == 0)
            rc = await_beat(n, r);
    }
    if (rc < 0)
        return ddp__fail(rc, "MPI: %s", n->wire.why);
    tell_all(n);
    return 0;
}

/* After a failure the module still uses what it has not finished. */
void ddp__peers_free(struct ddp__net *n)
{
    bool used = false;

    for (int r = 0; n->peers.peer && r < n->wire.count; r++) {
        used |= n->peers.peer[r].receive || n->peers.peer[r].send ||
                n->peers.peer[r].lost;
        if (n->peers.peer[r].process >= 0)
            close(n->peers.peer[r].process);
    }
    if (!used) /* else messages under way may still come there */
        free(n->peers.peer);
}

void ddp__peers_status(struct ddp__net *n, int rank,
                       struct ddp_rank_status *out)
{
    struct ddp__peer *p = &n->peers.peer[rank];

    pthread_mutex_lock(&n->peers.lock);
    *out = p->last.status;
    out->silent_s = ddp__clock() - p->heard;
    if (p->last.ended || p->lost)
        out->phase = DDP_PHASE_ENDED;
    pthread_mutex_unlock(&n->peers.lock);
}
