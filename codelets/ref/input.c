/* input.c - from samples to activations, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include "backend.h"
#include "ref.h"

/* Where element i of y comes from in x; false: from nowhere, it is 0. */
static bool find_source(const struct ddp__task *t, size_t i, size_t *from)
{
    const struct ddp_shape *x = &t->call->buf[DDP__INPUT_U8_X].shape;
    size_t c = (size_t)t->call->buf[DDP__INPUT_U8_Y].shape.c, w = (size_t)x->w;
    size_t pixel = i / c;

    if (t->call->input.flip)
        pixel = pixel / w * w + (w - 1 - pixel % w);
    *from = pixel * (size_t)x->c + i % c;
    return i % c < (size_t)x->c;
}

/* y = (x / 255 - mean) / std, by channel.  Channels past the fourth are
 * treated like the fourth. */
int ddp__ref_input_u8(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__INPUT_U8_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__INPUT_U8_Y);
    const uint8_t *pixel = x.data;
    size_t from;

    for (size_t i = 0; i < ddp__len(t, DDP__INPUT_U8_Y); i++) {
        size_t c = i % (size_t)y.c;
        double mean = t->call->input.mean[c < 4 ? c : 3];
        double std = t->call->input.std[c < 4 ? c : 3];

        ddp__ref_write(
            &y, i,
            find_source(t, i, &from) ? (pixel[from] / 255.0 - mean) / std : 0);
    }
    return 0;
}

/* y = x */
int ddp__ref_input_f32(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__INPUT_F32_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__INPUT_F32_Y);
    size_t from;

    for (size_t i = 0; i < ddp__len(t, DDP__INPUT_F32_Y); i++)
        ddp__ref_write(&y, i,
                       find_source(t, i, &from) ? ddp__ref_read(&x, from) : 0);
    return 0;
}
