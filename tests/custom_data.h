/* custom_data.h - samples, and a way to train, for chains with custom layers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef CUSTOM_DATA_H
#define CUSTOM_DATA_H

#include "ddp_layer.h"
#include "defaults.h"
#include "number.h"

enum { N = 6, H = 5, W = 4, C = 3, OUT = 4 };
static const struct ddp_shape in = {H, W, C};
enum { X_LEN = N * H * W * C, Y_LEN = N * OUT };

static inline int get_numbers(void *arg, int64_t i, uint64_t key,
                              struct ddp_sample *s)
{
    float *x = s->x;

    (void)arg;
    (void)key;
    for (int k = 0; k < H * W * C; k++)
        x[k] = number((uint32_t)(1 + i * H * W * C + k));
    s->label = (int32_t)(i % OUT);
    return 0;
}

static inline ddp_dataset_t *samples(int64_t count)
{
    return ddp_dataset_callback(&(struct ddp_source){.count = count,
                                                     .shape = in,
                                                     .type = DDP_F32,
                                                     .classes = OUT,
                                                     .get = get_numbers});
}

static const struct ddp_train_config training = {
    TRAIN_DEFAULTS,
    .loss = DDP_LOGIT_CROSS_ENTROPY,
    .optimizer = {.kind = DDP_MOMENTUM, .lr = 0.1f, .momentum = 0.9f},
    .sub_batch = 2,
    .batch = N,
    .lanes = 2,
    .seed = 5,
};

/* Numbers in buffer i of a kernel. */
static inline size_t length(const struct ddp_kernel_args *a, int i)
{
    struct ddp_shape s = a->buf[i].shape;

    return (size_t)a->n * (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

#endif
