/* pooling.h - maximum and mean over windows
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An item is a group of channels of a pixel: of y going forward, of dx going
 * backward, where it adds up what the windows over it have for it.
 */
#ifndef DDP_POOLING_H
#define DDP_POOLING_H

#include "elementwise.h"

/* Pixels begin .. end - 1 of the image are in a window that starts at start
 * and, with the padding, has `extent` pixels. */
struct ddp__k_window {
    int start, begin, end, extent;
};

DDP__DEVICE struct ddp__k_window ddp__k_window(const struct ddp__k_axis *a,
                                               int o)
{
    struct ddp__k_window w;
    int end, edge = a->in + a->after;

    if (a->adaptive) {
        w.begin = w.start = (int)((int64_t)o * a->in / a->out);
        w.end = (int)((((int64_t)o + 1) * a->in + a->out - 1) / a->out);
        w.extent = w.end - w.begin;
        return w;
    }
    w.start = o * a->stride - a->before;
    end = w.start + a->size;
    w.begin = w.start > 0 ? w.start : 0;
    w.end = end < a->in ? end : a->in;
    w.extent = (end < edge ? end : edge) - w.start;
    return w;
}

/* The outputs first .. end - 1, whose windows pixel i is in. */
struct ddp__k_range {
    int first, end;
};

DDP__DEVICE struct ddp__k_range ddp__k_cover(const struct ddp__k_axis *a, int i)
{
    int at = i + a->before, from = at - a->size;
    struct ddp__k_range r;

    if (a->adaptive) {
        r.first = (int)((int64_t)i * a->out / a->in);
        r.end = (int)((((int64_t)i + 1) * a->out + a->in - 1) / a->in);
        return r;
    }
    r.first = from < 0 ? 0 : from / a->stride + 1;
    r.end = at / a->stride + 1;
    if (r.end > a->out)
        r.end = a->out;
    return r;
}

/* A pixel of an image of so many rows and columns. */
struct ddp__k_pixel {
    size_t n;
    int y, x;
};

DDP__DEVICE struct ddp__k_pixel ddp__k_pixel(size_t pixel, int rows, int cols)
{
    unsigned i = (unsigned)pixel; /* there are less than 2^32 */
    struct ddp__k_pixel p;

    p.x = (int)(i % (unsigned)cols);
    i /= (unsigned)cols;
    p.y = (int)(i % (unsigned)rows);
    p.n = i / (unsigned)rows;
    return p;
}

/* Where channel c of a pixel of x (in) or y is. */
DDP__DEVICE size_t ddp__k_in_at(const struct ddp__k_pool *p, size_t n, int y,
                                int x, int c)
{
    return ((n * (size_t)p->v.in + (size_t)y) * (size_t)p->h.in + (size_t)x) *
               (size_t)p->c +
           (size_t)c;
}

DDP__DEVICE size_t ddp__k_out_at(const struct ddp__k_pool *p, size_t n, int y,
                                 int x, int c)
{
    return ((n * (size_t)p->v.out + (size_t)y) * (size_t)p->h.out + (size_t)x) *
               (size_t)p->c +
           (size_t)c;
}

DDP__DEVICE void ddp__k_store_index(const struct ddp__k_pool *p, size_t at,
                                    int count, const int v[DDP__WIDTH])
{
    if (!p->narrow_index) {
        for (int j = 0; j < DDP__WIDTH; j++)
            if (j < count)
                ((int32_t *)p->index)[at + (size_t)j] = v[j];
        return;
    }
#ifdef __CUDACC__
    if (p->wide) {
        unsigned low = 0, high = 0;

        for (int j = 0; j < 4; j++) {
            low |= (unsigned)v[j] << 8 * j;
            high |= (unsigned)v[j + 4] << 8 * j;
        }
        *(uint2 *)((uint8_t *)p->index + at) = make_uint2(low, high);
        return;
    }
#endif
    for (int j = 0; j < DDP__WIDTH; j++)
        if (j < count)
            ((uint8_t *)p->index)[at + (size_t)j] = (uint8_t)v[j];
}

DDP__DEVICE void ddp__k_load_index(const struct ddp__k_pool *p, size_t at,
                                   int count, int v[DDP__WIDTH])
{
    if (!p->narrow_index) {
        for (int j = 0; j < DDP__WIDTH; j++)
            v[j] = j < count ? ((const int32_t *)p->index)[at + (size_t)j] : 0;
        return;
    }
#ifdef __CUDACC__
    if (p->wide) {
        uint2 u = *(const uint2 *)((const uint8_t *)p->index + at);

        for (int j = 0; j < 4; j++) {
            v[j] = (int)(u.x >> 8 * j & 255);
            v[j + 4] = (int)(u.y >> 8 * j & 255);
        }
        return;
    }
#endif
    for (int j = 0; j < DDP__WIDTH; j++)
        v[j] = j < count ? ((const uint8_t *)p->index)[at + (size_t)j] : 0;
}

/* The first maximum of a window wins, a NaN over everything.  x is read about
 * once from memory, and from the cache for windows that overlap: b in, b / s
 * and the index out, where s is the number of pixels of x per pixel of y. */
DDP__DEVICE void ddp__k_max_pool_fwd_item(const struct ddp__k_pool *p,
                                          size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->c);
    struct ddp__k_pixel o = ddp__k_pixel(k.row, p->v.out, p->h.out);
    struct ddp__k_window r = ddp__k_window(&p->v, o.y);
    struct ddp__k_window q = ddp__k_window(&p->h, o.x);
    size_t to = ddp__k_out_at(p, o.n, o.y, o.x, k.at);
    float best[DDP__WIDTH], v[DDP__WIDTH];
    int index[DDP__WIDTH];

    for (int j = 0; j < DDP__WIDTH; j++) {
        best[j] = -INFINITY;
        index[j] = -1;
    }
    for (int y = r.begin; y < r.end; y++)
        for (int x = q.begin; x < q.end; x++) {
            int position = (y - r.start) * p->h.size + x - q.start;

            ddp__k_load(type, p->x, ddp__k_in_at(p, o.n, y, x, k.at), k.count,
                        p->wide, v);
            for (int j = 0; j < DDP__WIDTH; j++) {
                bool lost = v[j] <= best[j] || best[j] != best[j];

                if (index[j] >= 0 && lost)
                    continue;
                best[j] = v[j];
                index[j] = position;
            }
        }
    for (int j = 0; j < DDP__WIDTH; j++)
        index[j] = index[j] > 0 ? index[j] : 0;
    ddp__k_store(type, p->y, to, k.count, p->wide, best);
    ddp__k_store_index(p, to, k.count, index);
}

/* b / s and the index in, b out. */
DDP__DEVICE void ddp__k_max_pool_bwd_item(const struct ddp__k_pool *p,
                                          size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->c);
    struct ddp__k_pixel i = ddp__k_pixel(k.row, p->v.in, p->h.in);
    struct ddp__k_range r = ddp__k_cover(&p->v, i.y);
    struct ddp__k_range q = ddp__k_cover(&p->h, i.x);
    float sum[DDP__WIDTH] = {0}, d[DDP__WIDTH];
    int index[DDP__WIDTH];

    for (int y = r.first; y < r.end; y++)
        for (int x = q.first; x < q.end; x++) {
            size_t at = ddp__k_out_at(p, i.n, y, x, k.at);
            int ky = i.y - ddp__k_window(&p->v, y).start;
            int kx = i.x - ddp__k_window(&p->h, x).start;
            int position = ky * p->h.size + kx;

            ddp__k_load(type, p->x, at, k.count, p->wide, d);
            ddp__k_load_index(p, at, k.count, index);
            for (int j = 0; j < DDP__WIDTH; j++)
                sum[j] += index[j] == position ? d[j] : 0;
        }
    ddp__k_store(type, p->y, ddp__k_in_at(p, i.n, i.y, i.x, k.at), k.count,
                 p->wide, sum);
}

/* What a mean multiplies by; a window without a pixel has mean 0. */
DDP__DEVICE float ddp__k_mean_factor(const struct ddp__k_pool *p,
                                     const struct ddp__k_window *r,
                                     const struct ddp__k_window *q)
{
    if (r->begin >= r->end || q->begin >= q->end)
        return 1;
    if (p->count_pad)
        return 1 / ((float)r->extent * (float)q->extent);
    return 1 / ((float)(r->end - r->begin) * (float)(q->end - q->begin));
}

/* b in, b / s out. */
DDP__DEVICE void ddp__k_mean_pool_fwd_item(const struct ddp__k_pool *p,
                                           size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->c);
    struct ddp__k_pixel o = ddp__k_pixel(k.row, p->v.out, p->h.out);
    struct ddp__k_window r = ddp__k_window(&p->v, o.y);
    struct ddp__k_window q = ddp__k_window(&p->h, o.x);
    float sum[DDP__WIDTH] = {0}, v[DDP__WIDTH];
    float factor = ddp__k_mean_factor(p, &r, &q);

    for (int y = r.begin; y < r.end; y++)
        for (int x = q.begin; x < q.end; x++) {
            ddp__k_load(type, p->x, ddp__k_in_at(p, o.n, y, x, k.at), k.count,
                        p->wide, v);
            for (int j = 0; j < DDP__WIDTH; j++)
                sum[j] += v[j];
        }
    for (int j = 0; j < DDP__WIDTH; j++)
        sum[j] *= factor;
    ddp__k_store(type, p->y, ddp__k_out_at(p, o.n, o.y, o.x, k.at), k.count,
                 p->wide, sum);
}

/* b / s in, b out. */
DDP__DEVICE void ddp__k_mean_pool_bwd_item(const struct ddp__k_pool *p,
                                           size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->c);
    struct ddp__k_pixel i = ddp__k_pixel(k.row, p->v.in, p->h.in);
    struct ddp__k_range r = ddp__k_cover(&p->v, i.y);
    struct ddp__k_range q = ddp__k_cover(&p->h, i.x);
    float sum[DDP__WIDTH] = {0}, d[DDP__WIDTH];

    for (int y = r.first; y < r.end; y++)
        for (int x = q.first; x < q.end; x++) {
            struct ddp__k_window v = ddp__k_window(&p->v, y);
            struct ddp__k_window h = ddp__k_window(&p->h, x);
            float factor = ddp__k_mean_factor(p, &v, &h);

            ddp__k_load(type, p->x, ddp__k_out_at(p, i.n, y, x, k.at), k.count,
                        p->wide, d);
            for (int j = 0; j < DDP__WIDTH; j++)
                sum[j] += factor * d[j];
        }
    ddp__k_store(type, p->y, ddp__k_in_at(p, i.n, i.y, i.x, k.at), k.count,
                 p->wide, sum);
}

#endif
