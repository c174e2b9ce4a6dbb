/* elementwise.h - kernels that look at each value once
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Each says how many bytes it moves; b is the size of an activation.
 */
#ifndef DDP_ELEMENTWISE_H
#define DDP_ELEMENTWISE_H

#include "arith.h"
#include "base/philox.h"

/* The pixel of x that goes to this one of y. */
DDP__DEVICE size_t ddp__k_input_pixel(const struct ddp__k_input *p,
                                      size_t pixel)
{
    size_t w = (size_t)p->flip;

    return w ? pixel + w - 1 - 2 * (pixel % w) : pixel;
}

/* 1 or 4 bytes a value in, b out. */
DDP__DEVICE void ddp__k_input_item(const struct ddp__k_input *p, size_t item,
                                   enum ddp_dtype type)
{
    size_t at = item * DDP__WIDTH, pixel = at / (size_t)p->cy;
    int channel = (int)(at % (size_t)p->cy), count = ddp__k_count(at, p->len);
    size_t px = ddp__k_input_pixel(p, pixel);
    float v[DDP__WIDTH];

    for (int j = 0; j < DDP__WIDTH; j++) {
        size_t from = px * (size_t)p->c + (size_t)channel;
        int last = channel < 3 ? channel : 3;

        v[j] = 0;
        if (j < count && channel < p->c) {
            v[j] = p->bytes ? (float)((const uint8_t *)p->x)[from]
                            : ((const float *)p->x)[from];
            v[j] = (v[j] - p->mean[last]) * p->factor[last];
        }
        if (++channel == p->cy) {
            channel = 0;
            px = ddp__k_input_pixel(p, ++pixel);
        }
    }
    ddp__k_store(type, p->y, at, count, p->wide && count == DDP__WIDTH, v);
}

/* b in, b out. */
DDP__DEVICE void ddp__k_act_fwd_item(const struct ddp__k_flat *p, size_t item,
                                     enum ddp_dtype type)
{
    size_t at = item * DDP__WIDTH;
    int count = ddp__k_count(at, p->len);
    bool wide = p->wide && count == DDP__WIDTH;
    float v[DDP__WIDTH];

    ddp__k_load(type, p->a, at, count, wide, v);
    ddp__k_act_all(p->act, v);
    ddp__k_store(type, p->y, at, count, wide, v);
}

/* 2 b in, b out. */
DDP__DEVICE void ddp__k_act_bwd_item(const struct ddp__k_flat *p, size_t item,
                                     enum ddp_dtype type)
{
    size_t at = item * DDP__WIDTH;
    int count = ddp__k_count(at, p->len);
    bool wide = p->wide && count == DDP__WIDTH;
    float s[DDP__WIDTH], d[DDP__WIDTH];

    ddp__k_load(type, p->a, at, count, wide, s);
    ddp__k_load(type, p->b, at, count, wide, d);
    ddp__k_slope_all(p->act, s, d);
    ddp__k_store(type, p->y, at, count, wide, d);
}

/* 2 b in, b out. */
DDP__DEVICE void ddp__k_add_item(const struct ddp__k_flat *p, size_t item,
                                 enum ddp_dtype type)
{
    size_t at = item * DDP__WIDTH;
    int count = ddp__k_count(at, p->len);
    bool wide = p->wide && count == DDP__WIDTH;
    float a[DDP__WIDTH], b[DDP__WIDTH];

    ddp__k_load(type, p->a, at, count, wide, a);
    ddp__k_load(type, p->b, at, count, wide, b);
    for (int j = 0; j < DDP__WIDTH; j++)
        a[j] += b[j];
    ddp__k_act_all(p->act, a);
    ddp__k_store(type, p->y, at, count, wide, a);
}

/* Items of rows that are cut into groups of DDP__WIDTH values: the row, the
 * first value in it, and how many there are. */
struct ddp__k_place {
    size_t row;
    int at, count;
};

DDP__DEVICE struct ddp__k_place ddp__k_place(size_t item, int c)
{
    unsigned groups = ((unsigned)c + DDP__WIDTH - 1) / DDP__WIDTH;
    unsigned i = (unsigned)item; /* there are less than 2^32 */
    struct ddp__k_place k;

    k.row = i / groups;
    k.at = (int)(i % groups) * DDP__WIDTH;
    k.count = ddp__k_count((size_t)k.at, (size_t)c);
    return k;
}

/* b in, 4 out, and 4 in when adding. */
DDP__DEVICE void ddp__k_accumulate_item(const struct ddp__k_accumulate *p,
                                        size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->c);
    size_t from = k.row * (size_t)p->cx + (size_t)k.at;
    size_t to = k.row * (size_t)p->c + (size_t)k.at;
    float x[DDP__WIDTH], g[DDP__WIDTH];

    ddp__k_load(type, p->x, from, k.count, p->wide, x);
    if (p->add) {
        ddp__k_load(DDP_F32, p->g, to, k.count, p->wide, g);
        for (int j = 0; j < DDP__WIDTH; j++)
            x[j] += g[j];
    }
    ddp__k_store(DDP_F32, p->g, to, k.count, p->wide, x);
}

/* b in, b out, and b in when adding. */
DDP__DEVICE void ddp__k_copy_channels_item(const struct ddp__k_copy *p,
                                           size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->small);
    size_t small = k.row * (size_t)p->small + (size_t)k.at;
    size_t large = k.row * (size_t)p->large + (size_t)(p->at + k.at);
    size_t to = p->to_large ? large : small;
    float v[DDP__WIDTH], sum[DDP__WIDTH];

    ddp__k_load(type, p->from, p->to_large ? small : large, k.count, p->wide,
                v);
    if (p->add) {
        ddp__k_load(type, p->to, to, k.count, p->wide, sum);
        for (int j = 0; j < DDP__WIDTH; j++)
            v[j] += sum[j];
    }
    ddp__k_store(type, p->to, to, k.count, p->wide, v);
}

/* b in, b out; s fits into the cache. */
DDP__DEVICE void ddp__k_scale_fwd_item(const struct ddp__k_scale *p,
                                       size_t item, enum ddp_dtype type)
{
    struct ddp__k_place k = ddp__k_place(item, p->c);
    size_t at = k.row * (size_t)p->c + (size_t)k.at;
    size_t sample = (unsigned)k.row / p->pixels;
    float x[DDP__WIDTH], s[DDP__WIDTH];

    ddp__k_load(type, p->x, at, k.count, p->wide, x);
    ddp__k_load(type, p->s, sample * (size_t)p->c + (size_t)k.at, k.count,
                p->wide, s);
    for (int j = 0; j < DDP__WIDTH; j++)
        x[j] *= s[j];
    ddp__k_store(type, p->y, at, k.count, p->wide, x);
}

DDP__DEVICE int64_t ddp__k_sample_id(const struct ddp__k_dropout *p, size_t n)
{
    return p->narrow_ids ? ((const int32_t *)p->ids)[n]
                         : ((const int64_t *)p->ids)[n];
}

/* b in, b out.  An item is two groups of four values of a sample, as the masks
 * are defined.  A dropped NaN is 0 too. */
DDP__DEVICE void ddp__k_dropout_item(const struct ddp__k_dropout *p,
                                     size_t item, enum ddp_dtype type)
{
    unsigned groups = (unsigned)((p->len + DDP__WIDTH - 1) / DDP__WIDTH);
    size_t n = (unsigned)item / groups;
    size_t first = (size_t)((unsigned)item % groups) * DDP__WIDTH;
    size_t at = n * p->len + first;
    int count = ddp__k_count(first, p->len);
    int64_t id = ddp__k_sample_id(p, n);
    float v[DDP__WIDTH];

    ddp__k_load(type, p->x, at, count, p->wide, v);
    for (int half = 0; half < 2; half++) {
        struct ddp__philox r = ddp__dropout_bits(
            p->seed, p->layer, id, p->whole ? 0 : first / 4 + (size_t)half);

        for (int j = 0; j < 4; j++) {
            bool drop = ddp__uniform(r.v[p->whole ? 0 : j]) < p->p;
            float *x = &v[4 * half + j];

            *x = drop ? 0 : *x * p->factor;
        }
    }
    ddp__k_store(type, p->y, at, count, p->wide, v);
}

#endif
