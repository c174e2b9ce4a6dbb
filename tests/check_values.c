/* check_values.c - the values of a check's tensors: drawn, read and compared
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include <math.h>
#include <string.h>
#include "base/half.h"
#include "base/philox.h"
#include "check.h"

/* ---- contents ----------------------------------------------------------- */

double check_get(const struct check_tensor *t, size_t i)
{
    switch (t->view.type) {
    case DDP_F32:
        return ((const float *)t->data)[i];
    case DDP_BF16:
        return ddp__from_bf16(((const uint16_t *)t->data)[i]);
    case DDP_F16:
        return ddp__from_f16(((const uint16_t *)t->data)[i]);
    case DDP_U8:
        return ((const uint8_t *)t->data)[i];
    case DDP_I32:
        return ((const int32_t *)t->data)[i];
    case DDP_I64:
        return (double)((const int64_t *)t->data)[i];
    case DDP_F64:
        break;
    }
    return ((const double *)t->data)[i];
}

void check_set(struct check_tensor *t, size_t i, double value)
{
    switch (t->view.type) {
    case DDP_F32:
        ((float *)t->data)[i] = (float)value;
        break;
    case DDP_BF16:
        ((uint16_t *)t->data)[i] = ddp__to_bf16((float)value);
        break;
    case DDP_F16:
        ((uint16_t *)t->data)[i] = ddp__to_f16((float)value);
        break;
    case DDP_U8:
        ((uint8_t *)t->data)[i] = (uint8_t)value;
        break;
    case DDP_I32:
        ((int32_t *)t->data)[i] = (int32_t)value;
        break;
    case DDP_I64:
        ((int64_t *)t->data)[i] = (int64_t)value;
        break;
    case DDP_F64:
        ((double *)t->data)[i] = value;
        break;
    }
}

/* In low .. high: a number with the 24 bits of f32, whose products are rounded,
 * or in steps of 1 / 1024. */
static double draw(struct check *k, double low, double high)
{
    struct ddp__philox r = ddp__philox(20, 0, k->drawn++);
    double v = low + (high - low) * ddp__uniform(r.v[0]);

    return k->coarse ? rint(v * 1024) / 1024 : v;
}

static double draw_x(struct check *k)
{
    double spread = k->row.spread > 0 ? k->row.spread : 1;
    double v = k->row.mean + draw(k, -spread, spread);

    return k->row.ties ? rint(v * 2) / 2 : v;
}

/* scale, shift, mean, var of a batch norm */
static double draw_norm(struct check *k, size_t i)
{
    size_t block = i / (size_t)check_norm_channels(&k->row);

    return block == 0 || block == 3 ? draw(k, 0.5, 1.5) : draw(k, -1, 1);
}

static double draw_label(struct check *k)
{
    double label = floor(draw(k, 0, k->row.x.c));

    return label < k->row.x.c ? label : k->row.x.c - 1;
}

/* The step's divisor and count are what OPTIM divides by. */
static double draw_stat(struct check *k, size_t i)
{
    if (i == DDP__STAT_DIVISOR)
        return k->row.no_divisor ? 0 : 7.5;
    if (i == DDP__STAT_UPDATES)
        return k->row.updates ? k->row.updates : 3;
    return i == DDP__STAT_COUNT ? 8 : draw(k, -1, 1);
}

/* Means of squares are positive; that of Lion is as small as what a gradient
 * adds, so that the gradient may decide about the sign. */
static double draw_state(struct check *k)
{
    bool lion =
        k->row.family == CHECK_OPTIM && k->row.call.optim.o.kind == DDP_LION;

    return lion ? draw(k, -1.0 / 16, 1.0 / 16) : draw(k, 0.125, 1);
}

/* Element i of the tensor of that role. */
static double draw_element(struct check *k, enum check_role role, size_t i)
{
    bool norm = k->row.family == CHECK_BN || k->row.family == CHECK_BN_EVAL ||
                k->row.family == CHECK_BN_EVAL_BWD ||
                k->row.family == CHECK_BN_SYNC;

    switch (role) {
    case ROLE_X:
        return k->tensor[role].view.type == DDP_U8 ? floor(draw(k, 0, 255.9))
                                                   : draw_x(k);
    case ROLE_W:
        return norm ? draw_norm(k, i) : draw(k, -1, 1);
    case ROLE_BN:
        return draw_norm(k, i);
    case ROLE_IDS:
        return 5e9 + 3 * (double)i; /* beyond 32 bits */
    case ROLE_TARGET:
        if (k->row.shares)
            return draw(k, 0, 1);
        return check_has_labels(&k->row) ? draw_label(k) : draw_x(k);
    case ROLE_WEIGHT: /* of samples that count, do not, and of the sub-batch */
        return (int)i == k->row.cap ? 3.25 : i == 2 ? 0 : draw(k, 0.5, 2);
    case ROLE_STATS:
        return draw_stat(k, i);
    case ROLE_INDEX:
        return 0;
    case ROLE_STATE:
    case ROLE_STAT:
        return draw_state(k);
    case ROLE_NORM:
        return 9;
    default:
        return draw(k, -1, 1);
    }
}

void check_fill_one(struct check *k, enum check_role role)
{
    enum check_role odd = k->row.family == CHECK_OPTIM ? ROLE_G : ROLE_X;
    struct check_tensor *t = &k->tensor[role];
    size_t len = check_len(t, k->row.cap);

    if (!t->data)
        return;
    for (size_t i = 0; i < len; i++)
        check_set(t, i, draw_element(k, role, i));
    if (role == odd && k->row.nan)
        check_set(t, check_len(t, 1) / 2, NAN);
    if (k->row.family == CHECK_OPTIM && (role == ROLE_G || role == ROLE_STATE))
        check_set(t, 0, 0); /* a weight that no sample has reached */
    if (role == ROLE_STATE && k->row.call.optim.o.lookahead)
        check_set(t, 1, -0.0); /* one that was 0 the last time */
    t->version++;
}

/* Of the first span: g -= w (w g) / (w w). */
static void turn_gradients(struct check *k)
{
    float *g = k->tensor[ROLE_G].data, *w = k->tensor[ROLE_W].data;
    size_t part = k->row.turns;

    for (size_t i = 0; part && i < k->row.span[0].len; i += part) {
        double wg = 0, ww = 0;

        for (size_t e = i; e < i + part; e++) {
            wg += (double)w[e] * g[e];
            ww += (double)w[e] * w[e];
        }
        for (size_t e = i; e < i + part; e++)
            g[e] = (float)(g[e] - w[e] * wg / ww);
    }
}

void check_fill(struct check *k)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        check_fill_one(k, (enum check_role)role);
    turn_gradients(k);
}

/* ---- comparing ---------------------------------------------------------- */

struct check_difference check_compare(const struct check_tensor *got,
                                      const struct check_tensor *want,
                                      size_t begin, size_t end, double floor)
{
    struct check_difference d = {0, 0, begin};
    double a = 0, b = 0, sum = 0;

    for (size_t i = begin; i < end; i++) {
        double x = check_get(got, i), y = check_get(want, i), e = fabs(x - y);

        if ((isnan(x) && isnan(y)) || x == y)
            e = 0;
        else if (isnan(e))
            e = INFINITY;
        if (e > d.worst) {
            d.worst = e;
            d.worst_at = i;
        }
        sum += e * e;
        a += isfinite(x) ? x * x : 0;
        b += isfinite(y) ? y * y : 0;
    }
    floor = fmax(floor, sqrt(fmax(a, b)));
    d.norm = sum == 0 ? 0 : sqrt(sum) / fmax(floor, 1e-30);
    return d;
}

double check_norm(const struct check_tensor *t, int n)
{
    size_t len = check_len(t, n);
    double sum = 0;

    for (size_t i = 0; i < len; i++)
        sum += check_get(t, i) * check_get(t, i);
    return sqrt(sum);
}
