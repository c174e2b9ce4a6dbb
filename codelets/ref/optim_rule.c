/* optim_rule.c - update rules: what is subtracted from a weight
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "optim_rule.h"

/* NAdam's beta1 of update t */
static double nadam_mu(const struct ddp__ref_rule *r, double t)
{
    if (r->o.kind == DDP_NADAMW)
        return r->o.beta1;
    return r->o.beta1 * (1 - pow(DDP__NADAM_BASE, t * DDP__NADAM_DECAY) / 2);
}

double ddp__ref_nadam_product(const struct ddp__ref_rule *r)
{
    double product = 1;

    for (double t = 1; t <= r->updates && product > 1e-30; t++)
        product *= nadam_mu(r, t);
    return product;
}

static double sgd(const struct ddp__ref_rule *r, size_t i, double g)
{
    (void)i;
    return r->lr * g;
}

/* v = momentum v + g;  w -= lr v */
static double momentum(const struct ddp__ref_rule *r, size_t i, double g)
{
    double v = (double)r->o.momentum * r->m[i] + g;

    r->m[i] = (float)v;
    return r->lr * v;
}

/* v = momentum v + lr g;  w -= v */
static double momentum_flux(const struct ddp__ref_rule *r, size_t i, double g)
{
    double v = (double)r->o.momentum * r->m[i] + r->lr * g;

    r->m[i] = (float)v;
    return v;
}

/* As momentum, and one step further. */
static double nesterov(const struct ddp__ref_rule *r, size_t i, double g)
{
    double v = (double)r->o.momentum * r->m[i] + g;

    r->m[i] = (float)v;
    return r->lr * (g + (double)r->o.momentum * v);
}

/* m and v are decayed means of g and g^2. */
static void update_means(const struct ddp__ref_rule *r, size_t i, double g,
                         double *m, double *v)
{
    double b1 = r->o.beta1, b2 = r->o.beta2;

    *m = b1 * r->m[i] + (1 - b1) * g;
    *v = b2 * r->v[i] + (1 - b2) * g * g;
    r->m[i] = (float)*m;
    r->v[i] = (float)*v;
}

/* Each of them is divided by 1 - beta^t. */
static double adam(const struct ddp__ref_rule *r, size_t i, double g)
{
    double m, v;

    update_means(r, i, g, &m, &v);
    return r->lr * (m / r->correct1) / (sqrt(v / r->correct2) + r->o.eps);
}

/* x is the largest v so far, and takes its place. */
static double amsgrad(const struct ddp__ref_rule *r, size_t i, double g)
{
    double m, v, x;

    update_means(r, i, g, &m, &v);
    x = fmax(r->x[i], v);
    r->x[i] = (float)x;
    return r->lr * (m / r->correct1) / (sqrt(x / r->correct2) + r->o.eps);
}

/* w -= lr ((1 - mu_t) / (1 - p_t) g + mu_t+1 / (1 - p_t+1) m) over the root of
 * v / (1 - beta2^t), with p_t = mu_1 ... mu_t.  In NAdamW mu_t is beta1, and
 * both are divided by 1 - p_t. */
static double nadam(const struct ddp__ref_rule *r, size_t i, double g)
{
    double next = nadam_mu(r, r->updates + 1), m, v;

    update_means(r, i, g, &m, &v);
    g *= (1 - nadam_mu(r, r->updates)) / (1 - r->product);
    m *= next / (1 - r->product * (r->o.kind == DDP_NADAM ? next : 1));
    return r->lr * (g + m) / (sqrt(v / r->correct2) + r->o.eps);
}

/* How much the variance of Adam's division by the root of v is more than after
 * many updates; 0: too few of them were made to say. */
static double rectification(const struct ddp__ref_rule *r)
{
    double b2 = r->o.beta2, t = r->updates, end = 2 / (1 - b2) - 1;
    double rho = end - 2 * t * pow(b2, t) / (1 - pow(b2, t));

    if (rho <= 5)
        return 0;
    return sqrt((rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho));
}

static double radam(const struct ddp__ref_rule *r, size_t i, double g)
{
    double factor = rectification(r), m, v;

    update_means(r, i, g, &m, &v);
    if (factor > 0)
        m *= factor * sqrt(r->correct2) / (sqrt(v) + r->o.eps);
    return r->lr * m / r->correct1;
}

/* v is the decayed mean of (g - m)^2, and eps is added to it each time. */
static double adabelief(const struct ddp__ref_rule *r, size_t i, double g)
{
    double b1 = r->o.beta1, b2 = r->o.beta2;
    double m = b1 * r->m[i] + (1 - b1) * g;
    double v = b2 * r->v[i] + (1 - b2) * (g - m) * (g - m) + r->o.eps;

    r->m[i] = (float)m;
    r->v[i] = (float)v;
    return r->lr * (m / r->correct1) / (sqrt(v / r->correct2) + r->o.eps);
}

/* The sign of one mean is the step, and another is kept. */
static double lion(const struct ddp__ref_rule *r, size_t i, double g)
{
    double b1 = r->o.beta1, b2 = r->o.beta2, m = r->m[i];
    double c = b1 * m + (1 - b1) * g;

    r->m[i] = (float)(b2 * m + (1 - b2) * g);
    return r->lr * ((c > 0) - (c < 0));
}

/* v, here in m, is the sum of all g^2. */
static double adagrad(const struct ddp__ref_rule *r, size_t i, double g)
{
    double v = r->m[i] + g * g;

    r->m[i] = (float)v;
    return r->lr * g / (sqrt(v) + r->o.eps);
}

/* Decayed means of g^2 and of the squares of what it makes of g. */
static double adadelta(const struct ddp__ref_rule *r, size_t i, double g)
{
    double b2 = r->o.beta2, eps = r->o.eps;
    double m = b2 * r->m[i] + (1 - b2) * g * g;
    double d = g * sqrt(r->v[i] + eps) / sqrt(m + eps);

    r->m[i] = (float)m;
    r->v[i] = (float)(b2 * r->v[i] + (1 - b2) * d * d);
    return r->lr * d;
}

static double rmsprop(const struct ddp__ref_rule *r, size_t i, double g)
{
    double b2 = r->o.beta2, v = b2 * r->m[i] + (1 - b2) * g * g;
    double d = g / (sqrt(v) + r->o.eps);

    r->m[i] = (float)v;
    if (r->o.momentum > 0)
        r->v[i] = (float)(d += r->o.momentum * r->v[i]);
    return r->lr * d;
}

/* 1 - correct2 is what remains of the 1 that v, here in m, begins at. */
static double rmsprop_tf(const struct ddp__ref_rule *r, size_t i, double g)
{
    double b2 = r->o.beta2, v = b2 * r->m[i] + (1 - b2) * g * g;
    double d = r->lr * g / sqrt(v + (1 - r->correct2) + r->o.eps);

    r->m[i] = (float)v;
    if (r->o.momentum > 0)
        r->v[i] = (float)(d += r->o.momentum * r->v[i]);
    return d;
}

/* Without its part along the weights. */
static double adamp(const struct ddp__ref_rule *r, size_t i, double g)
{
    double w = r->w[i];

    return adam(r, i, g) - r->lr * r->radial * w;
}

/* Adam's step, and the decay, times trust. */
static double lamb(const struct ddp__ref_rule *r, size_t i, double g)
{
    double step = adam(r, i, g) + r->lr * r->decay * r->w[i];

    return r->trust * step;
}

/* The gradient, and the decay, times trust. */
static double lars(const struct ddp__ref_rule *r, size_t i, double g)
{
    return momentum(r, i, r->trust * (g + r->decay * r->w[i]));
}

double ddp__ref_rule_step(const struct ddp__ref_rule *r, size_t i, double g)
{
    switch (r->o.kind) {
#define X(id, name, rule, ...)                                                 \
    case DDP_##id:                                                             \
        return rule(r, i, g);
        DDP__OPTIMIZERS(X)
#undef X
    case DDP_CUSTOM_OPTIMIZER:
        break; /* custom_span() */
    }
    return 0;
}

/* LAMB's step of weight i before it is made, without lr and trust; without
 * decay, that of Adam. */
double ddp__ref_lamb_step(const struct ddp__ref_rule *r, size_t i, double g)
{
    double b1 = r->o.beta1, b2 = r->o.beta2;
    double m = b1 * r->m[i] + (1 - b1) * g;
    double v = b2 * r->v[i] + (1 - b2) * g * g;

    return m / r->correct1 / (sqrt(v / r->correct2) + r->o.eps) +
           r->decay * r->w[i];
}
