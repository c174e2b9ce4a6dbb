/* skinny_blocks.c - data gradients of products with few rows, for AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Vectors of dx remain in registers while a block of weights is multiplied, and
 * the block after it is fetched.  One core of an Intel Xeon with AMX under
 * load, 4096 to 4096, milliseconds in the way of skinny_loops.h, which adds
 * rows of weights in the order of memory, and in this one:
 *
 *     1 sample      4.3    5.4
 *     2 samples     4.6    5.6
 *     4 samples     6.6    5.5
 *     8 samples     8.1    6.2
 *     16 samples   11.7    7.7
 *
 * With AVX2, which has half of the registers, 12 samples take 11.8 and 17.3.
 */
#include "config.h"

#include <string.h>

#include "cpu/vector/v16.h"
#include "skinny_blocks.h"

#ifdef DDP__X86

enum {
    LANES = 16,
    DEPTH = 32,           /* rows of weights in a block */
    SEGMENT = 32 * LANES, /* columns of it: it is in the first-level cache */
    SUMS = 16,            /* vectors in registers, */
    WIDE = 4              /* of which so many are next to each other */
};

typedef float parts __attribute__((vector_size(LANES * sizeof(float))));

/* Sums of `len` columns of n rows of dx, a vector of each row after the other,
 * and what is added to them: dy[depth][n] w[depth][len]. */
struct block {
    size_t n, len, depth, in;
    const float *w, *dy;
    const float *next; /* weights that are needed after these, or NULL */
    float *sums;
};

/* Fetch the r-th vectors of `wide` rows of weights: while as many strips of
 * columns pass, whole rows come in the order of memory. */
DDP__V16_INLINE void fetch(const struct block *b, size_t at, size_t r,
                           size_t wide)
{
#pragma GCC unroll 4
    for (size_t v = 0; v < wide; v++)
        __builtin_prefetch(b->next + (at + v) * b->in + r * LANES, 0, 2);
}

/* The products of `rows` rows of dy, from the i-th on, and `wide` vectors of
 * columns, from the at-th on; rows and wide are constants. */
DDP__V16_INLINE void add_strip(const struct block *b, size_t i, size_t at,
                               size_t rows, size_t wide)
{
    parts sum[SUMS], w[WIDE], old;
    float *to = b->sums + (at * b->n + i) * LANES;

#pragma GCC unroll 16
    for (size_t k = 0; k < rows * wide; k++)
        sum[k] = (parts){0};
    for (size_t r = 0; r < b->depth; r++) {
        const float *dy = b->dy + r * b->n + i;

        memcpy(w, b->w + r * b->in + at * LANES, wide * sizeof(*w));
        if (b->next)
            fetch(b, at, r, wide);
#pragma GCC unroll 16
        for (size_t k = 0; k < rows; k++)
#pragma GCC unroll 4
            for (size_t v = 0; v < wide; v++)
                sum[k * wide + v] += dy[k] * w[v];
    }
#pragma GCC unroll 16
    for (size_t k = 0; k < rows; k++)
#pragma GCC unroll 4
        for (size_t v = 0; v < wide; v++) {
            memcpy(&old, to + (v * b->n + k) * LANES, sizeof(old));
            old += sum[k * wide + v];
            memcpy(to + (v * b->n + k) * LANES, &old, sizeof(old));
        }
}

DDP__V16_INLINE void add_strips(const struct block *b, size_t i, size_t rows,
                                size_t wide)
{
    size_t at = 0, end = b->len / LANES;

    for (; at + wide <= end; at += wide)
        add_strip(b, i, at, rows, wide);
    for (; at < end; at++)
        add_strip(b, i, at, rows, 1);
}

/* What follows is fetched once, by the first rows. */
DDP__V16 static void add_block(struct block *b)
{
    size_t i = 0;

    for (; i + SUMS <= b->n; i += SUMS, b->next = NULL)
        add_strips(b, i, SUMS, 1);
    for (; i + SUMS / 2 <= b->n; i += SUMS / 2, b->next = NULL)
        add_strips(b, i, SUMS / 2, 2);
    for (; i + SUMS / 4 <= b->n; i += SUMS / 4, b->next = NULL)
        add_strips(b, i, SUMS / 4, WIDE);
    for (; i < b->n; i++, b->next = NULL)
        add_strips(b, i, 1, WIDE);
}

/* The values of dy for some rows of weights, those of a row together. */
static void turn(const struct ddp__skinny_product *p,
                 const struct ddp__skinny_tap *t, const float *dy, size_t depth,
                 float *to)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t r = 0; r < depth; r++)
            to[r * t->n + i] = dy[t->row[i] * p->out + r];
}

DDP__V16 static void put_sums(const struct ddp__skinny_tap *t,
                              const struct block *b, float *dx)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t at = 0; at < b->len; at += LANES)
            for (size_t k = 0; k < LANES; k++)
                dx[t->at[i] + at + k] += b->sums[at * t->n + i * LANES + k];
}

/* So many columns of dx, of whole vectors. */
static void add_segment(const struct ddp__skinny_product *p,
                        const struct ddp__skinny_tap *t, const float *w,
                        const float *dy, size_t len, float *dx)
{
    float sums[DDP__SKINNY_CACHED], part[DEPTH * DDP__SKINNY_MOST];
    struct block b = {
        .n = t->n, .len = len, .in = p->in, .dy = part, .sums = sums};

    memset(sums, 0, t->n * len * sizeof(*sums));
    for (size_t o = 0; o < p->out; o += DEPTH) {
        bool more = len == SEGMENT && o + 2 * DEPTH <= p->out;

        b.depth = p->out - o < DEPTH ? p->out - o : DEPTH;
        b.w = w + o * p->in;
        b.next = more ? b.w + DEPTH * p->in : NULL;
        turn(p, t, dy + o, b.depth, part);
        add_block(&b);
    }
    put_sums(t, &b, dx);
}

/* Columns that fill no vector. */
DDP__V16 static void add_rest(const struct ddp__skinny_product *p,
                              const struct ddp__skinny_tap *t, const float *w,
                              const float *dy, size_t len, float *dx)
{
    for (size_t o = 0; o < p->out; o++)
        for (size_t i = 0; i < t->n; i++)
            for (size_t k = 0; k < len; k++)
                dx[t->at[i] + k] +=
                    dy[t->row[i] * p->out + o] * w[o * p->in + k];
}

void ddp__skinny_blocks(const struct ddp__skinny_product *p,
                        const struct ddp__skinny_tap *t, const float *w,
                        const float *dy, size_t len, float *dx)
{
    size_t whole = len - len % LANES, part;

    for (size_t at = 0; at < whole; at += part) {
        part = whole - at < SEGMENT ? whole - at : SEGMENT;
        add_segment(p, t, w + at, dy, part, dx + at);
    }
    if (whole < len)
        add_rest(p, t, w + whole, dy, len - whole, dx + whole);
}

#endif
