/* bn.c - batch normalisation, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Over the m = n h w values of a channel, with r the residual if there is one:
 *
 *     y = act(scale xhat + shift + r),  xhat = (x - mean) / sqrt(var + eps)
 */
#include "config.h"
#include <math.h>
#include "act.h"
#include "backend.h"
#include "ref.h"

static size_t pixels(const struct ddp__task *t, const struct ddp__ref_buf *x)
{
    return (size_t)t->n * (size_t)x->h * (size_t)x->w;
}

/* Mean and biased variance of channel c. */
static void measure(const struct ddp__task *t, const struct ddp__ref_buf *x,
                    size_t c, float *mean, float *var)
{
    size_t m = pixels(t, x);
    double sum = 0, squares = 0;

    for (size_t p = 0; p < m; p++)
        sum += ddp__ref_read(x, p * (size_t)x->c + c);
    sum /= (double)m;
    for (size_t p = 0; p < m; p++) {
        double d = ddp__ref_read(x, p * (size_t)x->c + c) - sum;

        squares += d * d;
    }
    *mean = (float)sum;
    *var = (float)(squares / (double)m);
}

/* Element i of a mask: c is a multiple of 8. */
static bool get_bit(const uint8_t *mask, size_t i)
{
    return mask[i / 8] >> i % 8 & 1;
}

static void put_bit(uint8_t *mask, size_t i, bool on)
{
    unsigned bit = 1U << i % 8;

    mask[i / 8] = (uint8_t)(on ? mask[i / 8] | bit : mask[i / 8] & ~bit);
}

/* y of channel c, and its mask.  residual: the buffer of r. */
static void normalise(const struct ddp__task *t, size_t c, double mean,
                      double var, int residual)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__BN_FWD_X);
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__BN_FWD_Y);
    const float *w = t->data[DDP__BN_FWD_W];
    double factor = w[c] / sqrt(var + t->call->bn.eps);

    for (size_t p = 0; p < pixels(t, &x); p++) {
        size_t i = p * (size_t)x.c + c;
        double z = factor * (ddp__ref_read(&x, i) - mean) + w[(size_t)x.c + c];

        if (t->call->bn.residual)
            z +=
                ddp__ref_get(t->call->buf[residual].type, t->data[residual], i);
        ddp__ref_write(&y, i, ddp__ref_act(t->call->bn.act, z));
        if (t->call->bn.mask)
            put_bit(t->data[DDP__BN_FWD_MASK], i, ddp__ref_read(&y, i) > 0);
    }
}

/* With the statistics of this sub-batch, which go to stat: mean[c], and var[c]
 * or 1 / sqrt(var + eps)[c]. */
int ddp__ref_bn_fwd(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__BN_FWD_X);
    size_t channels = (size_t)x.c;
    float *stat = t->data[DDP__BN_FWD_STAT];
    double eps = t->call->bn.eps;

    for (size_t c = 0; c < channels; c++) {
        float var;

        measure(t, &x, c, &stat[c], &var);
        normalise(t, c, stat[c], var, DDP__BN_FWD_R);
        stat[channels + c] =
            t->call->bn.inverse ? (float)(1 / sqrt(var + eps)) : var;
    }
    return 0;
}

int ddp__ref_bn_stat(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__BN_STAT_X);
    float *stat = t->data[DDP__BN_STAT_STAT];

    for (size_t c = 0; c < (size_t)x.c; c++)
        measure(t, &x, c, &stat[c], &stat[(size_t)x.c + c]);
    return 0;
}

/* With the running statistics. */
int ddp__ref_bn_eval(const struct ddp__task *t)
{
    size_t channels = (size_t)t->call->buf[DDP__BN_EVAL_X].shape.c;
    const float *w = t->data[DDP__BN_EVAL_W];

    for (size_t c = 0; c < channels; c++)
        normalise(t, c, w[2 * channels + c], w[3 * channels + c],
                  DDP__BN_EVAL_R);
    return 0;
}

int ddp__ref_bn_eval_bwd(const struct ddp__task *t)
{
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__BN_EVAL_BWD_DY);
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__BN_EVAL_BWD_DX);
    size_t channels = (size_t)dy.c;
    const float *w = t->data[DDP__BN_EVAL_BWD_W];

    for (size_t i = 0; i < pixels(t, &dy) * channels; i++) {
        size_t c = i % channels;

        ddp__ref_write(&dx, i,
                       ddp__ref_read(&dy, i) * w[c] /
                           sqrt((double)w[3 * channels + c] + t->call->bn.eps));
    }
    return 0;
}

/* ---- backward ----------------------------------------------------------- */

/* What backward knows of a channel. */
struct channel {
    size_t c, channels, m;
    double all;                 /* values that the statistics are of */
    double mean, var, inv;      /* inv = 1 / sqrt(var + eps) */
    double sum_dz, sum_dz_xhat; /* the gradients of shift and scale */
};

/* all: 0 for the m of this sub-batch. */
static struct channel channel_of(const struct ddp__task *t, size_t c,
                                 double all)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__BN_BWD_X);
    size_t m = pixels(t, &x), channels = (size_t)x.c;
    const float *stat = t->data[DDP__BN_BWD_STAT];
    struct ddp__bn_spread s = ddp__bn_spread(t->call, stat[channels + c]);

    return (struct channel){.c = c,
                            .channels = channels,
                            .m = m,
                            .all = all > 0 ? all : (double)m,
                            .mean = stat[c],
                            .var = s.var,
                            .inv = s.inv};
}

/* The slope of the activation at element i, whose xhat is given. */
static double slope_at(const struct ddp__task *t, const struct channel *ch,
                       size_t i, double xhat)
{
    struct ddp__ref_buf y = ddp__ref_buf(t, DDP__BN_BWD_SLOPE);
    const float *w = t->data[DDP__BN_BWD_W];
    enum ddp_act act = t->call->bn.act;
    double z = w[ch->c] * xhat + w[ch->channels + ch->c];

    if (t->call->bn.mask)
        return get_bit(t->data[DDP__BN_BWD_SLOPE], i);
    if (act == DDP_IDENTITY)
        return 1;
    if (ddp__act_from_y(act))
        z = t->call->bn.from_x ? ddp__ref_act(act, z) : ddp__ref_read(&y, i);
    return ddp__ref_act_slope(act, z);
}

/* The gradient of y at element i; see BN_GATED_BWD. */
static double gradient_at(const struct ddp__task *t, const struct channel *ch,
                          size_t i)
{
    struct ddp__ref_buf dy = ddp__ref_buf(t, DDP__BN_BWD_DY);
    double d = ddp__ref_read(&dy, i);
    size_t m = (size_t)dy.h * (size_t)dy.w, at;
    struct ddp__ref_buf s, dm;

    if (t->call->op != DDP__OP_BN_GATED_BWD)
        return d;
    at = i / (m * ch->channels) * ch->channels + ch->c;
    s = ddp__ref_buf(t, DDP__BN_GATED_BWD_S);
    dm = ddp__ref_buf(t, DDP__BN_GATED_BWD_DM);
    return d * ddp__ref_read(&s, at) + ddp__ref_read(&dm, at) / (double)m;
}

/* dz, the gradient before the activation, and xhat of element i. */
static double unfold(const struct ddp__task *t, const struct channel *ch,
                     size_t i, double *xhat)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__BN_BWD_X);

    *xhat = (ddp__ref_read(&x, i) - ch->mean) * ch->inv;
    return gradient_at(t, ch, i) * slope_at(t, ch, i, *xhat);
}

/* The sums; dr = dz */
static void sum_channel(const struct ddp__task *t, struct channel *ch)
{
    for (size_t p = 0; p < ch->m; p++) {
        size_t i = p * ch->channels + ch->c;
        double xhat, dz = unfold(t, ch, i, &xhat);

        ch->sum_dz += dz;
        ch->sum_dz_xhat += dz * xhat;
        if (t->call->bn.residual)
            ddp__ref_set(t->call->buf[DDP__BN_BWD_DR].type,
                         t->data[DDP__BN_BWD_DR], i, dz);
    }
}

/* dx = scale inv (dz - mean(dz) - xhat mean(dz xhat)) */
static void spread_channel(const struct ddp__task *t, const struct channel *ch)
{
    struct ddp__ref_buf dx = ddp__ref_buf(t, DDP__BN_BWD_DX);
    const float *w = t->data[DDP__BN_BWD_W];

    for (size_t p = 0; p < ch->m; p++) {
        size_t i = p * ch->channels + ch->c;
        double xhat, dz = unfold(t, ch, i, &xhat);

        ddp__ref_write(
            &dx, i,
            w[ch->c] * ch->inv *
                (dz - (ch->sum_dz + xhat * ch->sum_dz_xhat) / ch->all));
    }
}

/* g: of scale and shift; then the statistics times n, for OPTIM to average
 * over sub-batches, the variance unbiased (of one value: as it is). */
static void add_gradients(const struct ddp__task *t, const struct channel *ch)
{
    float *g = (float *)t->data[DDP__BN_BWD_G] + ch->c;
    double var = ch->all > 1 ? ch->var * ch->all / (ch->all - 1) : ch->var;

    ddp__ref_sum(t, &g[0], ch->sum_dz_xhat);
    ddp__ref_sum(t, &g[ch->channels], ch->sum_dz);
    ddp__ref_sum(t, &g[2 * ch->channels], t->n * ch->mean);
    ddp__ref_sum(t, &g[3 * ch->channels], t->n * var);
}

int ddp__ref_bn_bwd(const struct ddp__task *t)
{
    size_t channels = (size_t)t->call->buf[DDP__BN_BWD_X].shape.c;

    for (size_t c = 0; c < channels; c++) {
        struct channel ch = channel_of(t, c, 0);

        sum_channel(t, &ch);
        spread_channel(t, &ch);
        add_gradients(t, &ch);
    }
    return 0;
}

int ddp__ref_bn_gated_bwd(const struct ddp__task *t)
{
    return ddp__ref_bn_bwd(t);
}

/* ---- over the sub-batches of a step ------------------------------------- */

/* An element of sums that are written, or added to. */
static void collect(const struct ddp__task *t, double *sum, double value)
{
    *sum = t->accumulate ? *sum + value : value;
}

int ddp__ref_bn_sum(const struct ddp__task *t)
{
    struct ddp__ref_buf x = ddp__ref_buf(t, DDP__BN_SUM_X);
    size_t channels = (size_t)x.c, m = pixels(t, &x);
    double *sum = t->data[DDP__BN_SUM_SUM];

    for (size_t c = 0; c < channels; c++) {
        double s = 0, squares = 0;

        for (size_t p = 0; p < m; p++) {
            double v = ddp__ref_read(&x, p * channels + c);

            s += v;
            squares += v * v;
        }
        collect(t, &sum[c], s);
        collect(t, &sum[channels + c], squares);
    }
    collect(t, &sum[2 * channels], (double)m);
    return 0;
}

int ddp__ref_bn_sync(const struct ddp__task *t)
{
    size_t channels = (size_t)t->call->buf[DDP__BN_SYNC_X].shape.c;
    const double *sum = t->data[DDP__BN_SYNC_SUM];
    float *stat = t->data[DDP__BN_SYNC_STAT];

    for (size_t c = 0; c < channels; c++) {
        ddp__bn_moments(sum, channels, c, stat);
        normalise(t, c, stat[c], stat[channels + c], DDP__BN_SYNC_R);
    }
    stat[2 * channels] = (float)sum[2 * channels];
    return 0;
}

int ddp__ref_bn_sum_bwd(const struct ddp__task *t)
{
    size_t channels = (size_t)t->call->buf[DDP__BN_SUM_BWD_X].shape.c;
    const float *stat = t->data[DDP__BN_SUM_BWD_STAT];
    double *sum = t->data[DDP__BN_SUM_BWD_DSUM];

    for (size_t c = 0; c < channels; c++) {
        struct channel ch = channel_of(t, c, stat[2 * channels]);

        sum_channel(t, &ch);
        add_gradients(t, &ch);
        collect(t, &sum[c], ch.sum_dz);
        collect(t, &sum[channels + c], ch.sum_dz_xhat / ch.inv);
    }
    return 0;
}

int ddp__ref_bn_sync_bwd(const struct ddp__task *t)
{
    size_t channels = (size_t)t->call->buf[DDP__BN_SYNC_BWD_X].shape.c;
    const float *stat = t->data[DDP__BN_SYNC_BWD_STAT];
    const double *sum = t->data[DDP__BN_SYNC_BWD_DSUM];

    for (size_t c = 0; c < channels; c++) {
        struct channel ch = channel_of(t, c, stat[2 * channels]);

        ch.sum_dz = sum[c];
        ch.sum_dz_xhat = sum[channels + c] * ch.inv;
        spread_channel(t, &ch);
    }
    return 0;
}
