/* test_pullback.c - pullbacks that are used again, and side by side
 *
 * The oracle is a pullback of a chain that has not been used before, or x
 * itself.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "small_net.h"
#include "watch_layer.h"

/* Outputs and gradients of a pullback at work, one after another. */
struct pulled {
    float y[3 * CLASSES], dx[3 * X_LEN], dw[SIDE * SIDE * 2 * CLASSES];
};

static bool pull(ddp_pullback_t *p, struct pulled *out)
{
    float dy[3 * CLASSES];

    for (uint32_t i = 0; i < 3 * CLASSES; i++)
        dy[i] = number(900 + i);
    return p && ddp_pullback_backward(p, dy, out->dx) == 0 &&
           ddp_pullback_get_gradient(p, "7.weight", out->dw,
                                     SIDE * SIDE * 2 * CLASSES) == 0;
}

/* By a pullback of its own, of a chain that has not been used before. */
static bool pull_once(const float *x, struct pulled *out)
{
    ddp_chain_t *c = net();
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, x, image, 3, 2, out->y);
    bool good = pull(p, out);

    ddp_pullback_free(p);
    ddp_chain_free(c);
    return good;
}

static void test_pullback(void)
{
    float *x = samples(), w = 0;
    static struct pulled want[2], got;
    ddp_chain_t *c = net();
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, x, image, 3, 2, got.y), *q;

    ok(pull_once(x, &want[0]) && pull_once(x + 3 * X_LEN, &want[1]) &&
           memcmp(&want[0], &want[1], sizeof(got)) != 0,
       "two pullbacks of different samples");
    ok(pull(p, &got) && memcmp(&got, &want[0], sizeof(got)) == 0,
       "a pullback is used for the first samples");
    ok(p && ddp_pullback_forward(p, x + 3 * X_LEN, got.y) == 0 &&
           ddp_pullback_get_gradient(p, "7.weight", &w, 1) < 0 &&
           pull(p, &got) && memcmp(&got, &want[1], sizeof(got)) == 0,
       "and again for the others, to the same bits");
    q = ddp_pullback_new(ddp, c, x, image, 3, 2, got.y);
    ok(pull(q, &got) && memcmp(&got, &want[0], sizeof(got)) == 0,
       "another one at the same time");
    ddp_pullback_free(p);
    ddp_pullback_free(q);
    p = ddp_pullback_new(ddp, c, x + 3 * X_LEN, image, 3, 2, got.y);
    ok(pull(p, &got) && memcmp(&got, &want[1], sizeof(got)) == 0,
       "one made of what a freed one has left");
    ok(ddp_pullback_forward(NULL, x, NULL) == DDP_EINVAL &&
           ddp_pullback_forward(p, NULL, NULL) == DDP_EINVAL,
       "no pullback, or no samples");
    ddp_pullback_free(p);
    ddp_chain_free(c);
    free(x);
}

/* Both passes of two pullbacks, held in flight. */
static void test_pullback_in_flight(void)
{
    const float x[2] = {1, 2}, dy[2] = {3, 4};
    float y[2] = {0}, dx[2] = {0};
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_pullback_t *p[2];
    bool good = true;

    for (int i = 0; i < 2; i++)
        p[i] = ddp_pullback_new(ddp, c, x, one, 1, 0, NULL);
    atomic_store(&w->hold, true);
    for (int i = 0; i < 2; i++)
        good = good && ddp_pullback_submit_forward(p[i], &x[i], &y[i]) == 0;
    ok(good && y[0] == 0 && y[1] == 0, "two pullbacks are in flight");
    ok(ddp_pullback_submit_forward(p[0], x, y) == DDP_EBUSY &&
           ddp_pullback_submit_backward(p[0], dy, dx) == DDP_EBUSY &&
           ddp_pullback_get_gradient(p[0], "0.w", dx, 1) == DDP_EBUSY,
       "one at a time each: %s", ddp_errmsg());
    atomic_store(&w->hold, false);
    ok(good && ddp_pullback_wait(p[1]) == 0 && y[1] == 2 &&
           ddp_pullback_wait(p[0]) == 0 && y[0] == 1,
       "they are waited for in any order");
    ok(ddp_pullback_wait(p[0]) == DDP_EINVAL, "once: %s", ddp_errmsg());
    atomic_store(&w->hold, true);
    for (int i = 0; i < 2; i++)
        good = good && ddp_pullback_submit_backward(p[i], &dy[i], &dx[i]) == 0;
    ok(good && dx[0] == 0 && dx[1] == 0, "backward as well");
    atomic_store(&w->hold, false);
    ok(good && ddp_pullback_wait(p[0]) == 0 && ddp_pullback_wait(p[1]) == 0 &&
           dx[0] == 3 && dx[1] == 4,
       "and waited for");
    for (int i = 0; i < 2; i++)
        ddp_pullback_free(p[i]);
    ddp_chain_free(c);
}

/* A pass that fails, waited for or not, leaves nothing for the next one. */
static void test_pullback_failure(void)
{
    const float x = 1, bad = -1;
    char before[256];
    float y = 0;
    struct watch *w;
    ddp_chain_t *c = watched(&w);
    ddp_pullback_t *p = ddp_pullback_new(ddp, c, &x, one, 1, 0, NULL);

    ok(ddp_pullback_submit_forward(p, &bad, &y) == 0 &&
           ddp_pullback_wait(p) == DDP_EDEVICE && y == 0,
       "a pass fails when it is waited for: %s", ddp_errmsg());
    ok(ddp_pullback_submit_backward(p, &x, &y) == DDP_EINVAL,
       "no backward pass without a forward pass: %s", ddp_errmsg());
    snprintf(before, sizeof(before), "%s", ddp_errmsg());
    ok(ddp_pullback_submit_forward(p, &bad, &y) == 0, "a second failure");
    ddp_pullback_free(p);
    ok(strcmp(ddp_errmsg(), before) == 0, "which nobody waits for");
    p = ddp_pullback_new(ddp, c, &x, one, 1, 0, &y);
    ok(p && y == 1 && w->graphs == 1, "and the next one has its memory");
    ok(ddp_pullback_submit_forward(NULL, &x, &y) == DDP_EINVAL &&
           ddp_pullback_submit_backward(NULL, &x, &y) == DDP_EINVAL &&
           ddp_pullback_get_gradient(NULL, "0.w", &y, 1) == DDP_EINVAL &&
           ddp_pullback_wait(NULL) == DDP_EINVAL,
       "no pullback");
    ddp_pullback_free(p);
    ddp_chain_free(c);
}

int main(void)
{
    start("0");
    test_pullback();
    test_pullback_in_flight();
    test_pullback_failure();
    ddp_finish(ddp);
    start("");
    diag("%s", ddp_describe(ddp));
    test_pullback();
    test_pullback_in_flight();
    test_pullback_failure();
    ddp_finish(ddp);
    return done_testing();
}
