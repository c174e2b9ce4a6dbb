/* optim.c - updates of weights and averages, norms to clip by, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The gradient is g / stats[DIVISOR], times the clipping factor; what running
 * statistics move to is g / stats[COUNT].
 */
#include "config.h"

#include <math.h>

#include "backend.h"
#include "ops_norm.h"
#include "rules.h"

/* w = (1 - m) w + m g / count */
DDP__CLONES static void update_running(const float *restrict g,
                                       float *restrict w, size_t len, float m,
                                       double count)
{
    float share = (float)(m / count);

    for (size_t i = 0; i < len; i++)
        w[i] = (1 - m) * w[i] + share * g[i];
}

/* ---- kernels ------------------------------------------------------------ */

/* min(1, clip_norm / norm) */
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

/* NAdam's beta1 of update t is mu_t = beta1 (1 - q^t / 2), and the product of
 * mu_1 to mu_t is
 *
 *     beta1^t exp(-sum over k of (q^k + q^2k + ... + q^tk) / (k 2^k)),
 *
 * as the logarithm of 1 - x is a series; f64 does not see terms after 52. */
static double nadam_mu(double beta1, double t)
{
    return beta1 * (1 - pow(DDP__NADAM_BASE, t * DDP__NADAM_DECAY) / 2);
}

static double nadam_product(double beta1, double t)
{
    double log_q = log(DDP__NADAM_BASE) * DDP__NADAM_DECAY, sum = 0, half = 1;

    for (int k = 1; k <= 52; k++) {
        half /= 2;
        sum +=
            half / k * exp(k * log_q) * expm1(k * t * log_q) / expm1(k * log_q);
    }
    return pow(beta1, t) * exp(-sum);
}

static void set_nadam(struct ddp__rule *r, double t)
{
    double lr = r->lr, product = nadam_product(r->beta1, t);
    double next = nadam_mu(r->beta1, t + 1);

    r->rate_g = (float)(lr * (1 - nadam_mu(r->beta1, t)) / (1 - product));
    r->rate1 = (float)(lr * next / (1 - product * next));
}

/* The mean that is divided by 1 - beta1^t, with the gradient once more. */
static void set_nadamw(struct ddp__rule *r)
{
    r->rate_g = r->rate1 * (1 - r->beta1);
    r->rate1 *= r->beta1;
}

/* Liu et al. 2020, algorithm 2. */
static void set_radam(struct ddp__rule *r, double t)
{
    double b2 = r->beta2, power = pow(b2, t), end = 2 / (1 - b2) - 1;
    double rho = end - 2 * t * power / (1 - power);
    double factor = (rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho);

    r->divides = rho > 5;
    if (r->divides)
        r->rate1 *= (float)sqrt(factor * (1 - power));
}

static struct ddp__rule rule_of(const struct ddp__task *t, const double *stats)
{
    struct ddp_optimizer o = ddp__optimizer_of(t);
    double divisor = stats[DDP__STAT_DIVISOR];
    double updates = stats[DDP__STAT_UPDATES];
    struct ddp__rule r = {
        .scale = {.factor = (float)(clip_factor(t) / divisor),
                  .most = o.clip_value > 0 ? o.clip_value : HUGE_VALF},
        .lr = o.lr,
        .momentum = o.momentum,
        .beta1 = o.beta1,
        .beta2 = o.beta2,
        .eps = o.eps};

    r.rate1 = (float)(o.lr / (1 - pow(o.beta1, updates)));
    r.correct2 = (float)(1 / sqrt(1 - pow(o.beta2, updates)));
    r.rest = (float)pow(o.beta2, updates);
    r.looks = o.lookahead > 0 && fmod(updates, o.lookahead) == 0;
    if (o.kind == DDP_LAMB)
        r.rate1 = (float)(1 / (1 - pow(o.beta1, updates)));
    if (o.kind == DDP_NADAM)
        set_nadam(&r, updates);
    if (o.kind == DDP_NADAMW)
        set_nadamw(&r);
    if (o.kind == DDP_RADAM)
        set_radam(&r, updates);
    return r;
}

/* A part of the weights, and of the states that there are. */
static void apply_rule(struct ddp__rule *r, const struct ddp__task *t,
                       size_t begin, size_t len)
{
    const struct ddp_optimizer *o = &t->call->optim.o;
    const float *g = (const float *)t->data[DDP__OPTIM_G] + begin;
    float *w = (float *)t->data[DDP__OPTIM_W] + begin;
    int states = ddp__rule_states(o);
    float *m = states > 0 ? (float *)t->data[DDP__OPTIM_STATE] + begin : NULL;
    float *v = states > 1 ? m + ddp__len(t, DDP__OPTIM_W) : NULL;

    r->x = states > 2 ? v + ddp__len(t, DDP__OPTIM_W) : NULL;
    switch (o->kind) {
#define X(id, name, rule, ...)                                                 \
    case DDP_##id:                                                             \
        ddp__rule_##rule(r, g, w, m, v, len);                                  \
        break;
        DDP__OPTIMIZERS(X)
#undef X
    case DDP_CUSTOM_OPTIMIZER:
        break; /* cpu_prepare() refuses it */
    }
}

/* The sum of squares, in 16 interleaved parts of f64. */
DDP__CLONES static double sum_squares(const float *g, size_t len)
{
    double part[16] = {0}, sum = 0;
    size_t i = 0;

    for (; i + 16 <= len; i += 16)
        for (size_t j = 0; j < 16; j++)
            part[j] += (double)g[i + j] * g[i + j];
    for (; i < len; i++)
        part[0] += (double)g[i] * g[i];
    for (size_t j = 0; j < 16; j++)
        sum += part[j];
    return sum;
}

/* Brock et al. 2021: the gradient of an output is no longer than a share of its
 * weights. */
static float unit_factor(const struct ddp__rule *r, double most, const float *g,
                         const float *w, size_t len)
{
    double norm = sqrt(sum_squares(g, len)) * (double)r->scale.factor;

    most *= fmax(sqrt(sum_squares(w, len)), DDP__UNIT_WEIGHTS);
    return norm < most ? 1 : (float)(most / fmax(norm, DDP__UNIT_GRADIENT));
}

/* Zhang et al. 2019: half the way back to where the weights were the last time,
 * which is 0 before the first; -0 stands for a weight that was 0. */
DDP__CLONES static void look_ahead(float *restrict w, float *restrict slow,
                                   size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool begun = slow[i] != 0 || signbit(slow[i]);

        w[i] = begun ? slow[i] + 0.5f * (w[i] - slow[i]) : w[i];
        slow[i] = w[i] != 0 ? w[i] : -0.0f;
    }
}

/* Each output by itself if their gradients are clipped. */
static void train_span(const struct ddp__rule *r, const struct ddp__task *t,
                       const struct ddp__span *s)
{
    const struct ddp_optimizer *o = &t->call->optim.o;
    const float *g = (const float *)t->data[DDP__OPTIM_G] + s->begin;
    float *w = (float *)t->data[DDP__OPTIM_W] + s->begin;
    size_t slow = (size_t)ddp__rule_states(o) * ddp__len(t, DDP__OPTIM_W);
    bool clips = o->clip_unit > 0 && s->unit;
    size_t len = clips ? s->unit : s->len;
    struct ddp__rule unit = *r;

    unit.unit = s->unit;
    for (size_t i = 0; i < s->len; i += len) {
        if (clips)
            unit.scale.factor =
                r->scale.factor *
                unit_factor(r, (double)o->clip_unit, g + i, w + i, len);
        apply_rule(&unit, t, s->begin + i, len);
    }
    if (r->looks)
        look_ahead(w, (float *)t->data[DDP__OPTIM_STATE] + slow + s->begin,
                   s->len);
}

/* Without a divisor nothing changes: no sample counts, or the step is not to
 * be applied. */
int ddp__cpu_optim(const struct ddp__task *t)
{
    const struct ddp__optim *p = &t->call->optim;
    const double *stats = t->data[DDP__OPTIM_STATS];
    const float *g = t->data[DDP__OPTIM_G];
    float *w = t->data[DDP__OPTIM_W];
    bool decoupled = ddp__optimizer_uses(&p->o, DDP__DECOUPLED_DECAY);
    bool layerwise = ddp__optimizer_uses(&p->o, DDP__LAYERWISE);
    struct ddp__rule r;

    if (stats[DDP__STAT_DIVISOR] == 0)
        return 0;
    r = rule_of(t, stats);
    for (int i = 0; i < p->spans; i++) {
        const struct ddp__span *s = &p->span[i];
        float decay = s->decay || p->o.decay_all ? p->o.weight_decay : 0;

        r.scale.decay = decoupled || layerwise ? 0 : decay;
        r.decay = layerwise ? decay : 0;
        r.keep = decoupled ? 1 - t->lr * decay : 1;
        if (!s->running)
            train_span(&r, t, s);
        else if (stats[DDP__STAT_COUNT] != 0)
            update_running(g + s->begin, w + s->begin, s->len, s->momentum,
                           stats[DDP__STAT_COUNT]);
    }
    return 0;
}

/* A span of which something is not finite: where. */
static void locate_not_finite(const struct ddp__task *t,
                              const struct ddp__span *s,
                              double norm[DDP__NORMS])
{
    const float *g = t->data[DDP__SQNORM_G];

    for (size_t i = s->begin; i < s->begin + s->len; i++) {
        double place = (double)(t->call->optim.begin + i + 1);

        if (isfinite(g[i]))
            continue;
        if (s->running)
            norm[DDP__NORM_RUNNING] = place;
        else if (norm[DDP__NORM_TRAINED] == 0)
            norm[DDP__NORM_TRAINED] = place;
    }
}

/* A square of f32 fits into f64: a sum that is not finite has a term that is
 * not. */
static double span_squares(const struct ddp__task *t, const struct ddp__span *s,
                           double norm[DDP__NORMS])
{
    const float *g = t->data[DDP__SQNORM_G];
    double sum = sum_squares(g + s->begin, s->len);

    if (isfinite(sum))
        return s->running ? 0 : sum;
    locate_not_finite(t, s, norm);
    return NAN;
}

int ddp__cpu_sqnorm(const struct ddp__task *t)
{
    return ddp__norm_squares(t, span_squares);
}

/* In this form the average of a weight that no longer changes converges to
 * that weight. */
DDP__CLONES static void update_average(float *restrict dst,
                                       const float *restrict src, float share,
                                       size_t len)
{
    for (size_t i = 0; i < len; i++)
        dst[i] += share * (src[i] - dst[i]);
}

/* Without a divisor weights do not change, and neither does their average. */
int ddp__cpu_ema(const struct ddp__task *t)
{
    const double *stats = t->data[DDP__EMA_STATS];

    if (stats[DDP__STAT_DIVISOR] == 0)
        return 0;
    update_average(t->data[DDP__EMA_DST], t->data[DDP__EMA_SRC],
                   (float)ddp__ema_share(t), ddp__len(t, DDP__EMA_DST));
    return 0;
}
