/* test_requests.c - requests of compiled chains, side by side
 *
 * Each must give what ddp_chain_evaluate() gives, or x itself.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <pthread.h>

#include "small_net.h"
#include "watch_layer.h"

static void test_requests(void)
{
    struct ddp_compiled_options o = {COMPILED_DEFAULTS, .requests = 3};
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_compiled_t *p = ddp_compiled_new(ddp, c, one, 1, &o);
    int64_t r[4] = {-1, -1, -1, -1};
    bool good = p != NULL;

    atomic_store(&w->hold, true);
    for (int i = 0; i < 3; i++)
        good = good && ddp_compiled_submit(p, &x[i], 1, &y[i], &r[i]) == 0;
    ok(good, "three requests are in flight");
    ok(p && ddp_compiled_submit(p, &x[3], 1, &y[3], &r[3]) == DDP_EBUSY,
       "a fourth is refused: %s", ddp_errmsg());
    atomic_store(&w->hold, false);
    ok(p && ddp_compiled_wait(p, r[1]) == 0 && y[1] == 2,
       "the second one is waited for");
    ok(p && ddp_compiled_wait(p, r[1]) == DDP_EINVAL,
       "but not a second time: %s", ddp_errmsg());
    ok(p && ddp_compiled_submit(p, &x[3], 1, &y[3], &r[3]) == 0,
       "there is room for another");
    ok(p && ddp_compiled_wait(p, r[3]) == 0 &&
           ddp_compiled_wait(p, r[2]) == 0 && ddp_compiled_wait(p, r[0]) == 0 &&
           y[0] == 1 && y[2] == 3 && y[3] == 4,
       "the others, in another order");
    ok(p && ddp_compiled_submit(p, x, 1, y, r) == 0 &&
           ddp_compiled_wait(p, r[0] + 1) == DDP_EINVAL &&
           ddp_compiled_wait(p, -1) == DDP_EINVAL,
       "requests that there are not");
    ddp_compiled_free(p); /* with one in flight */
    ddp_chain_free(c);
}

static void test_failure(void)
{
    float x[3] = {1, -1, 3}, y[3] = {0};
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_compiled_t *p = ddp_compiled_new(
        ddp, c, one, 1,
        &(struct ddp_compiled_options){COMPILED_DEFAULTS, .requests = 3});
    int64_t r[3] = {-1, -1, -1};

    for (int i = 0; p && i < 3; i++)
        ddp_compiled_submit(p, &x[i], 1, &y[i], &r[i]);
    ok(p && ddp_compiled_wait(p, r[0]) == 0 && y[0] == 1 &&
           ddp_compiled_wait(p, r[2]) == 0 && y[2] == 3,
       "requests around one that fails are done");
    ok(p && ddp_compiled_wait(p, r[1]) == DDP_EDEVICE && y[1] == 0,
       "which gets the reason, and no output: %s", ddp_errmsg());
    ok(p && ddp_compiled_run(p, x, 1, y + 1) == 0 && y[1] == 1,
       "the next request in its place is done");
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, one, 3, 1, y) == DDP_EDEVICE &&
           strstr(ddp_errmsg(), "copy"),
       "ddp_chain_forward() fails as well");
    x[1] = 1;
    ok(ddp_chain_forward(ddp, c, x, DDP_F32, one, 3, 1, y) == 0 && y[2] == 3,
       "and not the next time");
    ddp_compiled_free(p);
    ddp_chain_free(c);
}

/* ---- threads ------------------------------------------------------------- */

enum { THREADS = 4, TIMES = 150 };

struct user {
    pthread_t thread;
    ddp_compiled_t *p;
    const float *x, *want;
    int first;
    bool good;
};

/* One sample after another, each thread beginning with another one; every
 * third is submitted, with another meanwhile if there is room. */
static void *use(void *arg)
{
    struct user *u = arg;
    float y[CLASSES];
    int64_t r;
    int rc;

    u->good = true;
    for (int i = u->first; i < u->first + TIMES; i++) {
        int k = i % COUNT;

        memset(y, 0, sizeof(y));
        rc = i % 3 ? DDP_EBUSY
                   : ddp_compiled_submit(u->p, u->x + k * X_LEN, 1, y, &r);
        if (rc == DDP_EBUSY)
            rc = ddp_compiled_run(u->p, u->x + k * X_LEN, 1, y);
        else if (rc == 0)
            rc = ddp_compiled_wait(u->p, r);
        u->good = u->good && rc == 0 &&
                  memcmp(y, u->want + k * CLASSES, sizeof(y)) == 0;
    }
    return NULL;
}

static void test_threads(int requests)
{
    float *x = samples(), want[COUNT * CLASSES];
    ddp_chain_t *c = net();
    ddp_compiled_t *p =
        ddp_compiled_new(ddp, c, image, BATCH,
                         &(struct ddp_compiled_options){COMPILED_DEFAULTS,
                                                        .requests = requests});
    struct user u[THREADS];
    bool good = p && evaluate(c, DDP_F32, x, 1, want);

    for (int i = 0; good && i < THREADS; i++) {
        u[i] = (struct user){.p = p, .x = x, .want = want, .first = 3 * i};
        if (pthread_create(&u[i].thread, NULL, use, &u[i]) != 0)
            bail_out("no thread");
    }
    for (int i = 0; good && i < THREADS; i++)
        pthread_join(u[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        good = good && u[i].good;
    ok(good, "%d threads share %d requests: each gets its own outputs", THREADS,
       requests);
    ddp_compiled_free(p);
    ddp_chain_free(c);
    free(x);
}

int main(void)
{
    start("0");
    test_requests();
    test_failure();
    test_threads(2);
    ddp_finish(ddp);
    start("");
    diag("%s", ddp_describe(ddp));
    test_requests();
    test_failure();
    test_threads(1);
    test_threads(3);
    test_threads(8);
    ddp_finish(ddp);
    return done_testing();
}
