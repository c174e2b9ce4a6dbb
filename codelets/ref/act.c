/* act.c - elementwise activations, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include "act.h"
#include "backend.h"
#include "ref.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* A NaN comes out as a NaN. */
static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

double ddp__ref_act(enum ddp_act act, double x)
{
    switch (act) {
    case DDP_RELU:
        return clamp(x, 0, INFINITY);
    case DDP_RELU6:
        return clamp(x, 0, 6);
    case DDP_SILU:
        return x * sigmoid(x);
    case DDP_SIGMOID:
        return sigmoid(x);
    case DDP_TANH:
        return tanh(x);
    case DDP_GELU: /* the exact one: x times the normal distribution of x */
        return x * 0.5 * erfc(-x * M_SQRT1_2);
    case DDP_HARDSWISH:
        return x * clamp(x + 3, 0, 6) / 6;
    case DDP_HARDSIGMOID:
        return clamp(x + 3, 0, 6) / 6;
    case DDP_IDENTITY:
    case DDP_ACT_COUNT:
        break;
    }
    return x;
}

static double silu_slope(double x)
{
    double s = sigmoid(x);

    return s * (1 + x * (1 - s));
}

static double gelu_slope(double x)
{
    double density = exp(-x * x / 2) * M_SQRT1_2 * M_2_SQRTPI / 2;

    return 0.5 * erfc(-x * M_SQRT1_2) + x * density;
}

/* At a kink: the slope on its flat side, as PyTorch has it. */
double ddp__ref_act_slope(enum ddp_act act, double s)
{
    switch (act) {
    case DDP_RELU:
        return s > 0;
    case DDP_RELU6:
        return s > 0 && s < 6;
    case DDP_SILU:
        return silu_slope(s);
    case DDP_SIGMOID:
        return s * (1 - s);
    case DDP_TANH:
        return 1 - s * s;
    case DDP_GELU:
        return gelu_slope(s);
    case DDP_HARDSWISH:
        return s <= -3 ? 0 : s >= 3 ? 1 : (2 * s + 3) / 6;
    case DDP_HARDSIGMOID:
        return s > -3 && s < 3 ? 1.0 / 6 : 0;
    case DDP_IDENTITY:
    case DDP_ACT_COUNT:
        break;
    }
    return 1;
}

/* y = act(x) */
int ddp__ref_act_fwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__ACT_FWD_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__ACT_FWD_Y);

    for (size_t i = 0; i < ddp__len(t, DDP__ACT_FWD_X); i++)
        ddp__ref_write(&y, i, ddp__ref_act(t->call->act, ddp__ref_read(&x, i)));
    return 0;
}

/* dx = dy act'(s) */
int ddp__ref_act_bwd(const struct ddp__task *t)
{
    struct ddp__ref_buf s = ddp__ref_buf(t, DDP__ACT_BWD_SLOPE);
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__ACT_BWD_DY);
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__ACT_BWD_DX);

    for (size_t i = 0; i < ddp__len(t, DDP__ACT_BWD_SLOPE); i++)
        ddp__ref_write(
            &dx, i,
            ddp__ref_read(&dy, i) *
                ddp__ref_act_slope(t->call->act, ddp__ref_read(&s, i)));
    return 0;
}
