/* input.c - from samples to activations, on CUDA workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "launch.h"
#include "tasks.h"

/* y may have more channels than x: those are 0. */
static struct ddp__k_input input_arguments(const struct ddp__task *t)
{
    int w = t->call->buf[DDP__INPUT_U8_Y].shape.w;
    size_t len = ddp__len(t, DDP__INPUT_U8_Y);

    return (struct ddp__k_input){.items = (unsigned)ddp__groups(len),
                                 .type = t->call->buf[DDP__INPUT_U8_Y].type,
                                 .wide = DDP__ALIGNED(t, DDP__INPUT_U8_Y),
                                 .x = t->data[DDP__INPUT_U8_X],
                                 .y = t->data[DDP__INPUT_U8_Y],
                                 .len = len,
                                 .flip = t->call->input.flip ? w : 0,
                                 .c = t->call->buf[DDP__INPUT_U8_X].shape.c,
                                 .cy = t->call->buf[DDP__INPUT_U8_Y].shape.c};
}

/* y = (x / 255 - mean) / std, by channel */
int ddp__cuda_input_u8(const struct ddp__task *t)
{
    struct ddp__k_input p = input_arguments(t);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    p.bytes = true;
    for (int i = 0; i < 4; i++) {
        p.mean[i] = 255 * t->call->input.mean[i];
        p.factor[i] = (float)(1 / (255.0 * t->call->input.std[i]));
    }
    return rc < 0 ? rc : DDP__LAUNCH(&place, input, &p);
}

/* y = x */
int ddp__cuda_input_f32(const struct ddp__task *t)
{
    struct ddp__k_input p = input_arguments(t);
    struct ddp__cuda_place place;
    int rc = ddp__cuda_place(&place);

    for (int i = 0; i < 4; i++)
        p.factor[i] = 1;
    return rc < 0 ? rc : DDP__LAUNCH(&place, input, &p);
}
