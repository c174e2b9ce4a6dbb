/* ops_optim.c - what follows from the table of optimizers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ops.h"
#include "ops_optim.h"

/* A kind without a row does not compile. */
#pragma GCC diagnostic error "-Wswitch"

const struct ddp_optimizer_info *
ddp_optimizer_info(enum ddp_optimizer_kind kind)
{
#define X(id, name_, rule, states, uses_, lr_, beta1_, beta2_, eps_)           \
    [DDP_##id] = {.name = name_,                                               \
                  .uses = uses_,                                               \
                  .lr = lr_,                                                   \
                  .defaults = {.kind = DDP_##id,                               \
                               .lr = (float)(lr_),                             \
                               .beta1 = beta1_,                                \
                               .beta2 = beta2_,                                \
                               .eps = eps_}},
    static const struct ddp_optimizer_info info[] = {DDP__OPTIMIZERS(X)};
#undef X
    static const struct ddp_optimizer_info custom = {
        .name = "custom",
        .lr = 0.001,
        .defaults = {.kind = DDP_CUSTOM_OPTIMIZER, .lr = 0.001f}};

    switch (kind) {
#define X(id, ...) case DDP_##id:
        DDP__OPTIMIZERS(X)
#undef X
        return &info[kind];
    case DDP_CUSTOM_OPTIMIZER:
        return &custom;
    }
    return NULL;
}

static const char *const *names_of(enum ddp_optimizer_kind kind)
{
#define LIST(...)                                                              \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define X(id, name, rule, states, ...) [DDP_##id] = LIST states,
    static const char *const state[][DDP__RULE_STATES] = {DDP__OPTIMIZERS(X)};
#undef X
    static const char *const custom[] = LIST(DDP__CUSTOM_OPTIMIZER_STATES);
#undef LIST

    return kind == DDP_CUSTOM_OPTIMIZER ? custom : state[kind];
}

int ddp__rule_states(const struct ddp_optimizer *o)
{
    const char *const *name = names_of(o->kind);
    int n = 0;

    if (o->kind == DDP_CUSTOM_OPTIMIZER)
        return o->update_states;
    while (n < DDP__RULE_STATES && name[n])
        n++;
    if (ddp__optimizer_uses(o, DDP__SECOND_IF_MOMENTUM) && !(o->momentum > 0))
        n = 1;
    return n;
}

int ddp__optimizer_states(const struct ddp_optimizer *o)
{
    return ddp__rule_states(o) + (o->lookahead > 0);
}

const char *ddp__optimizer_state(const struct ddp_optimizer *o, int i)
{
    return i < ddp__rule_states(o) ? names_of(o->kind)[i]
                                   : "lookahead_slow_buff";
}

bool ddp__optimizer_uses(const struct ddp_optimizer *o, unsigned uses)
{
    return (ddp_optimizer_info(o->kind)->uses & uses) != 0;
}

struct ddp_optimizer ddp__optimizer_of(const struct ddp__task *t)
{
    struct ddp_optimizer o = t->call->optim.o;

    o.lr = t->lr;
    if (t->momentum > 0 && o.momentum > 0)
        o.momentum = t->momentum;
    if (t->momentum > 0)
        o.beta1 = t->momentum;
    return o;
}
