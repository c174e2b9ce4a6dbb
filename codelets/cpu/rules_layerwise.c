/* rules_layerwise.c - update rules with norms of the whole parameter, on CPU
 * workers SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "rules.h"

/* Sums of squares, in 16 interleaved parts of f64: the order of the additions
 * follows from the length alone. */
struct squares {
    double w[16], d[16];
};

DDP__INLINE void add_squares(struct squares *s, size_t i, float w, float d)
{
    s->w[i % 16] += (double)w * w;
    s->d[i % 16] += (double)d * d;
}

static double norm_of(const double part[16])
{
    double sum = 0;

    for (int i = 0; i < 16; i++)
        sum += part[i];
    return sqrt(sum);
}

/* rate1 is without lr. */
DDP__INLINE float lamb_step(const struct ddp__rule *r, float m, float v,
                            float w)
{
    return r->rate1 * m / (sqrtf(v) * r->correct2 + r->eps) + r->decay * w;
}

/* Adam's means of gradients d and of their squares. */
DDP__INLINE void add_means(const struct ddp__rule *r, float d, float *m,
                           float *v)
{
    *m = r->beta1 * *m + (1 - r->beta1) * d;
    *v = r->beta2 * *v + (1 - r->beta2) * (d * d);
}

/* The means, and what |w| / |step| is made of. */
DDP__CLONES static void lamb_means(const struct ddp__rule *r,
                                   const float *restrict g,
                                   const float *restrict w, float *restrict m,
                                   float *restrict v, size_t len,
                                   struct squares *sum)
{
    struct ddp__scale s = r->scale;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        add_means(r, d, &m[i], &v[i]);
        add_squares(sum, i, w[i], lamb_step(r, m[i], v[i], w[i]));
    }
}

DDP__CLONES void ddp__rule_lamb(const struct ddp__rule *r,
                                const float *restrict g, float *restrict w,
                                float *restrict m, float *restrict v,
                                size_t len)
{
    struct squares sum = {{0}, {0}};
    double size, step;
    float rate = r->lr;

    lamb_means(r, g, w, m, v, len, &sum);
    size = norm_of(sum.w);
    step = norm_of(sum.d);
    if (r->decay > 0 && size > 0 && step > 0)
        rate *= (float)(size / step);
    for (size_t i = 0; i < len; i++)
        w[i] -= rate * lamb_step(r, m[i], v[i], w[i]);
}

DDP__CLONES static float lars_trust(const struct ddp__rule *r,
                                    const float *restrict g,
                                    const float *restrict w, size_t len)
{
    struct squares sum = {{0}, {0}};
    double size, slope;

    for (size_t i = 0; i < len; i++)
        add_squares(&sum, i, w[i], ddp__gradient(r->scale, g[i], w[i]));
    size = norm_of(sum.w);
    slope = norm_of(sum.d);
    return size > 0 && slope > 0 ? (float)(DDP__LARS_TRUST * size /
                                           (slope + (double)r->decay * size))
                                 : 1;
}

DDP__CLONES void ddp__rule_lars(const struct ddp__rule *r,
                                const float *restrict g, float *restrict w,
                                float *restrict m, float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, keep = r->momentum, decay = r->decay;
    float trust = decay > 0 ? lars_trust(r, g, w, len) : 1;

    (void)v;
    for (size_t i = 0; i < len; i++) {
        m[i] =
            keep * m[i] + trust * (ddp__gradient(s, g[i], w[i]) + decay * w[i]);
        w[i] -= lr * m[i];
    }
}

/* ---- AdamP: Heo et al., ICLR 2021 --------------------------------------- */

/* Of weights w, their gradients g, and Adam's steps s. */
struct products {
    double ww, gg, wg, ws;
};

DDP__INLINE float adam_step(const struct ddp__rule *r, float m, float v)
{
    return r->rate1 * m / (sqrtf(v) * r->correct2 + r->eps);
}

DDP__CLONES static void adamp_means(const struct ddp__rule *r,
                                    const float *restrict g,
                                    const float *restrict w, float *restrict m,
                                    float *restrict v, size_t len)
{
    struct ddp__scale s = r->scale;

    for (size_t i = 0; i < len; i++)
        add_means(r, ddp__gradient(s, g[i], w[i]), &m[i], &v[i]);
}

/* In 16 interleaved parts, as the squares. */
DDP__CLONES static struct products
adamp_products(const struct ddp__rule *r, const float *restrict g,
               const float *restrict w, const float *restrict m,
               const float *restrict v, size_t len)
{
    struct ddp__scale s = r->scale;
    double part[4][16] = {{0}};
    struct products p = {0, 0, 0, 0};

    for (size_t i = 0; i < len; i++) {
        double d = ddp__gradient(s, g[i], w[i]), x = w[i];

        part[0][i % 16] += x * x;
        part[1][i % 16] += d * d;
        part[2][i % 16] += x * d;
        part[3][i % 16] += x * adam_step(r, m[i], v[i]);
    }
    for (int k = 0; k < 16; k++) {
        p.ww += part[0][k];
        p.gg += part[1][k];
        p.wg += part[2][k];
        p.ws += part[3][k];
    }
    return p;
}

/* Of the angle between weights and gradients. */
static double cosine(const struct ddp__rule *r, const struct products *p)
{
    double eps = r->eps;

    return fabs(p->wg) / (fmax(sqrt(p->ww), eps) * fmax(sqrt(p->gg), eps));
}

/* How long the parts are that steps are projected in, where gradients are
 * nearly at right angles to the weights; 0: they are not. */
static size_t projected_part(const struct ddp__rule *r, const float *g,
                             const float *w, const float *m, const float *v,
                             size_t len)
{
    struct products all = {0, 0, 0, 0};
    double most = 0;

    for (size_t i = 0; r->unit && i < len; i += r->unit) {
        struct products p =
            adamp_products(r, g + i, w + i, m + i, v + i, r->unit);

        most = fmax(most, cosine(r, &p));
        all.ww += p.ww;
        all.gg += p.gg;
        all.wg += p.wg;
    }
    if (r->unit && most < DDP__ADAMP_DELTA / sqrt((double)r->unit))
        return r->unit;
    return r->unit && cosine(r, &all) < DDP__ADAMP_DELTA / sqrt((double)len)
               ? len
               : 0;
}

/* Steps without the part of them that is along the weights. */
DDP__CLONES static void adamp_move(const struct ddp__rule *r, float keep,
                                   float radial, float *restrict w,
                                   const float *restrict m,
                                   const float *restrict v, size_t len)
{
    for (size_t i = 0; i < len; i++)
        w[i] = keep * w[i] - (adam_step(r, m[i], v[i]) - radial * w[i]);
}

void ddp__rule_adamp(const struct ddp__rule *r, const float *g, float *w,
                     float *m, float *v, size_t len)
{
    float keep = 1 - (1 - r->keep) * (float)DDP__ADAMP_DECAY;
    size_t part;

    adamp_means(r, g, w, m, v, len);
    part = projected_part(r, g, w, m, v, len);
    if (!part)
        adamp_move(r, r->keep, 0, w, m, v, len);
    for (size_t i = 0; part && i < len; i += part) {
        struct products p = adamp_products(r, g + i, w + i, m + i, v + i, part);
        double length = sqrt(p.ww) + (double)r->eps;

        adamp_move(r, keep, (float)(p.ws / (length * length)), w + i, m + i,
                   v + i, part);
    }
}
