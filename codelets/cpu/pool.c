/* pool.c - maximum and mean over windows, of CPU workers
 *
 * All loops are over a block of channels innermost.  Backward gathers: a pixel
 * adds up what the windows over it have for it, so that it is written once.
 */
#include "config.h"

#include <math.h>

#include "cpu.h"

enum { BLOCK = 256 }; /* channels at a time */

/* Pixels begin .. end - 1 of the image are in a window that starts at start
 * and, with the padding, has `extent` pixels. */
struct window {
    int start, begin, end, extent;
};

struct axis {
    int in, out, size, stride, before, after;
    bool adaptive;
};

struct geometry {
    struct axis v, h;
    size_t c;
    bool b;
};

static struct geometry geometry(const struct ddp__task *t, int x, int y)
{
    const struct ddp__pool *p = &t->call->pool;
    struct ddp_shape i = t->call->buf[x].shape, o = t->call->buf[y].shape;

    return (struct geometry){
        .v = {i.h, o.h, p->kh, p->sh, p->top, p->bottom, p->adaptive},
        .h = {i.w, o.w, p->kw, p->sw, p->left, p->right, p->adaptive},
        .c = (size_t)i.c,
        .b = ddp__is_bf16(t, x),
    };
}

static struct window window(const struct axis *a, int o)
{
    struct window w;
    int edge;

    if (a->adaptive) {
        w.begin = w.start = (int)((int64_t)o * a->in / a->out);
        w.end = (int)((((int64_t)o + 1) * a->in + a->out - 1) / a->out);
        w.extent = w.end - w.begin;
        return w;
    }
    w.start = o * a->stride - a->before;
    w.begin = w.start > 0 ? w.start : 0;
    w.end = w.start + a->size < a->in ? w.start + a->size : a->in;
    edge = a->in + a->after;
    w.extent = (w.start + a->size < edge ? w.start + a->size : edge) - w.start;
    return w;
}

/* The first output whose window ends after pixel i; its successors cover i as
 * long as they begin at or before it. */
static int first_over(const struct axis *a, int i)
{
    int o;

    if (a->adaptive)
        o = (int)((int64_t)i * a->out / a->in) - 1;
    else
        o = (i + a->before - a->size) / a->stride;
    o = o < 0 ? 0 : o > a->out ? a->out : o;
    while (o > 0 && window(a, o - 1).end > i)
        o--;
    while (o < a->out && window(a, o).end <= i)
        o++;
    return o;
}

static size_t pixel(const struct axis *v, const struct axis *h, int n, int y,
                    int x, bool out)
{
    size_t rows = (size_t)(out ? v->out : v->in);
    size_t cols = (size_t)(out ? h->out : h->in);

    return ((size_t)n * rows + (size_t)y) * cols + (size_t)x;
}

/* ---- maximum, forward --------------------------------------------------- */

/* best, at: the maximum so far and its position; a NaN stays the maximum. */
DDP__INLINE void max_step(const void *restrict x, float *restrict best,
                          int32_t *restrict at, size_t c, int32_t position,
                          bool b)
{
    for (size_t i = 0; i < c; i++) {
        float v = ddp__load(x, i, b);
        bool wins = !(v <= best[i]) & (best[i] == best[i]);

        best[i] = wins ? v : best[i];
        at[i] = wins ? position : at[i];
    }
}

DDP__INLINE void max_first(const void *restrict x, float *restrict best,
                           int32_t *restrict at, size_t c, int32_t position,
                           bool b)
{
    for (size_t i = 0; i < c; i++) {
        best[i] = ddp__load(x, i, b);
        at[i] = position;
    }
}

/* One output pixel, c <= BLOCK channels; x is channel 0 of the image. */
DDP__INLINE void max_pixel(const struct geometry *g, const void *x, size_t at_c,
                           size_t c, struct window r, struct window q,
                           float *best, int32_t *at, bool b)
{
    bool first = true;

    for (size_t i = 0; i < c; i++) {
        best[i] = -INFINITY;
        at[i] = 0;
    }
    for (int y = r.begin; y < r.end; y++)
        for (int k = q.begin; k < q.end; k++) {
            size_t p = (size_t)y * (size_t)g->h.in + (size_t)k;
            const void *from = ddp__at(x, p * g->c + at_c, b);
            int32_t position = (y - r.start) * g->h.size + k - q.start;

            if (first)
                max_first(from, best, at, c, position, b);
            else
                max_step(from, best, at, c, position, b);
            first = false;
        }
}

DDP__INLINE void max_put(void *restrict y, void *restrict index,
                         const float *restrict best, const int32_t *restrict at,
                         size_t o, size_t c, bool wide, bool b)
{
    for (size_t i = 0; i < c; i++)
        ddp__store(y, o + i, best[i], b);
    for (size_t i = 0; i < c && !wide; i++)
        ((uint8_t *)index)[o + i] = (uint8_t)at[i];
    for (size_t i = 0; i < c && wide; i++)
        ((int32_t *)index)[o + i] = at[i];
}

/* One row of outputs. */
DDP__INLINE void max_row(const struct geometry *g, const void *x, void *y,
                         void *index, size_t out, struct window r, bool wide,
                         bool b)
{
    float best[BLOCK];
    int32_t at[BLOCK];

    for (int ox = 0; ox < g->h.out; ox++, out += g->c)
        for (size_t c = 0, k; c < g->c; c += k) {
            k = g->c - c < BLOCK ? g->c - c : BLOCK;
            max_pixel(g, x, c, k, r, window(&g->h, ox), best, at, b);
            max_put(y, index, best, at, out + c, k, wide, b);
        }
}

DDP__CLONES static void max_row_f32(const struct geometry *g, const void *x,
                                    void *y, void *index, size_t out,
                                    struct window r, bool wide)
{
    max_row(g, x, y, index, out, r, wide, false);
}

DDP__CLONES static void max_row_bf16(const struct geometry *g, const void *x,
                                     void *y, void *index, size_t out,
                                     struct window r, bool wide)
{
    max_row(g, x, y, index, out, r, wide, true);
}

/* Buffers x, y, index */
int ddp__cpu_max_pool_fwd(const struct ddp__task *t)
{
    struct geometry g = geometry(t, 0, 1);
    size_t image = (size_t)g.v.in * (size_t)g.h.in * g.c;
    bool wide = t->call->buf[2].type != DDP_U8;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < g.v.out; oy++)
            (g.b ? max_row_bf16 : max_row_f32)(
                &g, ddp__at(t->data[0], (size_t)n * image, g.b), t->data[1],
                t->data[2], pixel(&g.v, &g.h, n, oy, 0, true) * g.c,
                window(&g.v, oy), wide);
    return 0;
}

/* ---- backward ----------------------------------------------------------- */

/* A row of dx is made in a buffer of its own, then stored. */
struct gather {
    const struct geometry *g;
    const struct ddp__pool *p;
    const void *dy, *index; /* index NULL: mean */
    bool wide;              /* index is i32 */
};

DDP__INLINE void won(const void *restrict dy, const void *restrict index,
                     float *restrict sum, size_t at, size_t c, int32_t position,
                     bool wide, bool b)
{
    if (wide)
        for (size_t i = 0; i < c; i++)
            sum[i] += ((const int32_t *)index)[at + i] == position
                          ? ddp__load(dy, at + i, b)
                          : 0;
    else
        for (size_t i = 0; i < c; i++)
            sum[i] += ((const uint8_t *)index)[at + i] == position
                          ? ddp__load(dy, at + i, b)
                          : 0;
}

DDP__INLINE void share(const void *restrict dy, float *restrict sum, size_t at,
                       size_t c, float factor, bool b)
{
    for (size_t i = 0; i < c; i++)
        sum[i] += ddp__load(dy, at + i, b) * factor;
}

static float mean_factor(const struct ddp__pool *p, struct window r,
                         struct window q)
{
    if (r.begin >= r.end || q.begin >= q.end)
        return 1;
    if (p->count_pad)
        return 1 / ((float)r.extent * (float)q.extent);
    return 1 / ((float)(r.end - r.begin) * (float)(q.end - q.begin));
}

/* Pixel (y, x) of sample n: the windows over it, from (oy, ox) on. */
DDP__INLINE void gather_pixel(const struct gather *s, int n, int y, int x,
                              int oy, int ox, size_t at_c, size_t c,
                              float *restrict sum, bool b)
{
    const struct geometry *g = s->g;
    struct window r, q;

    for (size_t i = 0; i < c; i++)
        sum[i] = 0;
    for (int i = oy; i < g->v.out && (r = window(&g->v, i)).begin <= y; i++)
        for (int j = ox; j < g->h.out && (q = window(&g->h, j)).begin <= x;
             j++) {
            size_t at = pixel(&g->v, &g->h, n, i, j, true) * g->c + at_c;

            if (!s->index)
                share(s->dy, sum, at, c, mean_factor(s->p, r, q), b);
            else
                won(s->dy, s->index, sum, at, c,
                    (y - r.start) * g->h.size + x - q.start, s->wide, b);
        }
}

DDP__INLINE void gather_row(const struct gather *s, int n, int y, float *row,
                            bool b)
{
    const struct geometry *g = s->g;
    int oy = first_over(&g->v, y);

    for (int x = 0; x < g->h.in; x++) {
        int ox = first_over(&g->h, x);

        for (size_t c = 0, k; c < g->c; c += k) {
            k = g->c - c < BLOCK ? g->c - c : BLOCK;
            gather_pixel(s, n, y, x, oy, ox, c, k, row + (size_t)x * g->c + c,
                         b);
        }
    }
}

DDP__CLONES static void gather_row_f32(const struct gather *s, int n, int y,
                                       float *row)
{
    gather_row(s, n, y, row, false);
}

DDP__CLONES static void gather_row_bf16(const struct gather *s, int n, int y,
                                        float *row)
{
    gather_row(s, n, y, row, true);
}

static int backward(const struct ddp__task *t, const struct gather *s, void *dx)
{
    const struct geometry *g = s->g;
    size_t len = (size_t)g->h.in * g->c;
    bool stream = ddp__streams(len * (size_t)g->v.in * (size_t)t->n, g->b);
    bool direct = !stream && !g->b;
    float *row = ddp__scratch(len * sizeof(*row));

    if (!row)
        return DDP_ENOMEM;
    for (int n = 0; n < t->n; n++)
        for (int y = 0; y < g->v.in; y++) {
            void *to =
                ddp__to(dx, pixel(&g->v, &g->h, n, y, 0, false) * g->c, g->b);

            (g->b ? gather_row_bf16 : gather_row_f32)(s, n, y,
                                                      direct ? to : row);
            if (!direct)
                ddp__put(to, row, len, g->b, stream);
        }
    ddp__put_end();
    return 0;
}

/* Buffers dy, index, dx */
int ddp__cpu_max_pool_bwd(const struct ddp__task *t)
{
    struct geometry g = geometry(t, 2, 0);
    struct gather s = {&g, &t->call->pool, t->data[0], t->data[1],
                       t->call->buf[1].type != DDP_U8};

    return backward(t, &s, t->data[2]);
}

/* Buffers dy, dx */
int ddp__cpu_mean_pool_bwd(const struct ddp__task *t)
{
    struct geometry g = geometry(t, 1, 0);
    struct gather s = {&g, &t->call->pool, t->data[0], NULL, false};

    return backward(t, &s, t->data[1]);
}

/* ---- mean, forward ------------------------------------------------------ */

/* Rows of a window are summed in f32, the window in f64. */
DDP__INLINE void mean_pixel(const struct geometry *g, const void *restrict x,
                            size_t at_c, size_t c, struct window r,
                            struct window q, double *restrict total, bool b)
{
    float sum[BLOCK];

    for (size_t i = 0; i < c; i++)
        total[i] = 0;
    for (int y = r.begin; y < r.end; y++) {
        for (size_t i = 0; i < c; i++)
            sum[i] = 0;
        for (int k = q.begin; k < q.end; k++) {
            size_t p = (size_t)y * (size_t)g->h.in + (size_t)k;

            for (size_t i = 0; i < c; i++)
                sum[i] += ddp__load(x, p * g->c + at_c + i, b);
        }
        for (size_t i = 0; i < c; i++)
            total[i] += sum[i];
    }
}

DDP__INLINE void mean_row(const struct geometry *g, const struct ddp__pool *p,
                          const void *x, void *restrict y, size_t out,
                          struct window r, bool b)
{
    double total[BLOCK];

    for (int ox = 0; ox < g->h.out; ox++, out += g->c) {
        struct window q = window(&g->h, ox);
        float factor = mean_factor(p, r, q);

        for (size_t c = 0, k; c < g->c; c += k) {
            k = g->c - c < BLOCK ? g->c - c : BLOCK;
            mean_pixel(g, x, c, k, r, q, total, b);
            for (size_t i = 0; i < k; i++)
                ddp__store(y, out + c + i, (float)(total[i] * factor), b);
        }
    }
}

DDP__CLONES static void mean_row_f32(const struct geometry *g,
                                     const struct ddp__pool *p, const void *x,
                                     void *y, size_t out, struct window r)
{
    mean_row(g, p, x, y, out, r, false);
}

DDP__CLONES static void mean_row_bf16(const struct geometry *g,
                                      const struct ddp__pool *p, const void *x,
                                      void *y, size_t out, struct window r)
{
    mean_row(g, p, x, y, out, r, true);
}

/* Buffers x, y */
int ddp__cpu_mean_pool_fwd(const struct ddp__task *t)
{
    struct geometry g = geometry(t, 0, 1);
    size_t image = (size_t)g.v.in * (size_t)g.h.in * g.c;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < g.v.out; oy++)
            (g.b ? mean_row_bf16 : mean_row_f32)(
                &g, &t->call->pool,
                ddp__at(t->data[0], (size_t)n * image, g.b), t->data[1],
                pixel(&g.v, &g.h, n, oy, 0, true) * g.c, window(&g.v, oy));
    return 0;
}
