/* test_bn_silu.c - norms with SiLU of bf16, by AVX-512, against f64
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A result is off by at most what rounding to bf16 loses, 2^-8 of it, and what
 * the sigmoid is off by, 1e-4; sums, which are not rounded, by that of their
 * terms' sizes.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "cpu/norm/bn_silu_sum_v16.h"
#include "cpu/norm/bn_silu_v16.h"
#include "random.h"
#include "ref/act.h"
#include "tap.h"

static const double SIGMOID = 1e-4, ROUNDING = 0x1p-8;

enum { GUARD = 64 }; /* values after results, which nobody may write */

/* Lengths that fill no unit, periods that fill none, one of few values, one of
 * several blocks.  With a gate for so many channels and samples, or without. */
static const struct row {
    size_t len, period;
    bool stream;
    size_t c, samples;
} rows[] = {
    {64 * 144 * 3 + 144 * 5, 144, false, 0, 0},
    {41 * 34, 34, false, 0, 0},
    {96 * 131, 96, true, 0, 0},
    {5 * 1152, 1152, false, 0, 0},
    {32, 32, false, 0, 0},
    {64 * 40 + 16, 40, true, 0, 0},
    {3 * 67 * 144, 144, false, 144, 3},
    {4 * 7 * 34, 34, true, 34, 4}, /* of which no second one begins a line */
    {2 * 64 * 96, 96, true, 96, 2},
    {3 * 6 * 20, 60, false, 20, 3}, /* several pixels in a period */
    {2 * 5 * 1152, 1152, false, 1152, 2},
};

struct norm {
    struct row r;
    struct ddp__bn_silu p;
    struct ddp__bn_line l;
    float *mean, *a, *shift, *k1, *k2;
    uint16_t *x, *dy, *to, *s, *dm;
    struct ddp__bn_gate gate;
};

/* ---- numbers ------------------------------------------------------------ */

/* Some are far from 0. */
static uint16_t *new_values(size_t count)
{
    uint16_t *p = new_array(count + GUARD, sizeof(*p));

    for (size_t i = 0; i < count + GUARD; i++)
        p[i] = ddp__to_bf16(random_float() * (i % 97 == 5 ? 120 : 4));
    return p;
}

static float *new_parameters(size_t period, float least)
{
    float *p = new_array(period + DDP__BN_SPARE, sizeof(*p));

    for (size_t i = 0; i < period + DDP__BN_SPARE; i++)
        p[i] = i < period ? least + random_float() : p[i - period];
    return p;
}

/* ---- norms -------------------------------------------------------------- */

static void norm_new(struct norm *n, const struct row *r)
{
    *n = (struct norm){.r = *r,
                       .x = new_values(r->len),
                       .dy = new_values(r->len),
                       .to = new_values(r->len),
                       .s = new_values(r->c * r->samples),
                       .dm = new_values(r->c * r->samples),
                       .mean = new_parameters(r->period, 0),
                       .a = new_parameters(r->period, 1.5f),
                       .shift = new_parameters(r->period, 0),
                       .k1 = new_parameters(r->period, 0),
                       .k2 = new_parameters(r->period, 0)};
    n->p =
        ddp__bn_silu_in(new_array(ddp__bn_silu_size(r->period), 1), r->period);
    ddp__bn_silu_set(&n->p, n->p.mean, n->mean);
    ddp__bn_silu_set(&n->p, n->p.a, n->a);
    ddp__bn_silu_set(&n->p, n->p.shift, n->shift);
    ddp__bn_silu_center(&n->p);
    ddp__bn_silu_set(&n->p, n->p.k1, n->k1);
    ddp__bn_silu_set(&n->p, n->p.k2, n->k2);
    ddp__bn_silu_scale(&n->p);
    n->gate =
        (struct ddp__bn_gate){.s = n->s,
                              .dm = n->dm,
                              .samples = r->samples,
                              .pixels = r->c ? r->len / r->c / r->samples : 0,
                              .c = r->c,
                              .b = true};
    n->l = (struct ddp__bn_line){.x = n->x,
                                 .dy = n->dy,
                                 .to = n->to,
                                 .len = r->len,
                                 .period = r->period,
                                 .b = true,
                                 .stream = r->stream};
}

static void norm_free(struct norm *n)
{
    free(n->p.sum);
    free(n->x);
    free(n->dy);
    free(n->to);
    free(n->s);
    free(n->dm);
    free(n->mean);
    free(n->a);
    free(n->shift);
    free(n->k1);
    free(n->k2);
}

/* x - mean, and what SiLU gets. */
static double distance(const struct norm *n, size_t i)
{
    return (double)ddp__from_bf16(n->x[i]) - (double)n->mean[i % n->r.period];
}

static double before(const struct norm *n, size_t i)
{
    size_t k = i % n->r.period;

    return distance(n, i) * (double)n->a[k] + (double)n->shift[k];
}

static const struct ddp__bn_gate *gate_of(const struct norm *n)
{
    return n->r.c ? &n->gate : NULL;
}

/* Of y, and how large its terms are. */
static double gradient_of_y(const struct norm *n, size_t i, double *size)
{
    double dy = ddp__from_bf16(n->dy[i]), mean = 0;
    size_t c = n->r.c, at;

    if (c) {
        at = i / (n->gate.pixels * c) * c + i % c;
        dy *= ddp__from_bf16(n->s[at]);
        mean = ddp__from_bf16(n->dm[at]) / (double)n->gate.pixels;
    }
    *size = fabs(dy) + fabs(mean);
    return dy + mean;
}

static double gradient(const struct norm *n, size_t i)
{
    double size;

    return gradient_of_y(n, i, &size) *
           ddp__ref_act_slope(DDP_SILU, before(n, i));
}

/* How large the terms of a slope s (1 + z (1 - s)) are, times dy. */
static double size_of_gradient(const struct norm *n, size_t i)
{
    double z = before(n, i), s = ddp__ref_act(DDP_SIGMOID, z), size;

    gradient_of_y(n, i, &size);
    return size * s * (1 + fabs(z) * (1 + s));
}

static bool guarded(const struct norm *n, const uint16_t *guard)
{
    return memcmp(n->to + n->r.len, guard, GUARD * sizeof(*guard)) == 0;
}

/* ---- tests -------------------------------------------------------------- */

/* The largest error as a share of what it may be. */
static double worst_result(const struct norm *n)
{
    double most = 0;

    for (size_t i = 0; i < n->r.len; i++) {
        double want = ddp__ref_act(DDP_SILU, before(n, i));
        double e = fabs((double)ddp__from_bf16(n->to[i]) - want);

        most = fmax(most, (e - 1e-35) / (fabs(want) * (SIGMOID + ROUNDING)));
    }
    return most;
}

static void test_results(struct norm *n)
{
    uint16_t guard[GUARD];
    double e;

    memcpy(guard, n->to + n->r.len, sizeof(guard));
    ddp__bn_silu_normalise(&n->p, &n->l);
    e = worst_result(n);
    ok(e <= 1, "%zu values, period %zu: results", n->r.len, n->r.period);
    diag("%.3f of what is allowed", e);
    ok(guarded(n, guard), "%zu values: nothing after them", n->r.len);
}

static double worst_gradient(const struct norm *n)
{
    double most = 0;

    for (size_t i = 0; i < n->r.len; i++) {
        size_t k = i % n->r.period;
        double a = n->a[k], dz = gradient(n, i);
        double rest = (double)n->k1[k] + distance(n, i) * (double)n->k2[k];
        double want = a * (dz - rest);
        double e = fabs((double)ddp__from_bf16(n->to[i]) - want);
        double size =
            fabs(a) * (size_of_gradient(n, i) * SIGMOID + 0x1p-22 * fabs(rest));

        most = fmax(most, e / (size + ROUNDING * (fabs(want) + size)));
    }
    return most;
}

static void test_gradients(struct norm *n)
{
    uint16_t guard[GUARD];
    double e;

    memcpy(guard, n->to + n->r.len, sizeof(guard));
    ddp__bn_silu_spread(&n->p, &n->l, gate_of(n));
    e = worst_gradient(n);
    ok(e <= 1, "%zu values, period %zu: gradients", n->r.len, n->r.period);
    diag("%.3f of what is allowed", e);
    ok(guarded(n, guard), "%zu values: nothing after gradients", n->r.len);
}

static void test_sums(struct norm *n)
{
    size_t period = n->r.period;
    double *sum = new_array(2 * period, sizeof(*sum)), most = 0;

    ddp__bn_silu_sum(&n->p, &n->l, gate_of(n), sum);
    for (size_t c = 0; c < period; c++) {
        double s1 = 0, s2 = 0, size1 = 0, size2 = 0;

        for (size_t i = c; i < n->r.len; i += period) {
            double dz = gradient(n, i), d = distance(n, i);
            double size = size_of_gradient(n, i);

            s1 += dz;
            s2 += dz * d;
            size1 += size;
            size2 += size * fabs(d);
        }
        most = fmax(most, fabs(sum[c] - s1) / (SIGMOID * size1 + 1e-30));
        most =
            fmax(most, fabs(sum[period + c] - s2) / (SIGMOID * size2 + 1e-30));
    }
    ok(most <= 1, "%zu values, period %zu: sums", n->r.len, period);
    diag("%.3f of what is allowed", most);
    free(sum);
}

int main(void)
{
    if (!ddp__bn_silu_fits(DDP_SILU, false, true, 32))
        skip_all("for processors with AMX");
    ok(!ddp__bn_silu_fits(DDP_SILU, true, true, 32) &&
           !ddp__bn_silu_fits(DDP_SILU, false, false, 32) &&
           !ddp__bn_silu_fits(DDP_RELU, false, true, 32) &&
           !ddp__bn_silu_fits(DDP_SILU, false, true, 35) &&
           !ddp__bn_silu_fits(DDP_SILU, false, true, 30),
       "other norms have other loops");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct norm n;

        norm_new(&n, &rows[i]);
        test_results(&n);
        test_gradients(&n);
        test_sums(&n);
        norm_free(&n);
    }
    return done_testing();
}
