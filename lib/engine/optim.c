/* optim.c - update rules with PyTorch's defaults; the rules are in codelets/
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "engine/optim.h"

struct ddp_optimizer ddp_sgd(float lr)
{
    return (struct ddp_optimizer){.kind = DDP_SGD, .lr = lr};
}

struct ddp_optimizer ddp_momentum(float lr, float momentum)
{
    return (struct ddp_optimizer){
        .kind = DDP_MOMENTUM, .lr = lr, .momentum = momentum};
}

struct ddp_optimizer ddp_nesterov(float lr, float momentum)
{
    return (struct ddp_optimizer){
        .kind = DDP_NESTEROV, .lr = lr, .momentum = momentum};
}

struct ddp_optimizer ddp_adam(float lr)
{
    return (struct ddp_optimizer){.kind = DDP_ADAM,
                                  .lr = lr,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.999f,
                                  .eps = 1e-8f};
}

struct ddp_optimizer ddp_adamw(float lr, float weight_decay)
{
    struct ddp_optimizer o = ddp_adam(lr);

    o.kind = DDP_ADAMW;
    o.weight_decay = weight_decay;
    return o;
}

/* PyTorch calls beta2 alpha. */
struct ddp_optimizer ddp_rmsprop(float lr)
{
    return (struct ddp_optimizer){
        .kind = DDP_RMSPROP, .lr = lr, .beta2 = 0.99f, .eps = 1e-8f};
}

/* In the order that the kernels have them in; names are PyTorch's. */
int ddp__optimizer_state(const struct ddp_optimizer *o, const char *name[2])
{
    name[0] = "momentum_buffer";
    switch (o->kind) {
    case DDP_SGD:
        return 0;
    case DDP_ADAM:
    case DDP_ADAMW:
        name[0] = "exp_avg";
        name[1] = "exp_avg_sq";
        return 2;
    case DDP_RMSPROP:
        name[0] = "square_avg";
        name[1] = "momentum_buffer";
        return o->momentum > 0 ? 2 : 1;
    default:
        return 1;
    }
}
