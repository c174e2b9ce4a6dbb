/* act.c - elementwise activations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/error.h"
#include "graph/node.h"
#include "layers/act.h"

struct act {
    ddp_layer_t layer;
    enum ddp_act act;
};

/* Names in files, so they must not change; an enumerator without a name does
 * not compile. */
#pragma GCC diagnostic error "-Wswitch"
/* A switch rather than a table: the compiler warns about an enumerator
 * without a name. */
static const char *function_name(enum ddp_act act)
{
    switch (act) {
    case DDP_IDENTITY:
        return "identity";
    case DDP_RELU:
        return "relu";
    case DDP_RELU6:
        return "relu6";
    case DDP_SILU:
        return "silu";
    case DDP_SIGMOID:
        return "sigmoid";
    case DDP_TANH:
        return "tanh";
    case DDP_GELU:
        return "gelu";
    case DDP_HARDSWISH:
        return "hardswish";
    case DDP_HARDSIGMOID:
        return "hardsigmoid";
    case DDP_ACT_COUNT:
        break;
    }
    return "unknown";
}

static int shape(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y)
{
    (void)l;
    *y = x;
    return 0;
}

static ddp_value_t *forward(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x)
{
    enum ddp_act act = ((struct act *)l)->act;
    ddp_value_t *y = ddp__value_like(g, x->shape);

    ddp__emit(g, &(struct ddp__call){.op = DDP__OP_ACT_FWD, .act = act},
              DDP__VALUES([DDP__ACT_FWD_X] = x, [DDP__ACT_FWD_Y] = y));
    return ddp_graph_record(
        g, &(struct ddp_record){.layer = l, .x = x, .y = y, .act = act});
}

static ddp_value_t *backward(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy)
{
    (void)l;
    if (!r->x->needs_gradient)
        return NULL;
    return ddp__act_backward(g, r->act, ddp__act_from_y(r->act) ? r->y : r->x,
                             dy);
}

static int options(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS])
{
    o[0] = (struct ddp_option){.name = "function",
                               .text =
                                   function_name(((const struct act *)l)->act)};
    return 1;
}

static const struct ddp_layer_ops ops = {
    .kind = "activation",
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .options = options,
};

enum ddp_act ddp__layer_act(const ddp_layer_t *l)
{
    return l->ops == &ops ? ((const struct act *)l)->act : DDP_IDENTITY;
}

ddp_layer_t *ddp_act_new(enum ddp_act act)
{
    struct act *a;

    if ((int)act < 0 || act >= DDP_ACT_COUNT) {
        ddp__fail(DDP_EINVAL, "unknown activation %d", (int)act);
        return NULL;
    }
    if (!(a = (struct act *)ddp_layer_new(sizeof(*a), &ops)))
        return NULL;
    a->act = act;
    return &a->layer;
}
