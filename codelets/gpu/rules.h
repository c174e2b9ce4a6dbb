/* rules.h - update rules of the optimizers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_GPU_RULES_H
#define DDP_GPU_RULES_H

#include "arith.h"
#include "ops_optim.h"

/* Entries of stats: see enum ddp__stat. */
enum { DDP__K_DIVISOR = 1, DDP__K_COUNT = 2, DDP__K_UPDATES = 6 };

struct ddp__k_optim_shared {
    bool looks;            /* Lookahead: it is time to go back */
    bool any;              /* whether a sample of the step counts */
    float factor;          /* of g: clipping and division */
    float share;           /* of running statistics: 1 / count */
    float rate1, correct2; /* Adam: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t),
                              with t the number of updates */
    float rate_g;          /* NAdam: of the gradient; rate1 is that of m */
    float rest;            /* RMSpropTF: of the 1 that m begins at */
    bool divides;          /* RAdam: by the root of v */
};

/* min(1, clip_norm / norm) / divisor */
DDP__DEVICE float ddp__k_gradient_factor(const struct ddp__k_optim *p)
{
    double divisor = p->stats[DDP__K_DIVISOR], clip = 1;

    if (p->clip_norm > 0) {
        clip = p->clip_norm / (sqrt(*p->norm) + 1e-6);
        clip = clip < 1 ? clip : 1;
    }
    return (float)(clip / divisor);
}

/* mu_t = beta1 (1 - q^t / 2), and the product of mu_1 to mu_t: its logarithm is
 * a series, each term of which has a geometric sum. */
DDP__DEVICE double ddp__k_nadam_mu(double beta1, double t)
{
    return beta1 * (1 - pow(DDP__NADAM_BASE, t * DDP__NADAM_DECAY) / 2);
}

DDP__DEVICE double ddp__k_nadam_product(double beta1, double t)
{
    double log_q = log(DDP__NADAM_BASE) * DDP__NADAM_DECAY, sum = 0, half = 1;

    for (int k = 1; k <= 52; k++) {
        half /= 2;
        sum +=
            half / k * exp(k * log_q) * expm1(k * t * log_q) / expm1(k * log_q);
    }
    return pow(beta1, t) * exp(-sum);
}

DDP__DEVICE void ddp__k_begin_nadam(const struct ddp__k_optim *p,
                                    struct ddp__k_optim_shared *sh, double t)
{
    double b1 = p->beta1, product = ddp__k_nadam_product(b1, t);
    double next = ddp__k_nadam_mu(b1, t + 1);

    sh->rate_g = (float)(p->lr * (1 - ddp__k_nadam_mu(b1, t)) / (1 - product));
    sh->rate1 = (float)(p->lr * next / (1 - product * next));
}

/* The mean that is divided by 1 - beta1^t, with the gradient once more. */
DDP__DEVICE void ddp__k_begin_nadamw(const struct ddp__k_optim *p,
                                     struct ddp__k_optim_shared *sh)
{
    sh->rate_g = sh->rate1 * (1 - p->beta1);
    sh->rate1 *= p->beta1;
}

DDP__DEVICE void ddp__k_begin_radam(const struct ddp__k_optim *p,
                                    struct ddp__k_optim_shared *sh, double t)
{
    double b2 = p->beta2, power = pow(b2, t), end = 2 / (1 - b2) - 1;
    double rho = end - 2 * t * power / (1 - power);
    double factor = (rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho);

    sh->divides = rho > 5;
    if (sh->divides)
        sh->rate1 *= (float)sqrt(factor * (1 - power));
}

/* Once for a block. */
DDP__DEVICE void ddp__k_begin_rule(const struct ddp__k_optim *p,
                                   struct ddp__k_optim_shared *sh)
{
    double count = p->stats[DDP__K_COUNT], t = p->stats[DDP__K_UPDATES];

    sh->any = p->stats[DDP__K_DIVISOR] != 0;
    sh->factor = ddp__k_gradient_factor(p);
    sh->share = count != 0 ? (float)(1 / count) : 0;
    sh->looks = p->slow && fmod(t, (double)p->lookahead) == 0;
    if (!p->corrects)
        return;
    sh->rate1 = (float)(p->lr / (1 - pow((double)p->beta1, t)));
    sh->correct2 = (float)(1 / sqrt(1 - pow((double)p->beta2, t)));
    sh->rest = (float)pow((double)p->beta2, t);
    if (p->kind == DDP_LAMB)
        sh->rate1 = (float)(1 / (1 - pow((double)p->beta1, t)));
    if (p->kind == DDP_NADAM)
        ddp__k_begin_nadam(p, sh, t);
    if (p->kind == DDP_NADAMW)
        ddp__k_begin_nadamw(p, sh);
    if (p->kind == DDP_RADAM)
        ddp__k_begin_radam(p, sh, t);
}

/* What an optimizer keeps for a weight; and what rules that are layerwise need
 * besides. */
struct ddp__k_states {
    float m, v, x;
    float w, decay, trust;
    float radial; /* AdamP: what the step has of w */
    bool updated; /* likewise: m and v are those after this step */
};

/* ---- rules: what is subtracted from a weight for the gradient d, and the new
 * states ----------------------------------------------------------------- */

DDP__DEVICE float ddp__k_sgd(const struct ddp__k_optim *p,
                             const struct ddp__k_optim_shared *sh, float d,
                             struct ddp__k_states *s)
{
    (void)sh;
    (void)s;
    return p->lr * d;
}

DDP__DEVICE float ddp__k_momentum(const struct ddp__k_optim *p,
                                  const struct ddp__k_optim_shared *sh, float d,
                                  struct ddp__k_states *s)
{
    (void)sh;
    s->m = p->momentum * s->m + d;
    return p->lr * s->m;
}

DDP__DEVICE float ddp__k_momentum_flux(const struct ddp__k_optim *p,
                                       const struct ddp__k_optim_shared *sh,
                                       float d, struct ddp__k_states *s)
{
    (void)sh;
    s->m = p->momentum * s->m + p->lr * d;
    return s->m;
}

DDP__DEVICE float ddp__k_nesterov(const struct ddp__k_optim *p,
                                  const struct ddp__k_optim_shared *sh, float d,
                                  struct ddp__k_states *s)
{
    (void)sh;
    s->m = p->momentum * s->m + d;
    return p->lr * (d + p->momentum * s->m);
}

DDP__DEVICE float ddp__k_adam(const struct ddp__k_optim *p,
                              const struct ddp__k_optim_shared *sh, float d,
                              struct ddp__k_states *s)
{
    s->m = p->beta1 * s->m + (1 - p->beta1) * d;
    s->v = p->beta2 * s->v + (1 - p->beta2) * (d * d);
    return sh->rate1 * s->m / (sqrtf(s->v) * sh->correct2 + p->eps);
}

DDP__DEVICE float ddp__k_amsgrad(const struct ddp__k_optim *p,
                                 const struct ddp__k_optim_shared *sh, float d,
                                 struct ddp__k_states *s)
{
    s->m = p->beta1 * s->m + (1 - p->beta1) * d;
    s->v = p->beta2 * s->v + (1 - p->beta2) * (d * d);
    s->x = s->x > s->v ? s->x : s->v;
    return sh->rate1 * s->m / (sqrtf(s->x) * sh->correct2 + p->eps);
}

DDP__DEVICE float ddp__k_nadam(const struct ddp__k_optim *p,
                               const struct ddp__k_optim_shared *sh, float d,
                               struct ddp__k_states *s)
{
    s->m = p->beta1 * s->m + (1 - p->beta1) * d;
    s->v = p->beta2 * s->v + (1 - p->beta2) * (d * d);
    return (sh->rate_g * d + sh->rate1 * s->m) /
           (sqrtf(s->v) * sh->correct2 + p->eps);
}

DDP__DEVICE float ddp__k_radam(const struct ddp__k_optim *p,
                               const struct ddp__k_optim_shared *sh, float d,
                               struct ddp__k_states *s)
{
    s->m = p->beta1 * s->m + (1 - p->beta1) * d;
    s->v = p->beta2 * s->v + (1 - p->beta2) * (d * d);
    return sh->rate1 * s->m / (sh->divides ? sqrtf(s->v) + p->eps : 1);
}

DDP__DEVICE float ddp__k_adabelief(const struct ddp__k_optim *p,
                                   const struct ddp__k_optim_shared *sh,
                                   float d, struct ddp__k_states *s)
{
    float off;

    s->m = p->beta1 * s->m + (1 - p->beta1) * d;
    off = d - s->m;
    s->v = p->beta2 * s->v + (1 - p->beta2) * (off * off) + p->eps;
    return sh->rate1 * s->m / (sqrtf(s->v) * sh->correct2 + p->eps);
}

DDP__DEVICE float ddp__k_lion(const struct ddp__k_optim *p,
                              const struct ddp__k_optim_shared *sh, float d,
                              struct ddp__k_states *s)
{
    float c = p->beta1 * s->m + (1 - p->beta1) * d;

    (void)sh;
    s->m = p->beta2 * s->m + (1 - p->beta2) * d;
    return c > 0 ? p->lr : c < 0 ? -p->lr : 0;
}

DDP__DEVICE float ddp__k_adagrad(const struct ddp__k_optim *p,
                                 const struct ddp__k_optim_shared *sh, float d,
                                 struct ddp__k_states *s)
{
    (void)sh;
    s->m += d * d;
    return p->lr * d / (sqrtf(s->m) + p->eps);
}

DDP__DEVICE float ddp__k_adadelta(const struct ddp__k_optim *p,
                                  const struct ddp__k_optim_shared *sh, float d,
                                  struct ddp__k_states *s)
{
    (void)sh;
    s->m = p->beta2 * s->m + (1 - p->beta2) * (d * d);
    d *= sqrtf(s->v + p->eps) / sqrtf(s->m + p->eps);
    s->v = p->beta2 * s->v + (1 - p->beta2) * (d * d);
    return p->lr * d;
}

DDP__DEVICE float ddp__k_rmsprop(const struct ddp__k_optim *p,
                                 const struct ddp__k_optim_shared *sh, float d,
                                 struct ddp__k_states *s)
{
    (void)sh;
    s->m = p->beta2 * s->m + (1 - p->beta2) * (d * d);
    d = d / (sqrtf(s->m) + p->eps);
    if (p->v)
        d = s->v = p->momentum * s->v + d;
    return p->lr * d;
}

DDP__DEVICE float ddp__k_rmsprop_tf(const struct ddp__k_optim *p,
                                    const struct ddp__k_optim_shared *sh,
                                    float d, struct ddp__k_states *s)
{
    s->m = p->beta2 * s->m + (1 - p->beta2) * (d * d);
    d = p->lr * d / sqrtf(s->m + (sh->rest + p->eps));
    if (p->v)
        d = s->v = p->momentum * s->v + d;
    return d;
}

DDP__DEVICE float ddp__k_adamp(const struct ddp__k_optim *p,
                               const struct ddp__k_optim_shared *sh, float d,
                               struct ddp__k_states *s)
{
    if (!s->updated)
        return ddp__k_adam(p, sh, d, s);
    return sh->rate1 * s->m / (sqrtf(s->v) * sh->correct2 + p->eps) -
           s->radial * s->w;
}

/* Without lr and trust. */
DDP__DEVICE float ddp__k_lamb_step(const struct ddp__k_optim *p,
                                   const struct ddp__k_optim_shared *sh,
                                   const struct ddp__k_states *s)
{
    return sh->rate1 * s->m / (sqrtf(s->v) * sh->correct2 + p->eps) +
           s->decay * s->w;
}

/* The means are those that the trust was found with. */
DDP__DEVICE float ddp__k_lamb(const struct ddp__k_optim *p,
                              const struct ddp__k_optim_shared *sh, float d,
                              struct ddp__k_states *s)
{
    (void)d;
    return p->lr * s->trust * ddp__k_lamb_step(p, sh, s);
}

DDP__DEVICE float ddp__k_lars(const struct ddp__k_optim *p,
                              const struct ddp__k_optim_shared *sh, float d,
                              struct ddp__k_states *s)
{
    (void)sh;
    s->m = p->momentum * s->m + s->trust * (d + s->decay * s->w);
    return p->lr * s->m;
}

DDP__DEVICE float ddp__k_apply_rule(const struct ddp__k_optim *p,
                                    const struct ddp__k_optim_shared *sh,
                                    float d, struct ddp__k_states *s)
{
    switch (p->kind) {
#define X(id, name, rule, ...)                                                 \
    case DDP_##id:                                                             \
        return ddp__k_##rule(p, sh, d, s);
        DDP__OPTIMIZERS(X)
#undef X
    case DDP_CUSTOM_OPTIMIZER:
        break; /* ddp__cuda_kernels_prepare() refuses it */
    }
    return 0;
}

/* What the sum of element e of a span is multiplied by. */
DDP__DEVICE float ddp__k_factor(const struct ddp__k_optim *p,
                                const struct ddp__k_span *s,
                                const struct ddp__k_optim_shared *sh, size_t e)
{
    struct ddp__k_units u;

    if (!(p->clip_unit > 0))
        return sh->factor;
    u = p->unit[s - p->span];
    return u.len ? sh->factor * p->unit_factor[u.first + (e - s->begin) / u.len]
                 : sh->factor;
}

/* What a rule is given for element e: g / divisor, clipped, and decay unless
 * the rule adds it. */
DDP__DEVICE float ddp__k_gradient(const struct ddp__k_optim *p,
                                  const struct ddp__k_span *s,
                                  const struct ddp__k_optim_shared *sh,
                                  size_t e)
{
    float d = p->g[e] * ddp__k_factor(p, s, sh, e), most = p->clip_value;

    if (most > 0)
        d = d > most ? most : d < -most ? -most : d;
    return p->layerwise ? d : d + s->decay * p->w[e];
}

#endif
