/* net.c - the ranks of a training, and the thread that carries their messages
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The thread works on the first few operations that are not done, so that all
 * ranks make progress on the same ones.  It sleeps while it has nothing to
 * carry; else it looks all the time for a moment, and then every now and then.
 */
#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/module.h"
#include "runtime/launch.h"
#include "runtime/net.h"

enum { WINDOW = 8 };

/* Seconds. */
#define SPIN 50e-6   /* to look all the time after something has arrived */
#define NAP 20e-6    /* between two looks after that */
#define PATIENCE 1.0 /* with others after a failure, of theirs or ours */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(double seconds)
{
    struct timespec t = {0, (long)(1e9 * seconds)};

    nanosleep(&t, NULL);
}

/* ---- ranks that end ----------------------------------------------------- */

static int control_tag(const struct ddp__net *n)
{
    return n->wire.tags - 1;
}

/* Ask each rank to say when it ends. */
static int await_farewells(struct ddp__net *n)
{
    int rc = 0;

    for (int r = 0; r < n->wire.count && rc == 0; r++)
        if (r != n->wire.rank)
            rc = n->wire.recv(&n->wire, r, control_tag(n), &n->from[r],
                              sizeof(n->from[r]), &n->farewell[r]);
    return rc;
}

/* A rank that has ended without this operation, or that failed and has not sent
 * what it should have by now; -1: none. */
static int missing_rank(struct ddp__net *n, const struct ddp__net_op *op)
{
    bool late = now() > n->moved + PATIENCE;

    for (int r = 0; r < n->wire.count; r++) {
        const struct ddp__farewell *f = &n->from[r];

        if (n->farewell[r] && n->wire.test(&n->wire, &n->farewell[r]) < 0)
            return r;
        if (r != n->wire.rank && !n->farewell[r] &&
            (f->ops < op->number || (f->failed && late)))
            return r;
    }
    return -1;
}

static bool all_have_ended(struct ddp__net *n)
{
    for (int r = 0; r < n->wire.count; r++)
        if (n->farewell[r] && n->wire.test(&n->wire, &n->farewell[r]) == 0)
            return false;
    return true;
}

static bool all_is_well(const struct ddp__net *n)
{
    for (int r = 0; r < n->wire.count; r++)
        if (r != n->wire.rank &&
            (n->from[r].failed || n->from[r].ops != n->ops))
            return false;
    return !n->own.failed;
}

/* After a failure the others may be gone, and MPI could wait for them for
 * ever: it is left as it is, so that its launcher ends those that still run. */
static void say_farewell(struct ddp__net *n)
{
    double begin = now();
    uintptr_t request = 0;

    n->own = (struct ddp__farewell){.ops = n->ops, .failed = n->rc < 0};
    memcpy(n->own.host, n->wire.host, sizeof(n->own.host));
    for (int r = 0; r < n->wire.count; r++)
        if (r != n->wire.rank) {
            n->wire.send(&n->wire, r, control_tag(n), &n->own, sizeof(n->own),
                         &request);
            while (request && n->wire.test(&n->wire, &request) == 0 &&
                   (!n->own.failed || now() < begin + PATIENCE))
                nap(NAP);
        }
    while (!all_have_ended(n)) {
        if (n->own.failed && now() > begin + PATIENCE)
            return;
        nap(50 * NAP);
    }
    if (all_is_well(n))
        n->wire.close(&n->wire);
}

/* ---- operations --------------------------------------------------------- */

/* From now on all operations fail, for the first reason. */
static void break_net(struct ddp__net *n, int rc)
{
    pthread_mutex_lock(&n->lock);
    if (n->rc == 0) {
        snprintf(n->why, sizeof(n->why), "%s", ddp_errmsg());
        n->rc = rc;
        pthread_cond_broadcast(&n->changed);
    }
    pthread_mutex_unlock(&n->lock);
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
    if (rc < 0)
        break_net(n, rc);
    if (rc != 0)
        finish_op(n, op, rc < 0 ? rc : 0);
    return rc != 0;
}

/* Those that the thread works on; by the holder of the lock. */
static int list_ready(const struct ddp__net *n, struct ddp__net_op *op[WINDOW])
{
    int i = 0, ready = 0;

    for (struct ddp__net_op *o = n->first; o && i < WINDOW; o = o->next, i++)
        if (o->ready)
            op[ready++] = o;
    return ready;
}

static void rest(struct ddp__net *n, const struct ddp__net_op *waiting)
{
    int gone;

    if (now() < n->moved + SPIN)
        return;
    nap(NAP);
    if ((gone = missing_rank(n, waiting)) >= 0)
        break_net(n, ddp__fail(DDP_EPEER, "rank %d (%s) has ended", gone,
                               n->from[gone].host));
}

/* Until there is something to carry; 0: there will be nothing. */
static int sleep_until_ready(struct ddp__net *n, struct ddp__net_op *op[WINDOW])
{
    int count;

    pthread_mutex_lock(&n->lock);
    while ((count = list_ready(n, op)) == 0 && (n->first || !n->closing))
        pthread_cond_wait(&n->changed, &n->lock);
    pthread_mutex_unlock(&n->lock);
    return count;
}

static void carry(struct ddp__net *n)
{
    struct ddp__net_op *op[WINDOW];
    int count;

    while ((count = sleep_until_ready(n, op)) > 0) {
        bool moved = false;

        for (int i = 0; i < count; i++) {
            moved |= !op[i]->begun;
            moved |= advance_op(n, op[i]);
        }
        if (moved)
            n->moved = now();
        else
            rest(n, op[0]);
    }
}

/* ---- start and end ------------------------------------------------------ */

static int make_farewells(struct ddp__net *n)
{
    size_t count = (size_t)n->wire.count;

    n->from = calloc(count, sizeof(*n->from));
    n->farewell = calloc(count, sizeof(*n->farewell));
    if (!n->from || !n->farewell)
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    return await_farewells(n);
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
    rc = open(&n->wire);
    return rc < 0 ? ddp__fail(rc, "MPI: %s", n->wire.why) : make_farewells(n);
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
    if (rc == 0) {
        carry(n);
        say_farewell(n);
    }
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
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->changed);
    free(n->from);
    free(n->farewell);
    *n = (struct ddp__net){.wire = {.count = 1, .local_count = 1}};
}

int ddp__net_open(struct ddp__net *n)
{
    bool ranks;
    int rc = ddp__launch(&ranks);

    *n = (struct ddp__net){.wire = {.count = 1, .local_count = 1}};
    if (rc < 0 || !ranks)
        return rc;
    n->end = &n->first;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->changed, NULL);
    if ((rc = start_thread(n)) == 0) {
        pthread_mutex_lock(&n->lock);
        while (!n->started)
            pthread_cond_wait(&n->changed, &n->lock);
        pthread_mutex_unlock(&n->lock);
        if ((rc = n->rc) < 0) {
            pthread_join(n->thread, NULL);
            rc = ddp__fail(rc, "%s", n->why);
        }
    }
    if (rc < 0)
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

void ddp__net_add(struct ddp__net *n, struct ddp__net_op *op, int tags)
{
    unsigned count = (unsigned)n->wire.tags - 1;

    op->next = NULL;
    pthread_mutex_lock(&n->lock);
    op->number = ++n->ops;
    op->tag = (int)(n->tag % count);
    n->tag = (n->tag + (unsigned)tags) % count;
    *n->end = op;
    n->end = &op->next;
    pthread_mutex_unlock(&n->lock);
}

void ddp__net_ready(struct ddp__net *n, struct ddp__net_op *op)
{
    pthread_mutex_lock(&n->lock);
    op->ready = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
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
