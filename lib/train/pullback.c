/* infer.c - a chain forward as one graph, and its pullback */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/step.h"
#include "train/trainer.h"

enum { SUB_BATCH = 32, LANES = 8 };

/* The caller's arrays, cut into sub-batches of `sub` samples. */
struct ddp_pullback {
    struct ddp__engine *engine;
    int n, sub, subs;
    int *sizes; /* owned */
    const void *x;
    size_t x_size, y_len; /* bytes, elements of one sample */
    float *y;
    const float *dy;
    float *dx;
};

/* ---- HOST functions of the graph ---------------------------------------- */

static int fill_x(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;
    int64_t first = (int64_t)t->seed * p->sub, *id = t->data[1];

    memcpy(t->data[0], (const char *)p->x + (size_t)first * p->x_size,
           (size_t)t->n * p->x_size);
    for (int i = 0; i < t->n; i++)
        id[i] = first + i;
    return 0;
}

static int fill_dy(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;

    memcpy(t->data[0], p->dy + t->seed * (uint64_t)p->sub * p->y_len,
           ddp__len(t, 0) * sizeof(float));
    return 0;
}

static int take_y(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;

    if (p->y)
        memcpy(p->y + t->seed * (uint64_t)p->sub * p->y_len, t->data[0],
               ddp__len(t, 0) * sizeof(float));
    return 0;
}

static int take_dx(const struct ddp__task *t, void *arg)
{
    const struct ddp_pullback *p = arg;

    if (p->dx)
        memcpy((char *)p->dx + t->seed * (uint64_t)p->sub * p->x_size,
               t->data[0], ddp__len(t, 0) * sizeof(float));
    return 0;
}

/* ---- both --------------------------------------------------------------- */

static int cut(struct ddp_pullback *p, int n, int sub)
{
    p->n = n;
    p->sub = sub ? sub : SUB_BATCH;
    p->sub = p->sub < n ? p->sub : n;
    p->subs = (n + p->sub - 1) / p->sub;
    if (!(p->sizes = calloc((size_t)p->subs, sizeof(*p->sizes))))
        return ddp__fail(DDP_ENOMEM, "no memory for %d sub-batches", p->subs);
    for (int i = 0; i < p->subs; i++)
        p->sizes[i] = n - i * p->sub < p->sub ? n - i * p->sub : p->sub;
    return 0;
}

static int start(struct ddp_pullback *p, ddp_t *ddp, ddp_chain_t *chain,
                 enum ddp__mode mode, enum ddp_dtype type,
                 struct ddp_shape shape, int n, int sub)
{
    struct ddp__engine_spec spec = {
        .graph = {.mode = mode,
                  .shape = shape,
                  .type = type,
                  .dtype = DDP_F32,
                  .input_gradient = mode == DDP__PULL,
                  .std = {1 / 255.f, 1 / 255.f, 1 / 255.f, 1 / 255.f},
                  .fill = fill_x,
                  .fill_dy = fill_dy,
                  .output = take_y,
                  .output_dx = take_dx,
                  .arg = p},
        .run_ahead = 1,
        .ring = mode == DDP__PULL ? 1 : 2,
    };
    int rc;

    if (!ddp || !chain)
        return DDP_EINVAL; /* their constructors said why */
    if (!p->x || (mode == DDP__INFER && !p->y))
        return ddp__fail(DDP_EINVAL, "wants room for the samples and, without "
                                     "a pullback, for the output");
    if (n < 1 || sub < 0 || shape.h < 1 || shape.w < 1 || shape.c < 1 ||
        (type == DDP_U8 && shape.c > 4) || (type != DDP_U8 && type != DDP_F32))
        return ddp__fail(DDP_EINVAL, "wants at least one sample, of a positive "
                                     "shape, F32 or U8 (of up to 4 channels)");
    if ((rc = cut(p, n, sub)) < 0)
        return rc;
    p->x_size = (size_t)shape.h * (size_t)shape.w * (size_t)shape.c *
                ddp__dtype_size(type);
    spec.graph.cap = p->sub;
    spec.lanes = mode == DDP__PULL || p->subs < LANES ? p->subs : LANES;
    if ((rc = ddp__engine_new(&p->engine, ddp, chain, &spec)) < 0)
        return rc;
    shape = p->engine->graph->y->shape;
    p->y_len = (size_t)shape.h * (size_t)shape.w * (size_t)shape.c;
    return 0;
}

static void stop(struct ddp_pullback *p)
{
    ddp__engine_free(p->engine);
    free(p->sizes);
}

int ddp_forward(ddp_t *ddp, ddp_chain_t *chain, const void *x,
                enum ddp_dtype type, struct ddp_shape shape, int n,
                int sub_batch, float *y)
{
    struct ddp_pullback p = {.x = x, .y = y};
    int rc = start(&p, ddp, chain, DDP__INFER, type, shape, n, sub_batch);

    if (rc == 0)
        rc = ddp__engine_half(p.engine, p.sizes, p.subs, false);
    stop(&p);
    return rc;
}

/* ---- pullback ----------------------------------------------------------- */

ddp_pullback_t *ddp_pullback_new(ddp_t *ddp, ddp_chain_t *chain, const float *x,
                                 struct ddp_shape shape, int n, int sub_batch,
                                 float *y)
{
    struct ddp_pullback *p = calloc(1, sizeof(*p));

    if (!p) {
        ddp__fail(DDP_ENOMEM, "no memory for a pullback");
        return NULL;
    }
    p->x = x;
    p->y = y;
    if (start(p, ddp, chain, DDP__PULL, DDP_F32, shape, n, sub_batch) < 0 ||
        ddp__engine_half(p->engine, p->sizes, p->subs, false) < 0) {
        ddp_pullback_free(p);
        return NULL;
    }
    p->x = NULL; /* the caller's, and read */
    p->y = NULL;
    return p;
}

int ddp_pullback(ddp_pullback_t *p, const float *dy, float *dx)
{
    int rc;

    if (!p || !dy)
        return ddp__fail(DDP_EINVAL, "a pullback needs a forward pass and the "
                                     "gradient of its output");
    p->dy = dy;
    p->dx = dx;
    rc = ddp__engine_half(p->engine, p->sizes, p->subs, true);
    p->dy = NULL;
    p->dx = NULL;
    return rc;
}

int ddp_pullback_gradient(ddp_pullback_t *p, const char *name, float *out,
                          size_t len)
{
    return ddp__engine_gradient(p->engine, name, out, len, 1);
}

void ddp_pullback_free(ddp_pullback_t *p)
{
    if (!p)
        return;
    stop(p);
    free(p);
}
