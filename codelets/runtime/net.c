/* net.c - the ranks of a training, and the thread that carries their messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The thread works on the first few operations that are not done, so that all
 * ranks make progress on the same ones.  It sleeps while it has nothing to
 * carry; else it looks all the time for a moment, and then every now and then;
 * while nobody waits for what it carries, seldom, for each look interrupts a
 * worker.
 */
#include "config.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/module.h"
#include "runtime/hello.h"
#include "runtime/launch.h"
#include "runtime/net.h"

/* Operations that it looks at. */
enum { WINDOW = 8 };

/* Seconds. */
#define SPIN 50e-6    /* to look all the time after something has arrived */
#define NAP_MIN 20e-6 /* between two looks after that: a tenth of the time */
#define NAP_MAX 1e-3  /* without news */
#define NAP_PATIENT 50e-6 /* if nobody waits: a third of the time, at once */
#define SLEEP 0.1         /* while there is nothing to carry */

static void nap(double seconds)
{
    struct timespec t = {0, (long)(1e9 * seconds)};

    nanosleep(&t, NULL);
}

/* ---- operations --------------------------------------------------------- */

/* From now on all operations fail, for the first reason. */
static void break_net(struct ddp__net *n, int rc)
{
    bool first;

    pthread_mutex_lock(&n->lock);
    first = n->rc == 0;
    if (first) {
        snprintf(n->why, sizeof(n->why), "%s", ddp_errmsg());
        n->rc = rc;
        pthread_cond_broadcast(&n->changed);
    }
    pthread_mutex_unlock(&n->lock);
    if (first && rc == DDP_EPEER && n->on_peer_lost)
        n->on_peer_lost(n->why, n->arg);
}

static void finish_op(struct ddp__net *n, struct ddp__net_op *op, int rc)
{
    struct ddp__net_op **at;

    pthread_mutex_lock(&n->lock);
    for (at = &n->first; *at != op; at = &(*at)->next)
        ;
    *at = op->next;
    if (n->end == &op->next)
        n->end = at;
    pthread_mutex_unlock(&n->lock);
    op->done(op, rc);
}

/* Whether it did something. */
static bool advance_op(struct ddp__net *n, struct ddp__net_op *op)
{
    int rc;

    if (n->rc < 0) {
        finish_op(n, op, ddp__fail(n->rc, "%s", n->why));
        return true;
    }
    op->begun = true;
    rc = op->poll(op, &n->wire);
    if (rc == DDP_EPEER)
        rc = ddp__peers_blame(n, op->number);
    if (rc < 0)
        break_net(n, rc);
    if (rc != 0)
        finish_op(n, op, rc < 0 ? rc : 0);
    return rc != 0;
}

bool ddp__net_holds(const struct ddp__net_op *op, bool *waits)
{
    bool holds = op->pressing && !op->begun && !*waits;

    *waits |= !op->ready;
    return holds;
}

/* Those that the thread works on; by the holder of the lock.  The first one may
 * begin at any time: others may be waiting for it.  One of the last may be
 * ready long before those that it follows. */
static int list_ready(const struct ddp__net *n, struct ddp__net_op *op[WINDOW])
{
    bool held = false, waits = false;
    int ready = 0, begun = 0;

    for (const struct ddp__net_op *o = n->first; o; o = o->next)
        begun += o->begun;
    for (struct ddp__net_op *o = n->first; o && ready < WINDOW; o = o->next) {
        if (o->begun) {
            op[ready++] = o;
        } else if (o->ready && !held &&
                   (o == n->first || begun < DDP__NET_UNDER_WAY)) {
            op[ready++] = o;
            begun++;
        }
        held |= ddp__net_holds(o, &waits);
    }
    return ready;
}

static bool are_patient(struct ddp__net_op *const *op, int count)
{
    for (int i = 0; i < count; i++)
        if (!op[i]->patient)
            return false;
    return true;
}

static void rest(struct ddp__net *n, struct ddp__net_op *const *op, int count)
{
    double quiet = ddp__clock() - n->moved;
    bool patient = are_patient(op, count);
    int rc;

    if (!patient && quiet < SPIN)
        return;
    nap(fmin(patient ? fmax(quiet / 3, NAP_PATIENT) : fmax(quiet / 10, NAP_MIN),
             NAP_MAX));
    if ((rc = ddp__peers_missing(n, op[0]->number)) < 0)
        break_net(n, rc);
}

/* For a moment, or until there is something to carry.  -1: there will be
 * nothing. */
static int await_ready(struct ddp__net *n, struct ddp__net_op *op[WINDOW])
{
    struct timespec until = ddp__clock_after(SLEEP);
    int count, rc = 0;

    pthread_mutex_lock(&n->lock);
    while ((count = list_ready(n, op)) == 0 && (n->first || !n->closing) &&
           rc == 0)
        rc = pthread_cond_timedwait(&n->changed, &n->lock, &until);
    if (count == 0 && !n->first && n->closing)
        count = -1;
    pthread_mutex_unlock(&n->lock);
    return count;
}

static void advance(struct ddp__net *n, struct ddp__net_op **op, int count)
{
    unsigned over = n->wire.over;
    bool moved = false;

    for (int i = 0; i < count; i++) {
        moved |= !op[i]->begun;
        moved |= advance_op(n, op[i]);
    }
    if (moved || n->wire.over != over)
        n->moved = ddp__clock();
    else if (count > 0)
        rest(n, op, count);
}

static void carry(struct ddp__net *n)
{
    struct ddp__net_op *op[WINDOW];
    int count, rc;

    while ((count = await_ready(n, op)) >= 0) {
        ddp__watch_tick(n);
        advance(n, op, count);
        if ((rc = ddp__peers_tend(n)) < 0)
            break_net(n, rc);
    }
}

/* ---- start and end ------------------------------------------------------ */

/* Of the seconds in which all ranks have to start; 0: as long as it takes. */
static double left(const struct ddp__net *n)
{
    double end = n->moved + n->peers.timeout, now = ddp__clock();

    return n->peers.timeout > 0 ? end > now ? end - now : 1e-3 : 0;
}

static int tell_cores(struct ddp__net *n)
{
    int rc;

    n->cores = calloc((size_t)n->wire.count, sizeof(*n->cores));
    if (!n->cores)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    n->cores[n->wire.rank] = n->own_cores;
    rc = ddp__hello_gather(&n->wire, n->cores, sizeof(*n->cores), left(n));
    if (rc < 0)
        n->cores = NULL; /* messages may still come there */
    return rc;
}

int ddp__net_share_cores(const struct ddp__net *n, struct ddp__topology *t)
{
    return n->cores
               ? ddp__topology_share(t, n->cores, n->wire.count, n->wire.rank)
               : 0;
}

static int open_wire(struct ddp__net *n)
{
    void *module = ddp__module_open("ddp_mpi.so"), *symbol;
    ddp__wire_open_f *open;
    int rc;

    if (!module)
        return ddp__fail(DDP_ENODEV,
                         "this process is one of several ranks, but MPI cannot "
                         "be used: %s; install an MPI and build libddp again, "
                         "or set DDP_MPI=0 if each rank is to train alone",
                         dlerror());
    if (!(symbol = dlsym(module, "ddp_wire_open")))
        return ddp__fail(DDP_ENODEV, "ddp_mpi.so is no module of libddp");
    memcpy(&open, &symbol, sizeof(open));
    if ((rc = open(&n->wire)) < 0)
        return ddp__fail(rc, "MPI: %s", n->wire.why);
    if ((rc = ddp__hello_exchange(&n->wire, ddp_version(), left(n))) < 0 ||
        (rc = tell_cores(n)) < 0)
        return rc;
    if ((rc = ddp__peers_new(n)) < 0)
        return rc;
    return ddp__watch_begin(n);
}

static void *run(void *arg)
{
    struct ddp__net *n = arg;
    int rc = open_wire(n);

    if (rc < 0)
        break_net(n, rc);
    pthread_mutex_lock(&n->lock);
    n->started = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    if (rc < 0)
        return NULL;
    carry(n);
    rc = ddp__peers_leave(n);
    ddp__watch_end(n);
    if (rc == 1)
        n->wire.close(&n->wire);
    else if (rc < 0)
        break_net(n, rc);
    return NULL;
}

/* The program's own threads handle signals. */
static int start_thread(struct ddp__net *n)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&n->thread, NULL, run, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : ddp__fail(DDP_ENOMEM, "no thread for messages");
}

static void free_net(struct ddp__net *n)
{
    ddp__peers_free(n);
    free(n->cores);
    pthread_mutex_destroy(&n->peers.lock);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->changed);
    *n = (struct ddp__net){.wire = {.count = 1, .local_count = 1}};
}

static void init_net(struct ddp__net *n)
{
    n->end = &n->first;
    n->moved = ddp__clock();
    ddp__clock_condition(&n->changed);
    pthread_mutex_init(&n->lock, NULL);
    pthread_mutex_init(&n->peers.lock, NULL);
}

/* MPI waits without end for a rank that has died before it joined.  Once it has
 * started, the thread knows which rank is missing, and says so first. */
static int await_start(struct ddp__net *n)
{
    struct timespec until = ddp__clock_after(n->peers.timeout + 1);
    int rc = 0;

    pthread_mutex_lock(&n->lock);
    while (!n->started && rc == 0)
        rc = n->peers.timeout > 0
                 ? pthread_cond_timedwait(&n->changed, &n->lock, &until)
                 : pthread_cond_wait(&n->changed, &n->lock);
    n->stuck = !n->started;
    pthread_mutex_unlock(&n->lock);
    if (n->stuck)
        return ddp__fail(DDP_EPEER,
                         "MPI has not started for %.0f s: another rank has "
                         "died, or has not been started",
                         n->peers.timeout);
    if (n->rc == 0)
        return 0;
    pthread_join(n->thread, NULL);
    return ddp__fail(n->rc, "%s", n->why);
}

int ddp__net_open(struct ddp__net *n, struct ddp__status *status,
                  const struct ddp_config *cfg, int share_key,
                  const struct ddp__topology *t)
{
    bool ranks;
    int rc = ddp__launch(&ranks);

    *n = (struct ddp__net){.wire = {.count = 1,
                                    .local_count = 1,
                                    .share_key = share_key,
                                    .share_count = 1},
                           .status = status,
                           .peers = {.timeout = cfg->peer_timeout},
                           .on_peer_lost = cfg->on_peer_lost,
                           .arg = cfg->arg};
    if (rc < 0 || !ranks)
        return rc;
    n->own_cores.machine = ddp__hello_machine();
    ddp__topology_cores(t, &n->own_cores);
    init_net(n);
    if ((rc = start_thread(n)) == 0)
        rc = await_start(n);
    if (rc < 0 && !n->stuck)
        free_net(n);
    return rc;
}

void ddp__net_close(struct ddp__net *n)
{
    if (n->wire.count == 1)
        return;
    pthread_mutex_lock(&n->lock);
    n->closing = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    pthread_join(n->thread, NULL);
    free_net(n);
}

int64_t ddp__net_add(struct ddp__net *n, struct ddp__net_op *op, int tags)
{
    unsigned count = (unsigned)n->wire.tags - 1;
    int64_t number;

    op->next = NULL;
    pthread_mutex_lock(&n->lock);
    op->number = number = ++n->ops;
    op->tag = (int)(n->tag % count);
    n->tag = (n->tag + (unsigned)tags) % count;
    *n->end = op;
    n->end = &op->next;
    pthread_mutex_unlock(&n->lock);
    return number;
}

void ddp__net_ready(struct ddp__net *n, struct ddp__net_op *op)
{
    pthread_mutex_lock(&n->lock);
    op->ready = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

void ddp__net_counts(struct ddp__net *n, int64_t *ops, int64_t *ready)
{
    const struct ddp__net_op *o;

    pthread_mutex_lock(&n->lock);
    for (o = n->first; o && o->ready; o = o->next)
        ;
    *ops = n->ops;
    *ready = o ? o->number - 1 : n->ops;
    pthread_mutex_unlock(&n->lock);
}

int ddp__net_status(struct ddp__net *n, int rank, struct ddp_rank_status *s)
{
    if (rank < 0 || rank >= n->wire.count)
        return ddp__fail(DDP_EINVAL, "rank %d, expected 0 to %d", rank,
                         n->wire.count - 1);
    if (rank != n->wire.rank) {
        ddp__peers_status(n, rank, s);
        return 0;
    }
    ddp__status_get(n->status, s);
    gethostname(s->host, sizeof(s->host) - 1);
    return 0;
}

bool ddp__net_is_oldest(struct ddp__net *n, const struct ddp__net_op *op)
{
    bool oldest;

    pthread_mutex_lock(&n->lock);
    oldest = n->first == op;
    pthread_mutex_unlock(&n->lock);
    return oldest;
}

void ddp__net_abandon(struct ddp__net *n, int rc)
{
    break_net(n, rc);
}
