/* optim.c - updates by a rule, and the norm they clip by, in plain C
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * g holds sums over samples: the gradient is g / stats[DIVISOR], and what
 * running statistics move to is g / stats[COUNT].
 */
#include "config.h"
#include <math.h>
#include <stdlib.h>
#include "backend.h"
#include "base/error.h"
#include "ops_norm.h"
#include "optim_rule.h"
#include "ref.h"

/* min(1, clip_norm / norm), as PyTorch's clip_grad_norm_ */
static double clip_factor(const struct ddp__task *t)
{
    const struct ddp_optimizer *o = &t->call->optim.o;
    double factor;

    if (!(o->clip_norm > 0))
        return 1;
    factor = *(const double *)t->data[DDP__OPTIM_NORM];
    factor = o->clip_norm / (sqrt(factor) + 1e-6);
    return factor < 1 ? factor : 1;
}

/* As PyTorch's clip_grad_value_ */
static double clip_value(const struct ddp_optimizer *o, double g)
{
    double most = o->clip_value;

    return most > 0 ? fmin(fmax(g, -most), most) : g;
}

static struct ddp__ref_rule rule_of(const struct ddp__task *t)
{
    struct ddp_optimizer o = ddp__optimizer_of(t);
    struct ddp__ref_rule r = {.o = o, .lr = o.lr, .clip = clip_factor(t)};
    const double *stats = t->data[DDP__OPTIM_STATS];

    r.divisor = stats[DDP__STAT_DIVISOR];
    r.correct1 = 1 - pow(o.beta1, stats[DDP__STAT_UPDATES]);
    r.correct2 = 1 - pow(o.beta2, stats[DDP__STAT_UPDATES]);
    r.updates = stats[DDP__STAT_UPDATES];
    if (o.kind == DDP_NADAM || o.kind == DDP_NADAMW)
        r.product = ddp__ref_nadam_product(&r);
    r.w = t->data[DDP__OPTIM_W];
    r.m = t->data[DDP__OPTIM_STATE];
    if (ddp__rule_states(&o) > 1)
        r.v = r.m + ddp__len(t, DDP__OPTIM_W);
    if (ddp__rule_states(&o) > 2)
        r.x = r.v + ddp__len(t, DDP__OPTIM_W);
    if (o.lookahead > 0 && fmod(r.updates, o.lookahead) == 0)
        r.slow = r.m + (size_t)ddp__rule_states(&o) * ddp__len(t, DDP__OPTIM_W);
    return r;
}

/* ---- LAMB, LARS -------------------------------------------------------- */

/* What a span's step is multiplied by: |w| / |step|, or in LARS
 * trust_coeff |w| / (|g| + decay |w|); 1 where there is no decay, as in timm,
 * or where one of the norms is 0. */
static double trust_of(const struct ddp__ref_rule *r, const struct ddp__span *s)
{
    double w2 = 0, d2 = 0, w, d;

    for (size_t i = s->begin; i < s->begin + s->len && r->decay > 0; i++) {
        d = r->g[i - s->begin];
        if (r->o.kind == DDP_LAMB)
            d = ddp__ref_lamb_step(r, i, d);
        w2 += (double)r->w[i] * r->w[i];
        d2 += d * d;
    }
    w = sqrt(w2);
    d = sqrt(d2);
    if (!(w > 0 && d > 0))
        return 1;
    return r->o.kind == DDP_LAMB ? w / d
                                 : DDP__LARS_TRUST * w / (d + r->decay * w);
}

/* ---- AdamP: Heo et al., ICLR 2021 --------------------------------------- */

/* Of weights begin to end, their gradients g, and Adam's steps s. */
struct products {
    double ww, gg, wg, ws;
};

static struct products products_of(const struct ddp__ref_rule *r,
                                   const struct ddp__span *s, size_t begin,
                                   size_t len)
{
    struct products p = {0, 0, 0, 0};

    for (size_t i = begin; i < begin + len; i++) {
        double w = r->w[s->begin + i], g = r->g[i];

        p.ww += w * w;
        p.gg += g * g;
        p.wg += w * g;
        p.ws += w * ddp__ref_lamb_step(r, s->begin + i, g);
    }
    return p;
}

/* Whether gradients are nearly at right angles to the weights in each part of
 * the span of so many elements. */
static bool turns(const struct ddp__ref_rule *r, const struct ddp__span *s,
                  size_t part)
{
    double most = 0, eps = r->o.eps;

    for (size_t i = 0; i < s->len; i += part) {
        struct products p = products_of(r, s, i, part);
        double lengths = fmax(sqrt(p.ww), eps) * fmax(sqrt(p.gg), eps);

        most = fmax(most, fabs(p.wg) / lengths);
    }
    return most < DDP__ADAMP_DELTA / sqrt((double)part);
}

/* How long the parts are that steps are projected in; 0: they are not. */
static size_t projected_part(const struct ddp__ref_rule *r,
                             const struct ddp__span *s)
{
    if (r->o.kind != DDP_ADAMP || !s->unit)
        return 0;
    return turns(r, s, s->unit) ? s->unit : turns(r, s, s->len) ? s->len : 0;
}

/* What steps have of the weights, at the first element of a part. */
static void take_radial(struct ddp__ref_rule *r, const struct ddp__span *s,
                        size_t part, size_t at)
{
    struct products p;
    double length;

    if (at % part != 0)
        return;
    p = products_of(r, s, at, part);
    length = sqrt(p.ww) + r->o.eps;
    r->radial = p.ws / (length * length);
}

/* ------------------------------------------------------------------------- */

/* Brock et al. 2021: the gradient of an output is no longer than a share of its
 * weights. */
static double unit_factor(const struct ddp__ref_rule *r, const double *g,
                          const float *w, size_t len)
{
    double g2 = 0, w2 = 0, most, norm;

    for (size_t i = 0; i < len; i++) {
        g2 += g[i] * g[i];
        w2 += (double)w[i] * w[i];
    }
    most = r->o.clip_unit * fmax(sqrt(w2), DDP__UNIT_WEIGHTS);
    norm = sqrt(g2);
    return norm < most ? 1 : most / fmax(norm, DDP__UNIT_GRADIENT);
}

/* The mean gradient of a span, clipped in all ways. */
static void take_gradient(const struct ddp__task *t, struct ddp__ref_rule *r,
                          const struct ddp__span *s)
{
    const float *sum = (const float *)t->data[DDP__OPTIM_G] + s->begin;
    const float *w = r->w + s->begin;

    for (size_t i = 0; i < s->len; i++)
        r->g[i] = sum[i] / r->divisor * r->clip;
    for (size_t u = 0; r->o.clip_unit > 0 && s->unit && u < s->len;
         u += s->unit) {
        double factor = unit_factor(r, r->g + u, w + u, s->unit);

        for (size_t i = u; i < u + s->unit; i++)
            r->g[i] *= factor;
    }
    for (size_t i = 0; i < s->len; i++)
        r->g[i] = clip_value(&r->o, r->g[i]);
}

/* Decay is added to the gradient, subtracted from the weight, or left to the
 * rule. */
static void train_span(const struct ddp__task *t, struct ddp__ref_rule *r,
                       const struct ddp__span *s)
{
    float *w = t->data[DDP__OPTIM_W];
    bool decays = s->decay || r->o.decay_all;
    double decay = decays ? r->o.weight_decay : 0;
    bool decoupled = ddp__optimizer_uses(&r->o, DDP__DECOUPLED_DECAY);
    size_t part = projected_part(r, s);

    r->radial = 0;
    if (part)
        decay *= DDP__ADAMP_DECAY;
    if (ddp__optimizer_uses(&r->o, DDP__LAYERWISE)) {
        r->decay = decay;
        r->trust = trust_of(r, s);
        decay = 0;
    }
    for (size_t i = s->begin; i < s->begin + s->len; i++) {
        double gi = r->g[i - s->begin], wi = w[i];

        if (part)
            take_radial(r, s, part, i - s->begin);
        if (decoupled)
            wi -= r->lr * decay * wi;
        else
            gi += decay * wi;
        w[i] = (float)(wi - ddp__ref_rule_step(r, i, gi));
    }
}

/* The program's function sees the whole span, and its mean gradient. */
static int custom_span(const struct ddp__task *t, const struct ddp__ref_rule *r,
                       const struct ddp__span *s)
{
    float *state = t->data[DDP__OPTIM_STATE];
    float *mean = malloc((s->len + 1) * sizeof(*mean));
    struct ddp_update u = {.optimizer = &r->o,
                           .lr = r->o.lr,
                           .updates = (int64_t)r->updates,
                           .len = s->len,
                           .g = mean,
                           .w = r->w + s->begin};

    if (!mean)
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for a gradient of %zu "
                         "values",
                         s->len);
    if (s->decay || r->o.decay_all)
        u.weight_decay = r->o.weight_decay;
    for (size_t i = 0; i < s->len; i++)
        mean[i] = (float)r->g[i];
    for (int k = 0; k < r->o.update_states; k++)
        u.state[k] = state + (size_t)k * ddp__len(t, DDP__OPTIM_W) + s->begin;
    r->o.update(&u, r->o.update_arg);
    free(mean);
    return 0;
}

/* Zhang et al. 2019: half the way back to where the weights were the last time,
 * which is 0 before the first; -0 stands for a weight that was 0. */
static void look_ahead(const struct ddp__ref_rule *r, const struct ddp__span *s)
{
    for (size_t i = s->begin; i < s->begin + s->len; i++) {
        double slow = r->slow[i];

        if (slow != 0 || signbit(slow))
            r->w[i] = (float)(slow + (r->w[i] - slow) / 2);
        r->slow[i] = r->w[i] != 0 ? r->w[i] : -0.0f;
    }
}

static int update_trained(const struct ddp__task *t, struct ddp__ref_rule *r,
                          const struct ddp__span *s)
{
    int rc = 0;

    take_gradient(t, r, s);
    if (r->o.kind == DDP_CUSTOM_OPTIMIZER)
        rc = custom_span(t, r, s);
    else
        train_span(t, r, s);
    if (r->slow)
        look_ahead(r, s);
    return rc;
}

/* w = (1 - momentum) w + momentum g / count */
static void update_running(const struct ddp__task *t, const struct ddp__span *s)
{
    double count = ((const double *)t->data[DDP__OPTIM_STATS])[DDP__STAT_COUNT];
    const float *g = t->data[DDP__OPTIM_G];
    float *w = t->data[DDP__OPTIM_W];
    double m = s->momentum;

    if (count == 0)
        return;
    for (size_t i = s->begin; i < s->begin + s->len; i++)
        w[i] = (float)((1 - m) * w[i] + m * g[i] / count);
}

/* One update.  Without a divisor nothing changes: no sample counts, or the step
 * is not to be applied. */
int ddp__ref_optim(const struct ddp__task *t)
{
    struct ddp__ref_rule r = rule_of(t);
    size_t len = ddp__len(t, DDP__OPTIM_W);
    int rc = 0;

    if (r.divisor == 0)
        return 0;
    if (!(r.g = malloc(len * sizeof(*r.g))))
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for a gradient of %zu values", len);
    for (int i = 0; i < t->call->optim.spans && rc == 0; i++) {
        const struct ddp__span *s = &t->call->optim.span[i];

        if (s->running)
            update_running(t, s);
        else
            rc = update_trained(t, &r, s);
    }
    free(r.g);
    return rc;
}

/* The squares of a span; and what of it is not finite, in norm. */
static double span_squares(const struct ddp__task *t, const struct ddp__span *s,
                           double norm[DDP__NORMS])
{
    const float *g = t->data[DDP__SQNORM_G];
    double sum = 0;

    for (size_t i = s->begin; i < s->begin + s->len; i++) {
        double place = (double)(t->call->optim.begin + i + 1);

        if (!isfinite(g[i]))
            sum = NAN;
        else if (!s->running)
            sum += (double)g[i] * g[i];
        if (!isfinite(g[i]) && s->running)
            norm[DDP__NORM_RUNNING] = place;
        if (!isfinite(g[i]) && !s->running && norm[DDP__NORM_TRAINED] == 0)
            norm[DDP__NORM_TRAINED] = place;
    }
    return sum;
}

int ddp__ref_sqnorm(const struct ddp__task *t)
{
    return ddp__norm_squares(t, span_squares);
}

/* dst += (1 - decay) (src - dst), if the step is applied */
int ddp__ref_ema(const struct ddp__task *t)
{
    double share = ddp__ema_share(t);
    float *dst = t->data[DDP__EMA_DST];
    const float *src = t->data[DDP__EMA_SRC];
    const double *stats = t->data[DDP__EMA_STATS];

    if (stats[DDP__STAT_DIVISOR] == 0)
        return 0;
    for (size_t i = 0; i < ddp__len(t, DDP__EMA_DST); i++)
        dst[i] = (float)(dst[i] + share * ((double)src[i] - dst[i]));
    return 0;
}
