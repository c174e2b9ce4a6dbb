/* pool.h - windows of pooling layers, for both directions
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_POOL_H
#define DDP_POOL_H

#include "cpu/cpu.h"

/* Channels at a time: so few that a loop over a window has them in registers,
 * or so many that what a window costs once is little. */
enum { DDP__POOL_FEW = 64, DDP__POOL_BLOCK = 256 };

/* f(..., c, len) for blocks of channels c .. c + len - 1, and for the rest;
 * the first len is a constant, without which a compiler keeps blocks in memory.
 */
#define DDP__POOL_BLOCKS(block, channels, f, ...)                              \
    do {                                                                       \
        size_t c = 0;                                                          \
                                                                               \
        for (; c + (block) <= (channels); c += (block))                        \
            f(__VA_ARGS__, c, block);                                          \
        if (c < (channels))                                                    \
            f(__VA_ARGS__, c, (channels)-c);                                   \
    } while (0)

/* memset() of a block would keep it in memory, too. */
#if defined(__GNUC__) && !defined(__clang__)
#define DDP__POOL_REGISTERS                                                    \
    _Pragma("GCC optimize(\"no-tree-loop-distribute-patterns\")")
#else
#define DDP__POOL_REGISTERS
#endif

/* Pixels begin .. end - 1 of the image are in a window that starts at start
 * and, with the padding, has `extent` pixels. */
struct ddp__window {
    int start, begin, end, extent;
};

struct ddp__axis {
    int in, out, size, stride, before, after;
    bool adaptive;
};

struct ddp__pooling {
    struct ddp__axis v, h;
    size_t c;
    bool b;
};

static inline struct ddp__pooling ddp__pool_geometry(const struct ddp__task *t,
                                                     int x, int y)
{
    const struct ddp__pool *p = &t->call->pool;
    struct ddp_shape i = t->call->buf[x].shape, o = t->call->buf[y].shape;

    return (struct ddp__pooling){
        .v = {i.h, o.h, p->kh, p->sh, p->top, p->bottom, p->adaptive},
        .h = {i.w, o.w, p->kw, p->sw, p->left, p->right, p->adaptive},
        .c = (size_t)i.c,
        .b = ddp__is_bf16(t, x),
    };
}

static inline struct ddp__window ddp__pool_window(const struct ddp__axis *a,
                                                  int o)
{
    struct ddp__window w;
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

static inline size_t ddp__pool_pixel(const struct ddp__axis *v,
                                     const struct ddp__axis *h, int n, int y,
                                     int x, bool out)
{
    size_t rows = (size_t)(out ? v->out : v->in);
    size_t cols = (size_t)(out ? h->out : h->in);

    return ((size_t)n * rows + (size_t)y) * cols + (size_t)x;
}

/* What a mean multiplies by; a window without a pixel has mean 0. */
static inline float ddp__pool_factor(const struct ddp__pool *p,
                                     struct ddp__window r, struct ddp__window q)
{
    if (r.begin >= r.end || q.begin >= q.end)
        return 1;
    if (p->count_pad)
        return 1 / ((float)r.extent * (float)q.extent);
    return 1 / ((float)(r.end - r.begin) * (float)(q.end - q.begin));
}

/* The windows of an axis, and for each pixel the first output over it. */
struct ddp__windows {
    struct ddp__window *of; /* [out] */
    int *first;             /* [in] */
};

/* What the windows over a pixel have for it; index NULL: mean. */
struct ddp__gather {
    const struct ddp__pooling *g;
    const void *dy, *index;
    bool wide; /* index is i32 */
    struct ddp__windows v, h;
    float *factor; /* of a mean: [v.out][h.out] */
};

#endif
