/* test_act.c - activations against libm's in f64, relative to each value
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Results and slopes of floats of all sizes are within 1e-6 of themselves, as
 * vmath.h says; what is below floats' normal range may be another such number.
 * exp() ends at exp(-87) = 1.6e-38 in sigmoid and silu.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "cpu/elementwise/act_units.h"
#include "cpu/store.h"
#include "cpu/vector/unit_v16.h"
#include "cpu/vector/vmath.h"
#include "layer_cases.h"
#include "ref/act.h"
#include "tap.h"

/* Floats of all sizes; their last bits are mixed, and their number fills no
 * unit. */
enum { LEN = 2 * 255 * 128 - 3 };
static float x[LEN], y[LEN], dy[LEN];
static uint16_t x16[LEN], y16[LEN];

static void fill(void)
{
    size_t n = 0;

    for (uint32_t i = 0; i < 0x10000 && n < LEN; i++) {
        union {
            uint32_t u;
            float f;
        } v = {i << 16 | (i * 40503 & 0xffff)};

        if (!isfinite(v.f))
            continue;
        x16[n] = (uint16_t)i;
        x[n] = v.f;
        dy[n++] = 1;
    }
}

/* ---- accuracy ----------------------------------------------------------- */

/* What roundings of s (1 + x (1 - s)) and the like are relative to. */
static double size_of_slope(enum ddp_act a, double v)
{
    double slope = ddp__ref_act_slope(a, v);
    double share = v == 0 ? slope : ddp__ref_act(a, v) / v;

    return fabs(share) + fabs(slope - share);
}

/* Of y, and of y = act'(x) in place of it. */
static double worst(enum ddp_act a, bool slopes)
{
    double most = 0;

    for (size_t i = 0; i < LEN; i++) {
        double v = x[i];
        double want = slopes ? ddp__ref_act_slope(a, v) : ddp__ref_act(a, v);
        double size = slopes ? size_of_slope(a, v) : fabs(want);
        double e = fabs(y[i] - want) - 2e-38 * fmax(1, fabs(v));

        e = isnan(y[i]) ? INFINITY : e / fmax(size, 1e-300);
        most = fmax(most, e);
    }
    return most;
}

static void by_loops(enum ddp_act a, bool slopes)
{
    for (size_t i = 0; i < LEN; i++)
        y[i] = slopes ? ddp__act_grad(x[i], dy[i], a) : ddp__act(x[i], a);
}

static void by_units(enum ddp_act a, bool slopes)
{
    if (slopes)
        ddp__act_grad_units(a, x, dy, y, LEN, false);
    else
        ddp__act_units(a, x, NULL, y, LEN, false);
}

static void test_accuracy(enum ddp_act a, bool slopes)
{
    void (*const way[])(enum ddp_act a, bool slopes) = {by_loops, by_units};

    for (int i = 0; i < 1 + ddp__unit_v16(false); i++) {
        double e;

        way[i](a, slopes);
        e = worst(a, slopes);
        ok(e < 1e-6, "%s, %s%s: within %.1e", act_names[a],
           i ? "units" : "loops", slopes ? ", slope" : "", e);
    }
}

/* ---- units -------------------------------------------------------------- */

/* Numbers that are too small for the processor's conversion become 0. */
static bool is_rounded(uint16_t got, float from)
{
    return got == ddp__to_bf16(from) ||
           (fabsf(from) < 0x1p-126f && !(got & 0x7fff));
}

static void test_bf16(enum ddp_act a)
{
    int bad = 0;

    for (size_t i = 0; i < LEN; i++)
        x[i] = ddp__from_bf16(x16[i]);
    ddp__act_units(a, x, NULL, y, LEN, false);
    ddp__act_units(a, x16, NULL, y16, LEN, true);
    for (size_t i = 0; i < LEN; i++)
        bad += !is_rounded(y16[i], y[i]);
    is_int(bad, 0, "%s: bf16 is the rounded result of f32", act_names[a]);
    fill();
}

/* Past the caches or not, of any length: nothing else is written. */
static void test_lengths(void)
{
    static _Alignas(64) float to[256], whole[256];
    int bad = 0;

    ddp__act_units(DDP_TANH, x + 0x3f00, dy, whole, 256, false);
    for (size_t len = 1; len < 200; len++) {
        ddp__stream_bytes = len % 2 ? 0 : 3 << 20;
        memset(to, 0xff, sizeof(to));
        ddp__act_units(DDP_TANH, x + 0x3f00, dy, to, len, false);
        bad += memcmp(to, whole, len * sizeof(*to)) != 0;
        for (size_t i = len; i < 256; i++)
            bad += !isnan(to[i]);
    }
    is_int(bad, 0, "units: lengths of 1 to 199");
}

static void test_nan(enum ddp_act a)
{
    float v[33], to[33];

    for (int i = 0; i < 33; i++)
        v[i] = NAN;
    ddp__act_units(a, v, NULL, to, 33, false);
    ok(isnan(to[0]) && isnan(to[32]), "%s: a NaN remains one", act_names[a]);
}

int main(void)
{
    fill();
    for (enum ddp_act a = 0; a < DDP_ACT_COUNT; a++) {
        test_accuracy(a, false);
        if (!ddp__act_from_y(a))
            test_accuracy(a, true);
        if (ddp__unit_v16(true))
            test_bf16(a);
        if (ddp__unit_v16(false))
            test_nan(a);
    }
    if (ddp__unit_v16(false))
        test_lengths();
    return done_testing();
}
