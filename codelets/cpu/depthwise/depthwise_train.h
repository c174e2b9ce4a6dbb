/* depthwise_train.h - depthwise convolutions of training, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_DEPTHWISE_TRAIN_H
#define DDP_DEPTHWISE_TRAIN_H

#include "cpu/conv/shape.h"
#include "cpu/isa.h"
#include "depthwise_v16.h"

/* Whether the pass, forward or data gradient, of a layer is worthwhile. */
bool ddp__depthwise_train_fits(const struct ddp__conv_shape *s,
                               enum ddp__conv_pass pass);

/* A task of such a layer. */
DDP__X86_ONLY int ddp__depthwise_train_run(const struct ddp__task *t,
                                           const struct ddp__conv_shape *s,
                                           enum ddp__conv_pass pass);

#ifdef DDP__X86
/* A pass of it, forward or data gradient. */
struct ddp__depthwise_pass {
    struct ddp__depthwise_work u;
    int size, stride;
    bool spreads, b;
};

/* Begin a task's, in a room of so many bytes; and run it. */
size_t ddp__depthwise_pass_size(const struct ddp__conv_shape *layer,
                                enum ddp__conv_pass pass);
void ddp__depthwise_pass_begin(struct ddp__depthwise_pass *p,
                               const struct ddp__conv_shape *layer,
                               enum ddp__conv_pass pass,
                               const struct ddp__task *t, void *room);
void ddp__depthwise_pass_run(const struct ddp__depthwise_pass *p);
#endif

#endif
