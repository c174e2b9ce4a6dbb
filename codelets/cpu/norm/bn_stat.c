/* bn_stat.c - statistics of batch normalisation, in one pass over x
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Sums of d = x - s and of d d, where s is the mean of a few rows, in f32 over
 * blocks of rows and f64 over blocks.
 */
#include "config.h"

#include "bn_bwd_loops.h"
#include "bn_stat.h"
#include "bn_sum_v16.h"
#include "cpu/vector/unit_v16.h"

/* s1 = sum of x - s, s2 = sum of its squares, over rows of `len` values that
 * are `width` apart. */
DDP__INLINE void sums(const void *restrict x, const float *restrict s,
                      size_t rows, size_t width, size_t len, float *restrict s1,
                      float *restrict s2, bool b)
{
    size_t r = 0;

    for (size_t i = 0; i < len; i++)
        s1[i] = s2[i] = 0;
    for (; r + 4 <= rows; r += 4) {
        const void *x0 = ddp__at(x, r * width, b), *x1 = ddp__at(x0, width, b);
        const void *x2 = ddp__at(x1, width, b), *x3 = ddp__at(x2, width, b);

        ddp__fetch(x3, width, 4 * width, b);
        for (size_t i = 0; i < len; i++) {
            float d0 = ddp__load(x0, i, b) - s[i];
            float d1 = ddp__load(x1, i, b) - s[i];
            float d2 = ddp__load(x2, i, b) - s[i];
            float d3 = ddp__load(x3, i, b) - s[i];

            s1[i] += (d0 + d1) + (d2 + d3);
            s2[i] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3);
        }
    }
    for (; r < rows; r++)
        for (size_t i = 0; i < len; i++) {
            float d = ddp__load(x, r * width + i, b) - s[i];

            s1[i] += d;
            s2[i] += d * d;
        }
}

DDP__CLONES static void sums_f32(const void *x, const float *s, size_t rows,
                                 size_t width, size_t len, float *s1, float *s2)
{
    sums(x, s, rows, width, len, s1, s2, false);
}

DDP__CLONES static void sums_bf16(const void *x, const float *s, size_t rows,
                                  size_t width, size_t len, float *s1,
                                  float *s2)
{
    sums(x, s, rows, width, len, s1, s2, true);
}

DDP__CLONES void ddp__bn_add(double *restrict sum, const float *restrict s,
                             size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum[i] += s[i];
}

/* The mean of up to 8 pixels far apart. */
static void guess_means(const void *x, size_t m, size_t c, float *s, bool b)
{
    size_t count = m < 8 ? m : 8;

    memset(s, 0, c * sizeof(*s));
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < c; i++)
            s[i] += ddp__load(x, k * m / count * c + i, b);
    for (size_t i = 0; i < c; i++)
        s[i] /= (float)count;
}

/* Add a block's sums of d, and after a row's width those of d d, to sum. */
static void add_block(const struct ddp__bn_part *k, const float *s, double *sum,
                      bool b)
{
    if (ddp__unit_v16(b)) {
        ddp__bn_sum_v16(&(struct ddp__bn_params){.mean = s}, k, sum,
                        DDP__FROM_X, b, false);
        return;
    }
    (b ? sums_bf16 : sums_f32)(k->x, s, k->rows, k->width, k->len, k->s1,
                               k->s2);
    ddp__bn_add(sum, k->s1, k->len);
    ddp__bn_add(sum + k->width, k->s2, k->len);
}

void ddp__bn_stat_sums(const void *x, const struct ddp__rows *r, float *tmp,
                       double *sum)
{
    size_t w = r->width;
    struct ddp__bn_part k = {.s1 = tmp + w, .s2 = tmp + 2 * w, .width = w};

    guess_means(x, ddp__bn_values(r), r->c, tmp, r->b);
    ddp__bn_repeat(r, tmp, w);
    memset(sum, 0, 2 * w * sizeof(*sum));
    for (size_t at = 0; at < r->rows + (r->tail > 0); at += k.rows) {
        k.rows = r->rows - at < DDP__BN_BLOCK ? r->rows - at : DDP__BN_BLOCK;
        k.len = w;
        if (k.rows == 0) { /* the last, shorter row */
            k.rows = 1;
            k.len = r->tail;
        }
        k.x = ddp__at(x, at * w, r->b);
        add_block(&k, tmp, sum, r->b);
    }
    ddp__bn_gather(r, sum);
    ddp__bn_gather(r, sum + w);
}

void ddp__bn_stat_measure(const void *x, const struct ddp__rows *r, float *tmp,
                          double *sum, float *mean, float *var)
{
    double m = (double)ddp__bn_values(r), *sum2 = sum + r->width;

    ddp__bn_stat_sums(x, r, tmp, sum);
    for (size_t i = 0; i < r->c; i++) {
        double d = sum[i] / m, v = sum2[i] / m - d * d;

        mean[i] = (float)(tmp[i] + d);
        var[i] = (float)(v > 0 || v != v ? v : 0);
    }
}
