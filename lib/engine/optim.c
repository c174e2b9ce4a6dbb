/* optim.c - constructors of optimizers; the rules are in codelets/
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ddp.h"

static struct ddp_optimizer defaults(enum ddp_optimizer_kind kind, float lr)
{
    struct ddp_optimizer o = ddp_optimizer_info(kind)->defaults;

    o.lr = lr;
    return o;
}

static struct ddp_optimizer with_momentum(enum ddp_optimizer_kind kind,
                                          float lr, float momentum)
{
    struct ddp_optimizer o = defaults(kind, lr);

    o.momentum = momentum;
    return o;
}

struct ddp_optimizer ddp_sgd(float lr)
{
    return defaults(DDP_SGD, lr);
}

struct ddp_optimizer ddp_momentum(float lr, float momentum)
{
    return with_momentum(DDP_MOMENTUM, lr, momentum);
}

struct ddp_optimizer ddp_nesterov(float lr, float momentum)
{
    return with_momentum(DDP_NESTEROV, lr, momentum);
}

struct ddp_optimizer ddp_adam(float lr)
{
    return defaults(DDP_ADAM, lr);
}

struct ddp_optimizer ddp_adamw(float lr, float weight_decay)
{
    struct ddp_optimizer o = defaults(DDP_ADAMW, lr);

    o.weight_decay = weight_decay;
    return o;
}

/* PyTorch calls beta2 alpha. */
struct ddp_optimizer ddp_rmsprop(float lr)
{
    return defaults(DDP_RMSPROP, lr);
}
