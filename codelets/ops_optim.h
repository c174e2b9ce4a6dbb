/* ops_optim.h - the table of optimizers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A new optimizer is an enumerator in ddp.h, a row here, and a function of each
 * device: its rule in ref/optim.c, cpu/rules.c and gpu/rules.h.  Each of them
 * is called by a switch made of the rows, so what is missing does not compile.
 */
#ifndef DDP_OPS_OPTIM_H
#define DDP_OPS_OPTIM_H

#include "ddp.h"

/* X (ID, name, rule, (names of its states), what it uses, defaults: lr, beta1,
 *    beta2, eps)
 *
 * A state is a vector as long as the weights, and begins at 0; names are
 * PyTorch's or timm's, and the kernels have them in this order.  What remains
 * of the 1 that RMSpropTF's square_avg begins at, beta2^updates, is not in it.
 */
/* clang-format off */
#define DDP__OPTIMIZERS(X)                                                     \
    X(SGD, "sgd", sgd, (NULL), 0, 0.1, 0, 0, 0)                                \
    X(MOMENTUM, "momentum", momentum, ("momentum_buffer"),                     \
      DDP_USES_MOMENTUM, 0.1, 0, 0, 0)                                         \
    X(MOMENTUM_FLUX, "flux-momentum", momentum_flux, ("momentum_buffer"),      \
      DDP_USES_MOMENTUM, 0.1, 0, 0, 0)                                         \
    X(NESTEROV, "nesterov", nesterov, ("momentum_buffer"),                     \
      DDP_USES_MOMENTUM, 0.1, 0, 0, 0)                                         \
    X(ADAM, "adam", adam, ("exp_avg", "exp_avg_sq"),                           \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS,                          \
      0.001, 0.9f, 0.999f, 1e-8f)                                              \
    X(ADAMW, "adamw", adam, ("exp_avg", "exp_avg_sq"),                         \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS | DDP__DECOUPLED_DECAY,   \
      0.001, 0.9f, 0.999f, 1e-8f)                                              \
    X(RMSPROP, "rmsprop", rmsprop, ("square_avg", "momentum_buffer"),          \
      DDP_USES_MOMENTUM | DDP_USES_BETA2 | DDP_USES_EPS |                      \
      DDP__SECOND_IF_MOMENTUM, 0.01, 0, 0.99f, 1e-8f)                          \
    X(AMSGRAD, "amsgrad", amsgrad,                                             \
      ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),                             \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS,                          \
      0.001, 0.9f, 0.999f, 1e-8f)                                              \
    X(NADAM, "nadam", nadam, ("exp_avg", "exp_avg_sq"),                        \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS,                          \
      0.002, 0.9f, 0.999f, 1e-8f)                                              \
    X(RADAM, "radam", radam, ("exp_avg", "exp_avg_sq"),                        \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS,                          \
      0.001, 0.9f, 0.999f, 1e-8f)                                              \
    X(ADABELIEF, "adabelief", adabelief, ("exp_avg", "exp_avg_var"),           \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS | DDP__DECOUPLED_DECAY,   \
      0.001, 0.9f, 0.999f, 1e-16f)                                             \
    X(LION, "lion", lion, ("exp_avg"),                                         \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP__DECOUPLED_DECAY,                  \
      0.0001, 0.9f, 0.99f, 0)                                                  \
    X(ADAGRAD, "adagrad", adagrad, ("sum"), DDP_USES_EPS, 0.01, 0, 0, 1e-10f)  \
    X(ADADELTA, "adadelta", adadelta, ("square_avg", "acc_delta"),             \
      DDP_USES_BETA2 | DDP_USES_EPS, 1, 0, 0.9f, 1e-6f)                        \
    X(LAMB, "lamb", lamb, ("exp_avg", "exp_avg_sq"),                           \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS | DDP__LAYERWISE,         \
      0.001, 0.9f, 0.999f, 1e-6f)                                              \
    X(LARS, "lars", lars, ("momentum_buffer"),                                 \
      DDP_USES_MOMENTUM | DDP__LAYERWISE, 1, 0, 0, 0)                          \
    X(RMSPROP_TF, "rmsproptf", rmsprop_tf, ("square_avg", "momentum_buffer"),  \
      DDP_USES_MOMENTUM | DDP_USES_BETA2 | DDP_USES_EPS |                      \
      DDP__SECOND_IF_MOMENTUM, 0.01, 0, 0.9f, 1e-10f)                          \
    X(NADAMW, "nadamw", nadam, ("exp_avg", "exp_avg_sq"),                      \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS | DDP__DECOUPLED_DECAY,   \
      0.001, 0.9f, 0.999f, 1e-8f)                                              \
    X(ADAMP, "adamp", adamp, ("exp_avg", "exp_avg_sq"),                        \
      DDP_USES_BETA1 | DDP_USES_BETA2 | DDP_USES_EPS | DDP__DECOUPLED_DECAY |  \
      DDP__PROJECTS, 0.001, 0.9f, 0.999f, 1e-8f)
/* clang-format on */

/* The program makes the update of a custom optimizer: ref runs it, other
 * devices leave it to ref. */
#define DDP__CUSTOM_OPTIMIZER_STATES "state_0", "state_1", "state_2"

/* Bits next to those of enum ddp_optimizer_use. */
enum {
    DDP__DECOUPLED_DECAY = 256,    /* takes the decay off the weight itself,
                                      not through the gradient */
    DDP__SECOND_IF_MOMENTUM = 512, /* has the second state only with momentum */
    DDP__PROJECTS = 2048, /* needs the outputs of spans that are matrices */
    DDP__LAYERWISE = 1024 /* needs norms of the whole parameter, a span; adds
                             the decay itself, and a span without decay needs
                             no norms */
};

/* The most states: of a rule, and with those of Lookahead. */
enum { DDP__RULE_STATES = 3, DDP__OPTIMIZER_STATES = DDP__RULE_STATES + 1 };

/* PyTorch's momentum_decay of NAdam, and what it is the power of. */
#define DDP__NADAM_DECAY 0.004
#define DDP__NADAM_BASE 0.96

/* timm's trust_coeff of LARS */
#define DDP__LARS_TRUST 0.001

/* timm's delta and wd_ratio of AdamP */
#define DDP__ADAMP_DELTA 0.1
#define DDP__ADAMP_DECAY 0.1

/* Adaptive clipping: the least norms of weights and of a gradient, as timm has
 * them. */
#define DDP__UNIT_WEIGHTS 1e-3
#define DDP__UNIT_GRADIENT 1e-6

/* How many states an optimizer keeps: those of its rule, and then, with
 * Lookahead, the weights that it returns to. */
int ddp__rule_states(const struct ddp_optimizer *o);
int ddp__optimizer_states(const struct ddp_optimizer *o);

/* The name of the i-th of them. */
const char *ddp__optimizer_state(const struct ddp_optimizer *o, int i);

struct ddp__task;

/* The optimizer as it is in one update. */
struct ddp_optimizer ddp__optimizer_of(const struct ddp__task *t);

/* Whether it uses any of these. */
bool ddp__optimizer_uses(const struct ddp_optimizer *o, unsigned uses);

#endif
