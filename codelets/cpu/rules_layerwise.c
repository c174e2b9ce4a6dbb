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

/* The means, and what |w| / |step| is made of. */
DDP__CLONES static void lamb_means(const struct ddp__rule *r,
                                   const float *restrict g,
                                   const float *restrict w, float *restrict m,
                                   float *restrict v, size_t len,
                                   struct squares *sum)
{
    struct ddp__scale s = r->scale;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b1 * m[i] + c1 * d;
        v[i] = b2 * v[i] + c2 * (d * d);
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
