/* columns.h - sums over pixels, by channel
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A block has threads side by side, each with a group of channels, and rows of
 * such threads.  Each goes down its chunk of pixels, a tree adds up the rows
 * of threads, and another kernel adds up the chunks.
 */
#ifndef DDP_COLUMNS_H
#define DDP_COLUMNS_H

#include "arith.h"

/* What a thread of a block has to do. */
struct ddp__k_lane {
    size_t row, end, step;  /* absolute rows */
    unsigned segment, part; /* part: of chunks of all segments */
    int channel, count;     /* count 0: beyond the last channel */
};

DDP__DEVICE struct ddp__k_lane ddp__k_lane(const struct ddp__columns *k,
                                           unsigned block, unsigned thread)
{
    struct ddp__k_lane l;
    unsigned chunk;
    size_t begin, end;

    l.part = block / k->tiles;
    l.segment = l.part / k->chunks;
    chunk = l.part % k->chunks;
    l.channel =
        (int)((block % k->tiles * k->across + thread % k->across) * DDP__WIDTH);
    l.count =
        l.channel < k->c ? ddp__k_count((size_t)l.channel, (size_t)k->c) : 0;
    begin = chunk * k->chunk;
    end = begin + k->chunk < k->rows ? begin + k->chunk : k->rows;
    l.row = l.segment * k->rows + begin + thread / k->across;
    l.end = l.segment * k->rows + end;
    l.step = DDP__THREADS / k->across;
    if (l.count == 0)
        l.row = l.end;
    return l;
}

/* Where the value of a lane's first channel is, in its current row. */
DDP__DEVICE size_t ddp__k_lane_at(const struct ddp__columns *k,
                                  const struct ddp__k_lane *l)
{
    return l->row * (size_t)k->c + (size_t)l->channel;
}

/* Shared memory: value j of thread t in [j][t], free of bank conflicts. */
struct ddp__k_column_sums_shared {
    float sum[DDP__WIDTH][DDP__THREADS];
};

/* One thread: the sum, and y where it is wanted. */
DDP__DEVICE void ddp__k_sum_lane(const struct ddp__k_column_sums *p,
                                 struct ddp__k_lane l, enum ddp_dtype type,
                                 float sum[DDP__WIDTH])
{
    float a[DDP__WIDTH], b[DDP__WIDTH] = {0}, s[DDP__WIDTH] = {0};

    for (int j = 0; j < DDP__WIDTH; j++)
        sum[j] = 0;
    if (p->s && l.count)
        ddp__k_load(type, p->s, l.segment * (size_t)p->k.c + (size_t)l.channel,
                    l.count, p->wide, s);
    for (; l.row < l.end; l.row += l.step) {
        size_t at = ddp__k_lane_at(&p->k, &l);

        ddp__k_load(type, p->a, at, l.count, p->wide, a);
        if (p->b)
            ddp__k_load(type, p->b, at, l.count, p->wide, b);
        for (int j = 0; j < DDP__WIDTH; j++)
            sum[j] += p->b ? a[j] * b[j] : a[j];
        if (!p->s)
            continue;
        for (int j = 0; j < DDP__WIDTH; j++)
            b[j] *= s[j];
        ddp__k_store(type, p->y, at, l.count, p->wide, b);
    }
}

/* b in; 2 b in, b out with s. */
DDP__DEVICE void ddp__k_column_sums_block(const struct ddp__k_column_sums *p,
                                          struct ddp__k_column_sums_shared *sh,
                                          unsigned block, enum ddp_dtype type)
{
    DDP__EACH(t, DDP__THREADS)
    {
        float sum[DDP__WIDTH];

        ddp__k_sum_lane(p, ddp__k_lane(&p->k, block, t), type, sum);
        for (int j = 0; j < DDP__WIDTH; j++)
            sh->sum[j][t] = sum[j];
    }
    for (unsigned half = DDP__THREADS / 2; half >= p->k.across; half /= 2)
        DDP__EACH(t, half)
        {
            for (int j = 0; j < DDP__WIDTH; j++)
                sh->sum[j][t] += sh->sum[j][t + half];
        }
    DDP__EACH(t, p->k.across)
    {
        struct ddp__k_lane l = ddp__k_lane(&p->k, block, t);

        for (int j = 0; j < l.count; j++)
            p->part[l.part * (size_t)p->k.c + (size_t)(l.channel + j)] =
                sh->sum[j][t];
    }
}

/* The channel and segment of a thread; channel is c or more: none. */
struct ddp__k_spot {
    unsigned segment, first; /* first chunk */
    size_t channel;
};

DDP__DEVICE struct ddp__k_spot ddp__k_spot(const struct ddp__columns *k,
                                           unsigned block, unsigned thread)
{
    unsigned across = ((unsigned)k->c + DDP__ABREAST - 1) / DDP__ABREAST;
    struct ddp__k_spot s;

    s.segment = block / across;
    s.channel = (size_t)(block % across) * DDP__ABREAST + thread % DDP__ABREAST;
    s.first = thread / DDP__ABREAST;
    return s;
}

/* A sum that is done, over its entry of `over`. */
DDP__DEVICE double ddp__k_finished(const struct ddp__k_column_finish *p,
                                   double sum, size_t at, enum ddp_dtype type)
{
    double over = p->over ? ddp__k_get(type, p->over, at) : 1;

    return over == 0 ? 0 : sum * p->factor / over;
}

struct ddp__k_column_finish_shared {
    double sum[DDP__THREADS];
};

/* 4 bytes a channel and chunk in. */
DDP__DEVICE void
ddp__k_column_finish_block(const struct ddp__k_column_finish *p,
                           struct ddp__k_column_finish_shared *sh,
                           unsigned block, enum ddp_dtype type)
{
    size_t c = (size_t)p->k.c;

    DDP__EACH(t, DDP__THREADS)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);

        sh->sum[t] = 0;
        for (unsigned i = s.first; i < p->k.chunks && s.channel < c;
             i += DDP__DEPTH)
            sh->sum[t] +=
                p->part[((size_t)s.segment * p->k.chunks + i) * c + s.channel];
    }
    for (unsigned half = DDP__THREADS / 2; half >= DDP__ABREAST; half /= 2)
        DDP__EACH(t, half)
        {
            sh->sum[t] += sh->sum[t + half];
        }
    DDP__EACH(t, DDP__ABREAST)
    {
        struct ddp__k_spot s = ddp__k_spot(&p->k, block, t);
        size_t at = s.segment * c + s.channel;
        float v;

        if (s.channel >= c)
            continue;
        v = (float)ddp__k_finished(p, sh->sum[t], at, type);
        ddp__k_put(type, p->out, at,
                   p->add ? ddp__k_get(type, p->out, at) + v : v);
    }
}

#endif
