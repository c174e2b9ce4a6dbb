/* scale.c - channel scaling of CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "base/team.h"
#include "cpu/backend.h"
#include "cpu/cpu.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "scale_v16.h"

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
    bool b, stream;
    const struct ddp__scale *vectors; /* or NULL */
};

static int scale_part(void *arg, int i)
{
    const struct scaling *g = arg;
    size_t at = (size_t)i * g->rows / g->parts;
    size_t end = ((size_t)i + 1) * g->rows / g->parts;

    if (g->vectors) {
        ddp__scale_rows(g->vectors, &(struct ddp__scale_line){
                                        .from = ddp__at(g->x, at * g->c, g->b),
                                        .to = ddp__to(g->y, at * g->c, g->b),
                                        .rows = end - at,
                                        .stream = g->stream});
        return 0;
    }
    (g->b ? scale_bf16 : scale_f32)(ddp__at(g->x, at * g->c, g->b), g->s,
                                    ddp__to(g->y, at * g->c, g->b), end - at,
                                    g->c);
    return 0;
}

/* Factors for scale_v16.c, if that computes so many channels, or NULL. */
static int find_vectors(struct ddp__scale *to, const struct ddp__scale **out,
                        size_t c, bool b)
{
    void *room;

    *out = NULL;
    if (!ddp__scale_fits(c, b))
        return 0;
    if (!(room = ddp__scratch(ddp__scale_size(c))))
        return DDP_ENOMEM;
    *to = ddp__scale_in(room, c, b);
    *out = to;
    return 0;
}

int ddp__cpu_scale_fwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__SCALE_FWD_X].shape.c, n = (size_t)t->n;
    size_t rows = ddp__rows(t, DDP__SCALE_FWD_X) / n;
    bool b = ddp__is_bf16(t, DDP__SCALE_FWD_X);
    struct ddp__scale factors;
    struct scaling g = {.rows = rows,
                        .c = c,
                        .parts = (size_t)ddp__team_parts(rows * c, PART),
                        .b = b,
                        .stream = ddp__streams(n * rows * c, b)};

    if (find_vectors(&factors, &g.vectors, c, b) < 0)
        return DDP_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        g.x = ddp__at(t->data[DDP__SCALE_FWD_X], i * rows * c, b);
        g.s = ddp__at(t->data[DDP__SCALE_FWD_S], i * c, b);
        g.y = ddp__to(t->data[DDP__SCALE_FWD_Y], i * rows * c, b);
        if (g.vectors)
            ddp__scale_set(g.vectors, g.s);
        ddp__team_each((int)g.parts, scale_part, &g);
    }
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

/* One sample. */
struct sample {
    const void *x, *s, *dy, *by; /* by: see above */
    void *dx, *ds;               /* dx: or NULL */
    size_t rows, c;
    bool b, stream;
};

static struct sample sample_of(const struct ddp__task *t, size_t i, size_t rows,
                               size_t c, bool b)
{
    size_t at = i * rows * c;
    void *dx = t->data[DDP__SCALE_BWD_DX];
    struct sample p = {.x = ddp__at(t->data[DDP__SCALE_BWD_X], at, b),
                       .s = ddp__at(t->data[DDP__SCALE_BWD_S], i * c, b),
                       .dy = ddp__at(t->data[DDP__SCALE_BWD_DY], at, b),
                       .dx = dx ? ddp__to(dx, at, b) : NULL,
                       .ds = ddp__to(t->data[DDP__SCALE_BWD_DS], i * c, b),
                       .rows = rows,
                       .c = c,
                       .b = b};

    p.by = t->call->scaled ? p.s : NULL;
    p.stream = ddp__streams((size_t)t->n * rows * c, b);
    return p;
}

static int scale_by_vectors(const struct ddp__task *t, size_t rows, size_t c,
                            bool b)
{
    size_t totals = ddp__align(c * sizeof(double));
    char *room = ddp__scratch(totals + ddp__scale_size(c));
    double *total = (double *)(void *)room;
    struct ddp__scale v;

    if (!room)
        return DDP_ENOMEM;
    v = ddp__scale_in(room + totals, c, b);
    for (size_t i = 0; i < (size_t)t->n; i++) {
        struct sample p = sample_of(t, i, rows, c, b);

        ddp__scale_set(&v, p.s);
        ddp__scale_and_sum(
            &v, &(struct ddp__scale_line){p.dy, p.x, p.dx, rows, p.stream},
            total);
        store_sums(total, p.by, p.ds, c, b);
    }
    return 0;
}

int ddp__cpu_scale_bwd(const struct ddp__task *t)
{
    size_t c = (size_t)t->call->buf[DDP__SCALE_BWD_X].shape.c;
    size_t rows = ddp__rows(t, DDP__SCALE_BWD_X) / (size_t)t->n;
    bool b = ddp__is_bf16(t, DDP__SCALE_BWD_X);
    double *total;

    if (ddp__scale_fits(c, b))
        return scale_by_vectors(t, rows, c, b);
    if (!(total = ddp__scratch(c * (sizeof(double) + sizeof(float)))))
        return DDP_ENOMEM;
    for (size_t i = 0; i < (size_t)t->n; i++) {
        struct sample p = sample_of(t, i, rows, c, b);

        sum_products(p.x, p.dy, rows, c, (float *)(total + c), total, b);
        store_sums(total, p.by, p.ds, c, b);
        if (p.dx)
            (b ? scale_bf16 : scale_f32)(p.dy, p.s, p.dx, rows, c);
    }
    return 0;
}
