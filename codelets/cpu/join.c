/* join.c - concatenation and channel scaling of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "cpu.h"

/* ---- concat, split ------------------------------------------------------ */

static void copy_rows(char *to, size_t to_step, const char *from,
                      size_t from_step, size_t bytes, size_t rows)
{
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * to_step, from + r * from_step, bytes);
}

/* Bytes of `channels` channels of buffer i. */
static size_t width_bytes(const struct ddp__task *t, int i, int channels)
{
    return (size_t)channels * ddp__dtype_size(t->call->buf[i].type);
}

/* Buffers x, y */
int ddp__cpu_concat(const struct ddp__task *t)
{
    int c = t->call->buf[0].shape.c, all = t->call->buf[1].shape.c;

    copy_rows((char *)t->data[1] + width_bytes(t, 1, t->call->at),
              width_bytes(t, 1, all), t->data[0], width_bytes(t, 0, c),
              width_bytes(t, 0, c), ddp__rows(t, 0));
    return 0;
}

/* Buffers dy, dx */
int ddp__cpu_split(const struct ddp__task *t)
{
    int c = t->call->buf[1].shape.c, all = t->call->buf[0].shape.c;

    copy_rows(t->data[1], width_bytes(t, 1, c),
              (const char *)t->data[0] + width_bytes(t, 0, t->call->at),
              width_bytes(t, 0, all), width_bytes(t, 1, c), ddp__rows(t, 1));
    return 0;
}

/* ---- scale -------------------------------------------------------------- */

DDP__INLINE void scale(const void *restrict x, const void *restrict s,
                       void *restrict y, size_t rows, size_t c, bool b)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < c; i++)
            ddp__store(y, r * c + i,
                       ddp__load(x, r * c + i, b) * ddp__load(s, i, b), b);
}

DDP__CLONES static void scale_f32(const void *x, const void *s, void *y,
                                  size_t rows, size_t c)
{
    scale(x, s, y, rows, c, false);
}

DDP__CLONES static void scale_bf16(const void *x, const void *s, void *y,
                                   size_t rows, size_t c)
{
    scale(x, s, y, rows, c, true);
}

/* sum = the sums of dy x over rows */
DDP__INLINE void dot(const void *restrict x, const void *restrict dy,
                     float *restrict sum, size_t rows, size_t c, bool b)
{
    for (size_t i = 0; i < c; i++)
        sum[i] = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < c; i++)
            sum[i] += ddp__load(x, r * c + i, b) * ddp__load(dy, r * c + i, b);
}

DDP__CLONES static void dot_f32(const void *x, const void *dy, float *sum,
                                size_t rows, size_t c)
{
    dot(x, dy, sum, rows, c, false);
}

DDP__CLONES static void dot_bf16(const void *x, const void *dy, float *sum,
                                 size_t rows, size_t c)
{
    dot(x, dy, sum, rows, c, true);
}

/* Buffers x, s, y */
int ddp__cpu_scale_fwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[0].shape.c, n = (size_t)t->n;
    size_t rows = ddp__rows(t, 0) / n;
    bool b = ddp__is_bf16(t, 0);

    for (size_t i = 0; i < n; i++)
        (b ? scale_bf16 : scale_f32)(
            ddp__at(t->data[0], i * rows * c, b), ddp__at(t->data[1], i * c, b),
            ddp__to(t->data[2], i * rows * c, b), rows, c);
    return 0;
}

/* ds of one sample: f32 over 64 rows, f64 over all. */
static void scale_gradient(const void *x, const void *dy, void *ds, size_t rows,
                           size_t c, float *sum, double *total, bool b)
{
    memset(total, 0, c * sizeof(*total));
    for (size_t r = 0; r < rows; r += 64) {
        size_t k = rows - r < 64 ? rows - r : 64;

        (b ? dot_bf16 : dot_f32)(ddp__at(x, r * c, b), ddp__at(dy, r * c, b),
                                 sum, k, c);
        for (size_t i = 0; i < c; i++)
            total[i] += sum[i];
    }
    for (size_t i = 0; i < c; i++)
        ddp__store(ds, i, (float)total[i], b);
}

/* Buffers x, s, dy, dx, ds */
int ddp__cpu_scale_bwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[0].shape.c, n = (size_t)t->n;
    size_t rows = ddp__rows(t, 0) / n;
    bool b = ddp__is_bf16(t, 0);
    double *total = ddp__scratch(c * (sizeof(double) + sizeof(float)));

    if (!total)
        return DDP_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const void *x = ddp__at(t->data[0], i * rows * c, b);
        const void *dy = ddp__at(t->data[2], i * rows * c, b);

        scale_gradient(x, dy, ddp__to(t->data[4], i * c, b), rows, c,
                       (float *)(total + c), total, b);
        (b ? scale_bf16 : scale_f32)(dy, ddp__at(t->data[1], i * c, b),
                                     ddp__to(t->data[3], i * rows * c, b), rows,
                                     c);
    }
    return 0;
}
