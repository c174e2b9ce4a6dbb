/* batch_norm.c - batch normalisation, with what follows it fused */
#include "config.h"

#include "graph.h"

struct batch_norm {
    ddp_layer_t layer;
    int channels;
    float eps, momentum;
    bool zero_init;
};

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    const struct batch_norm *b = (const struct batch_norm *)l;

    if (x.c != b->channels)
        return ddp__fail(DDP_ESHAPE,
                         "batch_norm: %d channels come in, wants %d", x.c,
                         b->channels);
    *y = x;
    return 0;
}

static int params(const ddp_layer_t *l, struct ddp_param p[DDP_MAX_PARAMS])
{
    const struct batch_norm *b = (const struct batch_norm *)l;
    int c = b->channels;

    p[0] = (struct ddp_param){
        "weight", DDP_NORM, 1, {c}, .fill = b->zero_init ? 0 : 1};
    p[1] = (struct ddp_param){"bias", DDP_NORM, 1, {c}, .fill = 0};
    p[2] = (struct ddp_param){
        "running_mean", DDP_RUNNING, 1, {c}, .momentum = b->momentum};
    p[3] = (struct ddp_param){
        "running_var", DDP_RUNNING, 1, {c}, .fill = 1, .momentum = b->momentum};
    return 4;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    struct batch_norm *b = (struct batch_norm *)l;
    ddp_value_t *w = ddp_graph_param(g, l), *y = ddp__value_like(g, x->shape);
    ddp_value_t *r = ddp__take_residual(g), *stat = NULL;
    struct ddp__call call = {
        .bn = {.eps = b->eps, .act = ddp__take_act(g), .residual = r != NULL}};

    if (ddp_graph_training(g)) {
        stat = ddp__value_vector(g, 2 * b->channels, DDP_F32);
        call.op = DDP__OP_BN_FWD;
        ddp__emit(g, &call, r ? 5 : 4, (ddp_value_t *[]){x, w, y, stat, r},
                  (enum ddp_access[]){DDP_READ, DDP_READ, DDP_WRITE, DDP_WRITE,
                                      DDP_READ});
    } else {
        call.op = DDP__OP_BN_EVAL;
        ddp__emit(g, &call, r ? 4 : 3, (ddp_value_t *[]){x, w, y, r},
                  (enum ddp_access[]){DDP_READ, DDP_READ, DDP_WRITE, DDP_READ});
    }
    return ddp_graph_record(g, &(struct ddp_record){.layer = l,
                                                    .x = x,
                                                    .y = y,
                                                    .saved = stat,
                                                    .residual = r,
                                                    .act = call.bn.act});
}

/* One operation gives the gradients of x, of the parameters and of the
 * residual, and hands on the statistics for the running ones. */
static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    struct batch_norm *b = (struct batch_norm *)l;
    struct ddp__call call = {.op = DDP__OP_BN_BWD,
                             .bn = {b->eps, r->act, r->residual != NULL}};
    ddp_value_t *w = ddp_graph_param(g, l),
                *dw = ddp_graph_param_gradient(g, l);
    ddp_value_t *dx = ddp__value_like(g, r->x->shape), *dr = NULL;

    if (r->residual)
        dr = r->residual->grad = ddp__value_like(g, r->x->shape);
    ddp__emit(g, &call, dr ? 8 : 7,
              (ddp_value_t *[]){r->x, r->y, dy, w, r->saved, dw, dx, dr},
              (enum ddp_access[]){DDP_READ, DDP_READ, DDP_READ, DDP_READ,
                                  DDP_READ, DDP_WRITE, DDP_WRITE, DDP_WRITE});
    return r->x->wants ? dx : NULL;
}

static const struct ddp_layer_ops ops = {
    .kind = "batch_norm",
    .shape = shape,
    .params = params,
    .forward = forward,
    .backward = backward,
    .fuses =
        DDP_FUSE_RESIDUAL | DDP_FUSE_ACT(DDP_RELU) | DDP_FUSE_ACT(DDP_RELU6),
};

ddp_layer_t *ddp_batch_norm_new(int channels,
                                const struct ddp_batch_norm_options *o)
{
    static const struct ddp_batch_norm_options none;
    struct batch_norm *b;

    o = o ? o : &none;
    if (channels < 1 || !(o->eps >= 0) ||
        !(o->momentum >= 0 && o->momentum <= 1)) {
        ddp__fail(DDP_EINVAL,
                  "batch_norm: %d channels, eps %g, momentum %g: "
                  "wants at least 1, at least 0, and 0 to 1",
                  channels, (double)o->eps, (double)o->momentum);
        return NULL;
    }
    if (!(b = (struct batch_norm *)ddp_layer_new(sizeof(*b), &ops)))
        return NULL;
    b->channels = channels;
    b->eps = o->eps > 0 ? o->eps : 1e-5f;
    b->momentum = o->momentum > 0 ? o->momentum : 0.1f;
    b->zero_init = o->zero_init;
    return &b->layer;
}
