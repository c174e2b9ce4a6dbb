/* input.c - from samples to activations, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "cpu.h"
#include "thread.h"

enum { PIXELS = 16 }; /* in a row, so that vectors are full */

/* y = x a + b over rows of width values */
DDP__INLINE void normalise(const uint8_t *restrict x, void *restrict y,
                           const float *restrict a, const float *restrict shift,
                           size_t len, bool b)
{
    for (size_t i = 0; i < len; i++)
        ddp__store(y, i, (float)x[i] * a[i] + shift[i], b);
}

DDP__CLONES static void rows_f32(const uint8_t *x, float *y, const float *a,
                                 const float *shift, size_t len, size_t width)
{
    for (size_t i = 0; i < len; i += width)
        normalise(x + i, y + i, a, shift, len - i < width ? len - i : width,
                  false);
}

DDP__CLONES static void rows_bf16(const uint8_t *x, uint16_t *y, const float *a,
                                  const float *shift, size_t len, size_t width)
{
    for (size_t i = 0; i < len; i += width)
        normalise(x + i, y + i, a, shift, len - i < width ? len - i : width,
                  true);
}

/* Swap left and right of y. */
static void mirror(const struct ddp__task *t)
{
    const struct ddp__view *v = &t->call->buf[DDP__INPUT_U8_Y];
    size_t pixel = (size_t)v->shape.c * ddp__dtype_size(v->type);
    size_t row = (size_t)v->shape.w * pixel;
    size_t size = ddp__rows(t, DDP__INPUT_U8_Y) * pixel;
    char *y = t->data[DDP__INPUT_U8_Y], was[64];

    for (size_t r = 0; r < size; r += row)
        for (size_t a = 0, b = row - pixel; a < b; a += pixel, b -= pixel)
            for (size_t i = 0, n; i < pixel; i += n) {
                n = pixel - i < sizeof(was) ? pixel - i : sizeof(was);
                memcpy(was, y + r + a + i, n);
                memcpy(y + r + a + i, y + r + b + i, n);
                memcpy(y + r + b + i, was, n);
            }
}

/* Channels past the fourth are treated like the fourth. */
int ddp__cpu_input_u8(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__INPUT_U8_X].shape.c;
    size_t width = c * PIXELS;
    const float *mean = t->call->input.mean, *std = t->call->input.std;
    float *a = ddp__scratch(2 * width * sizeof(*a)), *shift = a + width;

    if (!a)
        return DDP_ENOMEM;
    for (size_t i = 0; i < width; i++) {
        size_t k = i % c < 4 ? i % c : 3;

        a[i] = (float)(1 / (255.0 * std[k]));
        shift[i] = (float)(-(double)mean[k] / std[k]);
    }
    if (ddp__is_bf16(t, DDP__INPUT_U8_Y))
        rows_bf16(t->data[DDP__INPUT_U8_X], t->data[DDP__INPUT_U8_Y], a, shift,
                  ddp__len(t, DDP__INPUT_U8_X), width);
    else
        rows_f32(t->data[DDP__INPUT_U8_X], t->data[DDP__INPUT_U8_Y], a, shift,
                 ddp__len(t, DDP__INPUT_U8_X), width);
    if (t->call->input.flip)
        mirror(t);
    return 0;
}

DDP__CLONES static void to_bf16(const float *restrict x, uint16_t *restrict y,
                                size_t len)
{
    for (size_t i = 0; i < len; i++)
        y[i] = ddp__round_bf16(x[i]);
}

int ddp__cpu_input_f32(const struct ddp__task *t)
{
    size_t len = ddp__len(t, DDP__INPUT_F32_X);

    if (ddp__is_bf16(t, DDP__INPUT_F32_Y))
        to_bf16(t->data[DDP__INPUT_F32_X], t->data[DDP__INPUT_F32_Y], len);
    else
        memcpy(t->data[DDP__INPUT_F32_Y], t->data[DDP__INPUT_F32_X],
               len * sizeof(float));
    if (t->call->input.flip)
        mirror(t);
    return 0;
}
