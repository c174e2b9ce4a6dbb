/* ops_loss.h - the table of losses
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A new loss is an enumerator in ddp.h, a row here, and a function of each
 * device, which has a sample and its target: its rule in ref/loss.c,
 * cpu/loss_rules.c and gpu/losses.h.  Each of them is called by a switch made
 * of the rows, so what is missing does not compile.
 */
#ifndef DDP_OPS_LOSS_H
#define DDP_OPS_LOSS_H

#include "ddp.h"

/* What a loss compares a sample's outputs with. */
enum ddp__target {
    DDP__TARGET_ANY,   /* a class or values: what the data have */
    DDP__TARGET_CLASS, /* one of as many classes as there are outputs, i32; or
                          the share that the sample has of each, f32 */
    DDP__TARGET_VALUES /* as many values as there are outputs */
};

/* X (ID, name, rule, target: enum ddp__target) */
#define DDP__LOSSES(X)                                                         \
    X(LOGIT_CROSS_ENTROPY, "logit_cross_entropy", cross_entropy, CLASS)        \
    X(MSE, "mse", squared_error, VALUES)                                       \
    X(BINARY_CROSS_ENTROPY, "binary_cross_entropy", binary_entropy, CLASS)     \
    X(FOCAL, "focal", focal, CLASS)

/* The program computes a custom loss: ref runs it, other devices leave it to
 * ref. */
#define DDP__CUSTOM_LOSS(X) X(CUSTOM_LOSS, "custom", custom, ANY)

struct ddp__loss_info {
    const char *name;
    enum ddp__target target;
};

/* NULL: there is no such kind. */
const struct ddp__loss_info *ddp__loss_info(enum ddp_loss_kind kind);

#endif
