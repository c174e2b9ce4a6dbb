/* pool.c - maximum and mean over windows, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include "backend.h"
#include "ref.h"

/* Pooling along one direction.  Windows of both directions are independent. */
struct axis {
    int in, out, size, stride, before, after;
    bool adaptive;
};

/* The pixels begin .. end - 1 of the image are in a window. */
struct window {
    int start; /* of the whole window, maybe in the padding: < begin */
    int begin, end;
    int extent; /* pixels, those of the padding included */
};

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

/* Both directions of a task: from images of x's size to those of y's. */
struct axes {
    struct axis v, h;
};

/* Consecutive outputs, first .. end - 1. */
struct range {
    int first, end;
};

/* A value of an activation. */
struct place {
    int n, y, x, c;
};

static struct axes pool_axes(const struct ddp__pool *p,
                             const struct ddp__ref_buf *x,
                             const struct ddp__ref_buf *y)
{
    return (struct axes){
        {x->h, y->h, p->kh, p->sh, p->top, p->bottom, p->adaptive},
        {x->w, y->w, p->kw, p->sw, p->left, p->right, p->adaptive}};
}

static struct window adaptive_window(const struct axis *a, int o)
{
    int begin = (int)((int64_t)o * a->in / a->out);
    int end = (int)((((int64_t)o + 1) * a->in + a->out - 1) / a->out);

    return (struct window){begin, begin, end, end - begin};
}

static struct window window(const struct axis *a, int o)
{
    int start = o * a->stride - a->before;

    if (a->adaptive)
        return adaptive_window(a, o);
    return (struct window){start, max_int(start, 0),
                           min_int(start + a->size, a->in),
                           min_int(start + a->size, a->in + a->after) - start};
}

/* The outputs whose windows pixel i is in: windows begin and end in order, so
 * these are consecutive. */
static struct range covering_outputs(const struct axis *a, int i)
{
    struct range r = {0, 0};

    while (r.first < a->out && window(a, r.first).end <= i)
        r.first++;
    r.end = r.first;
    while (r.end < a->out && window(a, r.end).begin <= i)
        r.end++;
    return r;
}

/* A function of a pixel that sums over the windows r, q it is in. */
typedef double (*gather_f)(const struct ddp__task *t, const struct axes *a,
                           struct range r, struct range q, struct place p);

/* dx = what the function makes of the windows of dy. */
static int gather(const struct ddp__task *t, struct ddp__ref_buf dx,
                  struct ddp__ref_buf dy, gather_f f)
{
    struct axes a = pool_axes(&t->call->pool, &dx, &dy);
    size_t i = 0;

    for (int n = 0; n < t->n; n++)
        for (int y = 0; y < dx.h; y++) {
            struct range r = covering_outputs(&a.v, y);

            for (int x = 0; x < dx.w; x++) {
                struct range q = covering_outputs(&a.h, x);

                for (int c = 0; c < dx.c; c++)
                    ddp__ref_write(&dx, i++,
                                   f(t, &a, r, q, (struct place){n, y, x, c}));
            }
        }
    return 0;
}

static void set_index(const struct ddp__task *t, size_t i, int position)
{
    if (t->call->buf[DDP__MAX_POOL_FWD_INDEX].type == DDP_U8)
        ((uint8_t *)t->data[DDP__MAX_POOL_FWD_INDEX])[i] = (uint8_t)position;
    else
        ((int32_t *)t->data[DDP__MAX_POOL_FWD_INDEX])[i] = position;
}

static int get_index(const struct ddp__task *t, size_t i)
{
    if (t->call->buf[DDP__MAX_POOL_BWD_INDEX].type == DDP_U8)
        return ((const uint8_t *)t->data[DDP__MAX_POOL_BWD_INDEX])[i];
    return ((const int32_t *)t->data[DDP__MAX_POOL_BWD_INDEX])[i];
}

/* The first maximum of a window wins, a NaN over everything. */
static void max_of(const struct ddp__task *t, const struct ddp__ref_buf *x,
                   struct window r, struct window q, int n, int c, size_t at)
{
    double best = -INFINITY;
    int position = -1;

    for (int iy = r.begin; iy < r.end; iy++)
        for (int ix = q.begin; ix < q.end; ix++) {
            double v = ddp__ref_read(x, ddp__ref_at(x, n, iy, ix, c));

            if (position >= 0 && (isnan(best) || v <= best))
                continue;
            best = v;
            position = (iy - r.start) * t->call->pool.kw + ix - q.start;
        }
    ddp__ref_set(t->call->buf[DDP__MAX_POOL_FWD_Y].type,
                 t->data[DDP__MAX_POOL_FWD_Y], at, best);
    set_index(t, at, max_int(position, 0));
}

/* y = the maximum, index = where in the window: ky kw + kx */
int ddp__ref_max_pool_fwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__MAX_POOL_FWD_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__MAX_POOL_FWD_Y);
    struct axes a = pool_axes(&t->call->pool, &x, &y);
    size_t i = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < y.h; oy++)
            for (int ox = 0; ox < y.w; ox++)
                for (int c = 0; c < y.c; c++)
                    max_of(t, &x, window(&a.v, oy), window(&a.h, ox), n, c,
                           i++);
    return 0;
}

/* The sum of dy over the windows that the pixel won. */
static double sum_of_won(const struct ddp__task *t, const struct axes *a,
                         struct range r, struct range q, struct place p)
{
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__MAX_POOL_BWD_DY);
    double sum = 0;

    for (int oy = r.first; oy < r.end; oy++)
        for (int ox = q.first; ox < q.end; ox++) {
            int ky = p.y - window(&a->v, oy).start;
            int kx = p.x - window(&a->h, ox).start;
            size_t at = ddp__ref_at(&dy, p.n, oy, ox, p.c);

            if (get_index(t, at) == ky * t->call->pool.kw + kx)
                sum += ddp__ref_read(&dy, at);
        }
    return sum;
}

int ddp__ref_max_pool_bwd(const struct ddp__task *t)
{
    return gather(t, ddp__ref_buf(t, DDP__MAX_POOL_BWD_DX),
                  ddp__ref_buf(t, DDP__MAX_POOL_BWD_DY), sum_of_won);
}

/* What a mean divides by; a window without a pixel has mean 0. */
static double divisor(const struct ddp__pool *p, struct window r,
                      struct window q)
{
    if (r.begin >= r.end || q.begin >= q.end)
        return 1;
    if (p->count_pad)
        return (double)r.extent * q.extent;
    return (double)(r.end - r.begin) * (q.end - q.begin);
}

static double mean_of(const struct ddp__pool *p, const struct ddp__ref_buf *x,
                      struct window r, struct window q, int n, int c)
{
    double sum = 0;

    for (int iy = r.begin; iy < r.end; iy++)
        for (int ix = q.begin; ix < q.end; ix++)
            sum += ddp__ref_read(x, ddp__ref_at(x, n, iy, ix, c));
    return sum / divisor(p, r, q);
}

int ddp__ref_mean_pool_fwd(const struct ddp__task *t)
{
    const struct ddp__pool *p = &t->call->pool;
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__MEAN_POOL_FWD_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__MEAN_POOL_FWD_Y);
    struct axes a = pool_axes(p, &x, &y);
    size_t i = 0;

    for (int n = 0; n < t->n; n++)
        for (int oy = 0; oy < y.h; oy++)
            for (int ox = 0; ox < y.w; ox++)
                for (int c = 0; c < y.c; c++)
                    ddp__ref_write(&y, i++,
                                   mean_of(p, &x, window(&a.v, oy),
                                           window(&a.h, ox), n, c));
    return 0;
}

/* The sum of dy / divisor over the windows that the pixel is in. */
static double sum_of_shares(const struct ddp__task *t, const struct axes *a,
                            struct range r, struct range q, struct place p)
{
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__MEAN_POOL_BWD_DY);
    double sum = 0;

    for (int oy = r.first; oy < r.end; oy++)
        for (int ox = q.first; ox < q.end; ox++)
            sum +=
                ddp__ref_read(&dy, ddp__ref_at(&dy, p.n, oy, ox, p.c)) /
                divisor(&t->call->pool, window(&a->v, oy), window(&a->h, ox));
    return sum;
}

int ddp__ref_mean_pool_bwd(const struct ddp__task *t)
{
    return gather(t, ddp__ref_buf(t, DDP__MEAN_POOL_BWD_DX),
                  ddp__ref_buf(t, DDP__MEAN_POOL_BWD_DY), sum_of_shares);
}
