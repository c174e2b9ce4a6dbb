/* operations.c - what a training step on a GPU is made of, without one
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "graph/graph.h"
#include "graph/layer.h"
#include "runtime/cost.h"

enum { CHANNELS = 8 }; /* images have a multiple of it on GPUs */

/* Who gets each operation. */
struct listener {
    int (*fn)(const struct ddp_operation *, void *arg);
    void *arg;
};

static int tell(const struct listener *l, const struct ddp__call *c, int n)
{
    char shapes[128];
    struct ddp_operation o = {.name = ddp__signature[c->op].name,
                              .type = ddp__call_type(c),
                              .shapes = shapes,
                              .samples = n,
                              .flops = ddp__call_flops(c, n),
                              .bytes = ddp__call_bytes(c, n),
                              .read = ddp__call_bytes_read(c, n)};

    ddp__call_describe(c, shapes, sizeof(shapes));
    return l->fn(&o, l->arg) == 0
               ? 0
               : ddp__fail(DDP_ESTOPPED, "stopped by the caller");
}

static int tell_graph(const struct listener *l, const ddp_graph_t *g)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < g->nodes; i++)
        if (!ddp__op_is(g->node[i]->call.op, DDP__IS_HOST | DDP__IS_USER))
            rc = tell(l, &g->node[i]->call, g->spec.cap);
    return rc;
}

static struct ddp__view vector(size_t len)
{
    return (struct ddp__view){.type = DDP_F32, .shape = {1, 1, (int)len}};
}

/* The norm of a bucket's gradient, and its update. */
static int tell_update(const struct listener *l, size_t len,
                       const struct ddp_optimizer *o)
{
    size_t state = len * (size_t)ddp__optimizer_states(o);
    struct ddp__call norm = {.op = DDP__OP_SQNORM,
                             .buffers = DDP__SQNORM_BUFFERS,
                             .buf = {[DDP__SQNORM_G] = vector(len)}};
    struct ddp__call update = {
        .op = DDP__OP_OPTIM,
        .buffers = DDP__OPTIM_BUFFERS,
        .buf = {[DDP__OPTIM_G] = vector(len), [DDP__OPTIM_W] = vector(len)}};
    int rc = tell(l, &norm, 1);

    if (state)
        update.buf[DDP__OPTIM_STATE] = vector(state);
    return rc < 0 ? rc : tell(l, &update, 1);
}

static int check_arguments(const ddp_chain_t *c, enum ddp_dtype type,
                           int samples, const struct ddp_optimizer *o,
                           const void *fn)
{
    if (!c || !o || !fn)
        return ddp__fail_null(!c ? "chain" : !o ? "optimizer" : "fn");
    if (type != DDP_F32 && type != DDP_BF16 && type != DDP_F16)
        return ddp__fail(
            DDP_EINVAL,
            "activations of type %d, expected DDP_F32, DDP_BF16 or DDP_F16",
            (int)type);
    if (samples < 1)
        return ddp__fail(DDP_EINVAL, "%d samples, expected at least 1",
                         samples);
    return 0;
}

int ddp_chain_operations(ddp_chain_t *c, struct ddp_shape in,
                         enum ddp_dtype type, int samples,
                         const struct ddp_optimizer *o,
                         int (*fn)(const struct ddp_operation *, void *arg),
                         void *arg)
{
    struct ddp__graph_spec spec = {
        .mode = DDP__TRAIN,
        .shape = in,
        .type = in.h * in.w > 1 && in.c <= 4 ? DDP_U8 : DDP_F32,
        .dtype = type,
        .cap = samples,
        .loss = {.kind = DDP_LOGIT_CROSS_ENTROPY},
        .channels = CHANNELS,
        .on_gpus = true,
        .fill = ddp__graph_no_host};
    struct listener l = {fn, arg};
    struct ddp__params *p;
    struct ddp_shape y;
    ddp_graph_t *g;
    int rc = check_arguments(c, type, samples, o, fn ? "" : NULL);

    if (rc < 0)
        return rc;
    if (!(p = ddp__params_of(c)))
        return ddp_errcode();
    if ((rc = ddp__layer_shape(c, in, &y)) < 0)
        return rc;
    spec.classes = y.h * y.w * y.c;
    if ((rc = ddp__graph_new(&g, c, p, &spec, false)) < 0)
        return rc;
    rc = tell_graph(&l, g);
    ddp__graph_free(g);
    for (int b = p->buckets - 1; rc == 0 && b >= 0; b--)
        rc = tell_update(&l, p->bucket[b].len, o);
    return rc;
}
