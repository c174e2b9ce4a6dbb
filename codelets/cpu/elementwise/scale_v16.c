/* scale_v16.c - products of pixels with a factor for each channel, by AVX-512
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Results go past the caches where they are large, and sums are taken of what
 * is multiplied in the same pass.  In bf16, where units end in the next pixel,
 * sums have another order than scale.c's loops; else bits are equal, but for
 * results of bf16 below 2^-126: see store.c.
 *
 * Processor time of a step of EfficientNet-B0 in bf16, 2 x 16 images, both
 * cores of an Intel Xeon with AMX busy with more than that: both directions
 * take 83 ms by scale.c's loops, 50 ms by these.
 */
#include "config.h"

#include "cpu/norm/bn_stat.h"
#include "cpu/store.h"
#include "cpu/thread.h"
#include "cpu/vector/unit_v16.h"
#include "scale_v16.h"

enum { LANES = DDP__UNIT / 2, ROWS = 64 /* summed in f32 */ };

/* Where vectors of f32 or units of bf16 are in one pixel each, sums have the
 * bits of other loops. */
bool ddp__scale_fits(size_t c, bool b)
{
    bool same = c % (b ? DDP__UNIT : LANES) == 0;

    return c >= DDP__UNIT && ddp__unit_v16(b) && (same || (b && c % 2 == 0));
}

/* Values of a sample's channels, and spare ones, in whole lines. */
static size_t spaced(size_t c)
{
    return (c + 3 * DDP__UNIT - 1) / DDP__UNIT * DDP__UNIT;
}

size_t ddp__scale_size(size_t c)
{
    return spaced(c) * (2 * sizeof(float) + sizeof(double));
}

struct ddp__scale ddp__scale_in(void *room, size_t c, bool b)
{
    size_t w = spaced(c);
    double *sum = room;
    float *f = (float *)(sum + w);

    return (struct ddp__scale){f, f + w, sum, c, w / 2, b};
}

/* Where value i of a pixel, or of those after it, is. */
static size_t place(const struct ddp__scale *p, size_t i)
{
    return p->b ? i / 2 + i % 2 * p->second : i;
}

void ddp__scale_set(const struct ddp__scale *p, const void *s)
{
    for (size_t i = 0; i < p->c; i++)
        p->s[place(p, i)] = ddp__load(s, i, p->b);
    for (size_t i = 0; i < DDP__UNIT; i++)
        p->s[place(p, p->c + i)] = p->s[place(p, i)];
}

#ifdef DDP__X86

/* Where the second vector of a unit has its factors: the channels of f32 may
 * begin again there. */
DDP__UNIT_INLINE size_t second_of(const struct ddp__scale *p, size_t at, bool b)
{
    size_t next = at + LANES;

    return b ? at / 2 + p->second : next < p->c ? next : next - p->c;
}

/* Constants of the loops. */
enum kind { SCALE, SCALE_AND_SUM, SUM };

/* A unit from i on, whose channels begin at `at`. */
DDP__UNIT_INLINE void scale_unit(const struct ddp__scale *p,
                                 const struct ddp__scale_line *l, size_t i,
                                 size_t at, enum kind kind, struct ddp__unit k)
{
    size_t of[2] = {k.b ? at / 2 : at, second_of(p, at, k.b)};
    v16 v[2], x[2];

    ddp__unit_load(v, l->from, i, k);
    if (kind != SCALE)
        ddp__unit_load(x, l->x, i, k);
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        float *sum = p->kept + of[j];

        if (kind != SCALE)
            _mm512_storeu_ps(sum,
                             _mm512_fmadd_ps(x[j], v[j], _mm512_loadu_ps(sum)));
        v[j] = _mm512_mul_ps(v[j], _mm512_loadu_ps(p->s + of[j]));
    }
    if (kind != SUM)
        ddp__unit_put(l->to, i, v, k, false);
}

/* `kind`, `b` and `stream` are constants. */
DDP__UNIT_INLINE void scale_values(const struct ddp__scale *p,
                                   const struct ddp__scale_line *l,
                                   enum kind kind, bool b, bool stream)
{
    size_t len = l->rows * p->c, i = 0, at = 0;

    for (; i + DDP__UNIT <= len; i += DDP__UNIT) {
        scale_unit(p, l, i, at, kind, (struct ddp__unit){b, true, stream, 0});
        at += DDP__UNIT;
        at = at < p->c ? at : at - p->c;
    }
    if (i < len)
        scale_unit(p, l, i, at, kind,
                   (struct ddp__unit){b, false, false,
                                      ((__mmask32)1 << (len - i)) - 1});
}

#define X(name, kind, b)                                                       \
    DDP__UNIT_TARGET static void name(const struct ddp__scale *p,              \
                                      const struct ddp__scale_line *l)         \
    {                                                                          \
        if (l->stream && (uintptr_t)l->to % 64 == 0)                           \
            scale_values(p, l, kind, b, true);                                 \
        else                                                                   \
            scale_values(p, l, kind, b, false);                                \
    }
X(scale_f32, SCALE, false)
X(scale_bf16, SCALE, true)
X(scale_and_sum_f32, SCALE_AND_SUM, false)
X(scale_and_sum_bf16, SCALE_AND_SUM, true)
X(sum_f32, SUM, false)
X(sum_bf16, SUM, true)
#undef X

void ddp__scale_rows(const struct ddp__scale *p,
                     const struct ddp__scale_line *l)
{
    (p->b ? scale_bf16 : scale_f32)(p, l);
    ddp__store_end();
}

/* Sums of some rows, which begin in a period. */
static void add_rows(const struct ddp__scale *p,
                     const struct ddp__scale_line *l, size_t first, size_t rows)
{
    size_t at = first * p->c;
    struct ddp__scale_line part = {
        ddp__at(l->from, at, p->b), ddp__at(l->x, at, p->b),
        l->to ? ddp__to(l->to, at, p->b) : NULL, rows, l->stream};

    memset(p->kept, 0, spaced(p->c) * sizeof(*p->kept));
    if (l->to)
        (p->b ? scale_and_sum_bf16 : scale_and_sum_f32)(p, &part);
    else
        (p->b ? sum_bf16 : sum_f32)(p, &part);
    for (size_t i = 0; p->b && i < DDP__UNIT; i++)
        p->kept[place(p, i)] += p->kept[place(p, p->c + i)];
    ddp__bn_add(p->sum, p->kept, spaced(p->c));
}

void ddp__scale_and_sum(const struct ddp__scale *p,
                        const struct ddp__scale_line *l, double *total)
{
    memset(p->sum, 0, spaced(p->c) * sizeof(*p->sum));
    for (size_t r = 0; r < l->rows; r += ROWS)
        add_rows(p, l, r, l->rows - r < ROWS ? l->rows - r : ROWS);
    for (size_t i = 0; i < p->c; i++)
        total[i] = p->sum[place(p, i)];
    ddp__store_end();
}

#endif
