/* ranks.c - what ranks tell each other outside of steps
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine/exchange.h"
#include "engine/ranks.h"
#include "runtime/context.h"
#include "runtime/lock.h"

struct talk {
    struct ddp__net_op op;     /* first */
    struct ddp__gather gather; /* if it is one */
    size_t len;
    struct ddp__lock lock;
    bool over;
    struct ddp__error error; /* if rc < 0 */
    int rc;
};

static int poll_talk(struct ddp__net_op *op, struct ddp__wire *w)
{
    (void)w;
    return ddp__gather_poll(&((struct talk *)op)->gather);
}

static void end_talk(struct ddp__net_op *op, int rc)
{
    struct talk *t = (struct talk *)op;

    ddp__lock_acquire(&t->lock);
    t->rc = rc;
    t->error = ddp__error_save();
    t->over = true;
    ddp__lock_notify(&t->lock);
    ddp__lock_release(&t->lock);
}

static int begin_talk(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct talk *t = (struct talk *)op;
    int rc = ddp__gather_begin(&t->gather);

    op->poll = poll_talk;
    return rc < 0 ? rc : poll_talk(op, w);
}

static size_t same_len(const void *arg, int rank)
{
    (void)rank;
    return ((const struct talk *)arg)->len;
}

static int run_talk(ddp_t *ddp, struct talk *t)
{
    ddp__lock_acquire(&t->lock);
    ddp__net_ready(&ddp->net, &t->op);
    while (!t->over)
        ddp__lock_wait(&t->lock);
    ddp__lock_release(&t->lock);
    if (t->rc < 0)
        ddp__error_restore(&t->error);
    return t->rc;
}

int ddp__ranks_gather(ddp_t *ddp, const void *mine, size_t len, void *all)
{
    struct ddp__net *net = &ddp->net;
    struct talk t = {.op = {.poll = begin_talk, .done = end_talk}, .len = len};
    int rc;

    memmove((char *)all + len * (size_t)net->wire.rank, mine, len);
    if (net->wire.count == 1)
        return 0;
    ddp__lock_init(&t.lock);
    ddp__net_add(net, &t.op, 1);
    if ((rc = ddp__gather_new(&t.gather, &net->wire, t.op.tag, same_len, &t)) <
        0)
        ddp__net_abandon(net, rc);
    else
        memcpy(ddp__gather_of(&t.gather, net->wire.rank), mine, len);
    rc = run_talk(ddp, &t);
    if (rc == 0)
        memcpy(all, t.gather.data, len * (size_t)net->wire.count);
    ddp__gather_end(&t.gather);
    ddp__lock_fini(&t.lock);
    return rc;
}

struct outcome {
    int code;
    char text[1024];
};

static int first_failure(const struct ddp__wire *w, const struct outcome *all)
{
    for (int r = 0; r < w->count; r++)
        if (all[r].code < 0)
            return r == w->rank ? ddp__fail(all[r].code, "%s", all[r].text)
                                : ddp__fail(all[r].code, "rank %d (%s): %s", r,
                                            w->hosts[r], all[r].text);
    return 0;
}

int ddp__ranks_agree(ddp_t *ddp, int rc)
{
    struct outcome mine = {.code = rc}, *all;
    int failed;

    if (ddp->net.wire.count == 1)
        return rc;
    if (rc < 0)
        snprintf(mine.text, sizeof(mine.text), "%s", ddp_errmsg());
    if (!(all = calloc((size_t)ddp->net.wire.count, sizeof(*all))))
        return ddp__fail(DDP_ENOMEM, "out of memory for ranks");
    if ((failed = ddp__ranks_gather(ddp, &mine, sizeof(mine), all)) == 0)
        failed = first_failure(&ddp->net.wire, all);
    free(all);
    return failed < 0 ? failed : rc;
}

/* ---- the network -------------------------------------------------------- */

/* The first round makes connections and is not counted. */
struct ring {
    struct talk t; /* first */
    char *data;    /* what is sent, then what is received; owned */
    int rounds, done;
    uintptr_t request[2];
    double begin, seconds;
};

/* 1: the messages under way have ended. */
static int test_ring(struct ring *r, struct ddp__wire *w)
{
    int rc = 1;

    for (int i = 0; i < 2 && rc > 0; i++)
        if (r->request[i])
            rc = w->test(w, &r->request[i]);
    return rc;
}

static int begin_round(struct ring *r, struct ddp__wire *w)
{
    size_t len = r->t.len;
    int rc = w->recv(w, (w->rank + w->count - 1) % w->count, r->t.op.tag,
                     r->data + len, len, &r->request[0]);

    return rc < 0 ? rc
                  : w->send(w, (w->rank + 1) % w->count, r->t.op.tag, r->data,
                            len, &r->request[1]);
}

static int poll_ring(struct ddp__net_op *op, struct ddp__wire *w)
{
    struct ring *r = (struct ring *)op;
    int rc;

    while ((rc = test_ring(r, w)) == 1 && r->done <= r->rounds) {
        if (r->done++ == 1)
            r->begin = ddp__clock();
        if ((rc = begin_round(r, w)) < 0)
            break;
    }
    if (rc < 0)
        return ddp__fail(rc, "messages between ranks: %s", w->why);
    if (rc == 1)
        r->seconds = (ddp__clock() - r->begin) / r->rounds;
    return rc;
}

static int measure(ddp_t *ddp, struct ring *r)
{
    int rc;

    ddp__lock_init(&r->t.lock);
    ddp__net_add(&ddp->net, &r->t.op, 1);
    rc = run_talk(ddp, &r->t);
    ddp__lock_fini(&r->t.lock);
    return rc;
}

int ddp_ranks_measure(ddp_t *ddp, size_t bytes, int rounds, double *seconds)
{
    struct ring r = {
        .t = {.op = {.poll = poll_ring, .done = end_talk}, .len = bytes},
        .rounds = rounds};
    int rc;

    if (!ddp || !seconds)
        return ddp__fail_null(!ddp ? "ddp" : "seconds");
    if (bytes < 1 || bytes > 1 << 30 || rounds < 1)
        return ddp__fail(DDP_EINVAL,
                         "%zu bytes, %d rounds: expected 1 to 2^30 bytes, and "
                         "at least 1 round",
                         bytes, rounds);
    *seconds = 0;
    if (ddp->net.wire.count == 1)
        return 0;
    /* Without memory the others learn by our end. */
    if (!(r.data = calloc(2, bytes))) {
        rc = ddp__fail(DDP_ENOMEM, "out of memory for %zu bytes", 2 * bytes);
        ddp__net_abandon(&ddp->net, rc);
        return rc;
    }
    rc = measure(ddp, &r);
    *seconds = r.seconds;
    if (!r.request[0] && !r.request[1]) /* else the module still uses it */
        free(r.data);
    return rc;
}
