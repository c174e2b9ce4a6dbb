/* pullback.c - a chain forward in training mode, and its derivative
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The graph of a pullback that is freed is cached in the chain for the next one
 * of the same shape.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/lane_buffers.h"
#include "engine/step.h"
#include "graph/params_bind.h"

enum { SUB_BATCH = 32 };

enum pass { NONE, FORWARD, BACKWARD };

/* The caller's arrays, cut into sub-batches of `sub` samples. */
struct ddp_pullback {
    struct ddp__kept kept; /* first */
    struct ddp__engine *engine;
    struct ddp_shape shape; /* of a sample */
    int n, sub, subs;
    int *sizes;          /* owned */
    size_t x_len, y_len; /* elements of one sample */
    enum pass running;   /* submitted, and not waited for */
    bool done;           /* a forward pass was */
    const float *x, *dy;
    float *y, *dx;
};

/* ---- HOST functions of the graph ---------------------------------------- */

/* Where sub-batch t->seed begins in an array of samples of len elements. */
static size_t first_element(const struct ddp_pullback *p,
                            const struct ddp__task *t, size_t len)
{
    return (size_t)t->seed * (size_t)p->sub * len;
}

static int fill_x(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;
    int64_t *id = t->data[DDP__FILL_IDS];

    memcpy(t->data[DDP__FILL_X], p->x + first_element(p, t, p->x_len),
           ddp__len(t, 0) * sizeof(float));
    for (int i = 0; i < t->n; i++)
        id[i] = (int64_t)first_element(p, t, 1) + i;
    return 0;
}

static int fill_dy(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;

    memcpy(t->data[DDP__SEED_DY], p->dy + first_element(p, t, p->y_len),
           ddp__len(t, 0) * sizeof(float));
    return 0;
}

static int take_y(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;

    if (p->y)
        memcpy(p->y + first_element(p, t, p->y_len), t->data[DDP__OUTPUT_Y],
               ddp__len(t, 0) * sizeof(float));
    return 0;
}

static int take_dx(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;

    if (p->dx)
        memcpy(p->dx + first_element(p, t, p->x_len), t->data[DDP__OUTPUT_Y],
               ddp__len(t, 0) * sizeof(float));
    return 0;
}

/* ---- making -------------------------------------------------------------- */

static int cut_sub_batches(struct ddp_pullback *p)
{
    p->subs = (p->n - 1) / p->sub + 1;
    if (!(p->sizes = calloc((size_t)p->subs, sizeof(*p->sizes))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %d sub-batches",
                         p->subs);
    for (int i = 0; i < p->subs; i++)
        p->sizes[i] = p->n - i * p->sub < p->sub ? p->n - i * p->sub : p->sub;
    return 0;
}

/* The engine's specification: a lane for each sub-batch, whose activations
 * keep their memory because backward may run several times. */
static int make_pullback(struct ddp_pullback *p, ddp_t *ddp, ddp_chain_t *chain)
{
    struct ddp__engine_spec spec = {
        .graph = {.mode = DDP__PULL,
                  .shape = p->shape,
                  .type = DDP_F32,
                  .dtype = DDP_F32,
                  .cap = p->sub,
                  .fewer = {p->n % p->sub},
                  .joined = true,
                  .input_gradient = true,
                  .fill = fill_x,
                  .fill_dy = fill_dy,
                  .output = take_y,
                  .output_dx = take_dx,
                  .arg = p},
        .run_ahead = 1,
        .ring = 1,
        .keep = true,
    };
    int rc;

    if ((rc = cut_sub_batches(p)) < 0)
        return rc;
    spec.lanes = p->subs;
    if ((rc = ddp__engine_new(&p->engine, ddp, chain, &spec)) < 0)
        return rc;
    p->x_len = ddp__shape_len(p->shape);
    p->y_len = ddp__shape_len(p->engine->graph->y->shape);
    return 0;
}

static void destroy_pullback(struct ddp_pullback *p)
{
    if (!p)
        return;
    ddp__engine_free(p->engine);
    free(p->sizes);
    free(p);
}

static void free_kept(struct ddp__kept *k)
{
    destroy_pullback((struct ddp_pullback *)k);
}

/* Arguments have been checked. */
static ddp_pullback_t *pullback_new(ddp_t *ddp, ddp_chain_t *chain,
                                    struct ddp_shape shape, int n, int sub)
{
    struct ddp_pullback *p = calloc(1, sizeof(*p));

    if (!p) {
        ddp__fail(DDP_ENOMEM, "out of memory for a pullback");
        return NULL;
    }
    p->kept.free = free_kept;
    p->shape = shape;
    p->n = n;
    p->sub = sub;
    if (make_pullback(p, ddp, chain) < 0) {
        destroy_pullback(p);
        return NULL;
    }
    return p;
}

/* A pullback that was freed, if it fits, else a new one. */
static ddp_pullback_t *take_kept(ddp_t *ddp, ddp_chain_t *chain,
                                 struct ddp_shape shape, int n, int sub)
{
    struct ddp__params *params = ddp__params_of(chain);
    struct ddp_pullback *p = NULL;

    if (params && params->ddp == ddp)
        p = (void *)ddp__params_take(params, free_kept);
    if (p && p->shape.h == shape.h && p->shape.w == shape.w &&
        p->shape.c == shape.c && p->n == n && p->sub == sub)
        return p;
    destroy_pullback(p);
    return pullback_new(ddp, chain, shape, n, sub);
}

static int check_arguments(const float *x, struct ddp_shape s, int n, int sub)
{
    if (!x)
        return ddp__fail(DDP_EINVAL, "a pullback needs samples");
    if (s.h < 1 || s.w < 1 || s.c < 1)
        return ddp__fail(DDP_EINVAL,
                         "samples of shape (%d, %d, %d), expected positive "
                         "numbers",
                         s.h, s.w, s.c);
    if (n < 1 || sub < 0)
        return ddp__fail(DDP_EINVAL,
                         "%d samples in sub-batches of %d, expected at least "
                         "one sample, and a positive sub-batch or 0",
                         n, sub);
    return 0;
}

/* ---- public -------------------------------------------------------------- */

ddp_pullback_t *ddp_pullback_new(ddp_t *ddp, ddp_chain_t *chain, const float *x,
                                 struct ddp_shape shape, int n, int sub_batch,
                                 float *y)
{
    struct ddp_pullback *p;

    if (!ddp || !chain) {
        ddp__fail_null(!ddp ? "ddp" : "chain");
        return NULL;
    }
    if (check_arguments(x, shape, n, sub_batch) < 0)
        return NULL;
    sub_batch = sub_batch ? sub_batch : SUB_BATCH;
    if (!(p = take_kept(ddp, chain, shape, n, sub_batch < n ? sub_batch : n)))
        return NULL;
    if (ddp_pullback_forward(p, x, y) < 0) {
        destroy_pullback(p);
        return NULL;
    }
    return p;
}

static int check_pullback(const struct ddp_pullback *p)
{
    return p ? ddp__engine_check(p->engine) : ddp__fail_null("pullback");
}

/* One pass at a time: the next one uses the same memory. */
static int check_idle(const struct ddp_pullback *p)
{
    int rc = check_pullback(p);

    if (rc < 0)
        return rc;
    if (p->running != NONE)
        return ddp__fail(DDP_EBUSY, "a pass of this pullback is in flight: "
                                    "call ddp_pullback_wait() first");
    return 0;
}

int ddp_pullback_submit_forward(ddp_pullback_t *p, const float *x, float *y)
{
    int rc = check_idle(p);

    if (rc < 0)
        return rc;
    if (!x)
        return ddp__fail(DDP_EINVAL, "a pullback needs samples");
    p->x = x;
    p->y = y;
    p->done = false;
    if ((rc = ddp__engine_half(p->engine, p->sizes, p->subs, false)) == 0)
        p->running = FORWARD;
    return rc;
}

int ddp_pullback_submit_backward(ddp_pullback_t *p, const float *dy, float *dx)
{
    int rc = check_idle(p);

    if (rc < 0)
        return rc;
    if (!dy || !p->done)
        return ddp__fail(DDP_EINVAL, "a pullback needs a forward pass and the "
                                     "gradient of its output");
    p->dy = dy;
    p->dx = dx;
    if ((rc = ddp__engine_half(p->engine, p->sizes, p->subs, true)) == 0)
        p->running = BACKWARD;
    return rc;
}

int ddp_pullback_wait(ddp_pullback_t *p)
{
    int rc = check_pullback(p);

    if (rc < 0)
        return rc;
    if (p->running == NONE)
        return ddp__fail(DDP_EINVAL, "no pass of this pullback is in flight");
    rc = ddp__engine_wait_all(p->engine);
    p->done = p->running == BACKWARD || rc == 0;
    p->running = NONE;
    return rc;
}

int ddp_pullback_forward(ddp_pullback_t *p, const float *x, float *y)
{
    int rc = ddp_pullback_submit_forward(p, x, y);

    return rc < 0 ? rc : ddp_pullback_wait(p);
}

int ddp_pullback_backward(ddp_pullback_t *p, const float *dy, float *dx)
{
    int rc = ddp_pullback_submit_backward(p, dy, dx);

    return rc < 0 ? rc : ddp_pullback_wait(p);
}

int ddp_pullback_get_gradient(ddp_pullback_t *p, const char *name, float *out,
                              size_t len)
{
    int rc = check_idle(p);

    return rc < 0 ? rc : ddp__engine_gradient(p->engine, name, out, len, 1);
}

void ddp_pullback_free(ddp_pullback_t *p)
{
    struct ddp__error before = ddp__error_save();

    if (!p || !p->engine->ddp) {
        destroy_pullback(p); /* of a context that has finished */
        return;
    }
    if (p->running != NONE)
        ddp_pullback_wait(p); /* nobody asks for its error */
    ddp__error_restore(&before);
    p->done = false;
    ddp__engine_rest(p->engine);
    ddp__params_keep(p->engine->params, &p->kept);
}
