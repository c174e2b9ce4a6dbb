/* join.c - concatenation and channel scaling of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "backend.h"
#include "base/team.h"
#include "cpu.h"
#include "thread.h"

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

int ddp__cpu_concat(const struct ddp__task *t)
{
    int c = t->call->buf[DDP__CONCAT_X].shape.c;
    int all = t->call->buf[DDP__CONCAT_Y].shape.c;

    copy_rows((char *)t->data[DDP__CONCAT_Y] +
                  width_bytes(t, DDP__CONCAT_Y, t->call->at),
              width_bytes(t, DDP__CONCAT_Y, all), t->data[DDP__CONCAT_X],
              width_bytes(t, DDP__CONCAT_X, c),
              width_bytes(t, DDP__CONCAT_X, c), ddp__rows(t, DDP__CONCAT_X));
    return 0;
}

int ddp__cpu_split(const struct ddp__task *t)
{
    int c = t->call->buf[DDP__SPLIT_DX].shape.c;
    int all = t->call->buf[DDP__SPLIT_DY].shape.c;

    copy_rows(t->data[DDP__SPLIT_DX], width_bytes(t, DDP__SPLIT_DX, c),
              (const char *)t->data[DDP__SPLIT_DY] +
                  width_bytes(t, DDP__SPLIT_DY, t->call->at),
              width_bytes(t, DDP__SPLIT_DY, all),
              width_bytes(t, DDP__SPLIT_DX, c), ddp__rows(t, DDP__SPLIT_DX));
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

enum { PART = 1 << 15 /* values: some microseconds */ };

/* Pixels of one sample. */
struct scaling {
    const void *x, *s;
    void *y;
    size_t rows, c, parts;
    bool b;
};

static int scale_part(void *arg, int i)
{
    const struct scaling *g = arg;
    size_t at = (size_t)i * g->rows / g->parts;
    size_t end = ((size_t)i + 1) * g->rows / g->parts;

    (g->b ? scale_bf16 : scale_f32)(ddp__at(g->x, at * g->c, g->b), g->s,
                                    ddp__to(g->y, at * g->c, g->b), end - at,
                                    g->c);
    return 0;
}

int ddp__cpu_scale_fwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__SCALE_FWD_X].shape.c, n = (size_t)t->n;
    size_t rows = ddp__rows(t, DDP__SCALE_FWD_X) / n;
    int parts = ddp__team_parts(rows * c, PART);
    bool b = ddp__is_bf16(t, DDP__SCALE_FWD_X);

    for (size_t i = 0; i < n; i++)
        ddp__team_each(parts, scale_part,
                       &(struct scaling){
                           ddp__at(t->data[DDP__SCALE_FWD_X], i * rows * c, b),
                           ddp__at(t->data[DDP__SCALE_FWD_S], i * c, b),
                           ddp__to(t->data[DDP__SCALE_FWD_Y], i * rows * c, b),
                           rows, c, (size_t)parts, b});
    return 0;
}

/* total = the sums of dy x of one sample: f32 over 64 rows, f64 over all. */
static void sum_products(const void *x, const void *dy, size_t rows, size_t c,
                         float *sum, double *total, bool b)
{
    memset(total, 0, c * sizeof(*total));
    for (size_t r = 0; r < rows; r += 64) {
        size_t k = rows - r < 64 ? rows - r : 64;

        (b ? dot_bf16 : dot_f32)(ddp__at(x, r * c, b), ddp__at(dy, r * c, b),
                                 sum, k, c);
        for (size_t i = 0; i < c; i++)
            total[i] += sum[i];
    }
}

/* ds of one sample; by: what its x was multiplied by, or NULL. */
static void store_sums(const double *total, const void *by, void *ds, size_t c,
                       bool b)
{
    for (size_t i = 0; i < c; i++) {
        double factor = by ? ddp__load(by, i, b) : 1;

        ddp__store(ds, i, factor == 0 ? 0 : (float)(total[i] / factor), b);
    }
}

int ddp__cpu_scale_bwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__SCALE_BWD_X].shape.c, n = (size_t)t->n;
    size_t rows = ddp__rows(t, DDP__SCALE_BWD_X) / n;
    bool b = ddp__is_bf16(t, DDP__SCALE_BWD_X);
    double *total = ddp__scratch(c * (sizeof(double) + sizeof(float)));

    if (!total)
        return DDP_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const void *x = ddp__at(t->data[DDP__SCALE_BWD_X], i * rows * c, b);
        const void *dy = ddp__at(t->data[DDP__SCALE_BWD_DY], i * rows * c, b);
        const void *s = ddp__at(t->data[DDP__SCALE_BWD_S], i * c, b);

        sum_products(x, dy, rows, c, (float *)(total + c), total, b);
        store_sums(total, t->call->scaled ? s : NULL,
                   ddp__to(t->data[DDP__SCALE_BWD_DS], i * c, b), c, b);
        (b ? scale_bf16 : scale_f32)(
            dy, s, ddp__to(t->data[DDP__SCALE_BWD_DX], i * rows * c, b), rows,
            c);
    }
    return 0;
}
