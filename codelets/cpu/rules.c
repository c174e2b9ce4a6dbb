/* rules.c - update rules, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>

#include "rules.h"

DDP__CLONES void ddp__rule_sgd(const struct ddp__rule *r,
                               const float *restrict g, float *restrict w,
                               float *m, float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr;

    (void)m;
    (void)v;
    for (size_t i = 0; i < len; i++)
        w[i] -= lr * ddp__gradient(s, g[i], w[i]);
}

DDP__CLONES void ddp__rule_momentum(const struct ddp__rule *r,
                                    const float *restrict g, float *restrict w,
                                    float *restrict m, float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, keep = r->momentum;

    (void)v;
    for (size_t i = 0; i < len; i++) {
        m[i] = keep * m[i] + ddp__gradient(s, g[i], w[i]);
        w[i] -= lr * m[i];
    }
}

DDP__CLONES void ddp__rule_momentum_flux(const struct ddp__rule *r,
                                         const float *restrict g,
                                         float *restrict w, float *restrict m,
                                         float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, keep = r->momentum;

    (void)v;
    for (size_t i = 0; i < len; i++) {
        m[i] = keep * m[i] + lr * ddp__gradient(s, g[i], w[i]);
        w[i] -= m[i];
    }
}

DDP__CLONES void ddp__rule_nesterov(const struct ddp__rule *r,
                                    const float *restrict g, float *restrict w,
                                    float *restrict m, float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, keep = r->momentum;

    (void)v;
    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = keep * m[i] + d;
        w[i] -= lr * (d + keep * m[i]);
    }
}

DDP__CLONES void ddp__rule_adam(const struct ddp__rule *r,
                                const float *restrict g, float *restrict w,
                                float *restrict m, float *restrict v,
                                size_t len)
{
    struct ddp__scale s = r->scale;
    float keep = r->keep, eps = r->eps;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;
    float rate = r->rate1, correct = r->correct2;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b1 * m[i] + c1 * d;
        v[i] = b2 * v[i] + c2 * (d * d);
        w[i] = keep * w[i] - rate * m[i] / (sqrtf(v[i]) * correct + eps);
    }
}

DDP__CLONES void ddp__rule_amsgrad(const struct ddp__rule *r,
                                   const float *restrict g, float *restrict w,
                                   float *restrict m, float *restrict v,
                                   size_t len)
{
    struct ddp__scale s = r->scale;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;
    float rate = r->rate1, correct = r->correct2, eps = r->eps;
    float *restrict x = r->x;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b1 * m[i] + c1 * d;
        v[i] = b2 * v[i] + c2 * (d * d);
        x[i] = x[i] > v[i] ? x[i] : v[i];
        w[i] -= rate * m[i] / (sqrtf(x[i]) * correct + eps);
    }
}

DDP__CLONES void ddp__rule_nadam(const struct ddp__rule *r,
                                 const float *restrict g, float *restrict w,
                                 float *restrict m, float *restrict v,
                                 size_t len)
{
    struct ddp__scale s = r->scale;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;
    float rate = r->rate1, rate_g = r->rate_g;
    float correct = r->correct2, eps = r->eps, keep = r->keep;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b1 * m[i] + c1 * d;
        v[i] = b2 * v[i] + c2 * (d * d);
        w[i] = keep * w[i] -
               (rate_g * d + rate * m[i]) / (sqrtf(v[i]) * correct + eps);
    }
}

/* The divisor is 1 where the rule has none. */
DDP__CLONES void ddp__rule_radam(const struct ddp__rule *r,
                                 const float *restrict g, float *restrict w,
                                 float *restrict m, float *restrict v,
                                 size_t len)
{
    struct ddp__scale s = r->scale;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;
    float rate = r->rate1, share = r->divides, eps = r->divides ? r->eps : 1;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b1 * m[i] + c1 * d;
        v[i] = b2 * v[i] + c2 * (d * d);
        w[i] -= rate * m[i] / (sqrtf(v[i]) * share + eps);
    }
}

DDP__CLONES void ddp__rule_adabelief(const struct ddp__rule *r,
                                     const float *restrict g, float *restrict w,
                                     float *restrict m, float *restrict v,
                                     size_t len)
{
    struct ddp__scale s = r->scale;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;
    float rate = r->rate1, correct = r->correct2, eps = r->eps, keep = r->keep;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]), off;

        m[i] = b1 * m[i] + c1 * d;
        off = d - m[i];
        v[i] = b2 * v[i] + c2 * (off * off) + eps;
        w[i] = keep * w[i] - rate * m[i] / (sqrtf(v[i]) * correct + eps);
    }
}

DDP__CLONES void ddp__rule_lion(const struct ddp__rule *r,
                                const float *restrict g, float *restrict w,
                                float *restrict m, float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float b1 = r->beta1, c1 = 1 - b1, b2 = r->beta2, c2 = 1 - b2;
    float lr = r->lr, keep = r->keep;

    (void)v;
    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]), c = b1 * m[i] + c1 * d;
        float step = c > 0 ? lr : c < 0 ? -lr : 0;

        w[i] = keep * w[i] - step;
        m[i] = b2 * m[i] + c2 * d;
    }
}

DDP__CLONES void ddp__rule_adagrad(const struct ddp__rule *r,
                                   const float *restrict g, float *restrict w,
                                   float *restrict m, float *v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, eps = r->eps;

    (void)v;
    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] += d * d;
        w[i] -= lr * d / (sqrtf(m[i]) + eps);
    }
}

DDP__CLONES void ddp__rule_adadelta(const struct ddp__rule *r,
                                    const float *restrict g, float *restrict w,
                                    float *restrict m, float *restrict v,
                                    size_t len)
{
    struct ddp__scale s = r->scale;
    float b2 = r->beta2, c2 = 1 - b2, lr = r->lr, eps = r->eps;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b2 * m[i] + c2 * (d * d);
        d *= sqrtf(v[i] + eps) / sqrtf(m[i] + eps);
        v[i] = b2 * v[i] + c2 * (d * d);
        w[i] -= lr * d;
    }
}

DDP__CLONES static void rmsprop_plain(const struct ddp__rule *r,
                                      const float *restrict g,
                                      float *restrict w, float *restrict m,
                                      size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, eps = r->eps;
    float b2 = r->beta2, c2 = 1 - b2;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b2 * m[i] + c2 * (d * d);
        w[i] -= lr * d / (sqrtf(m[i]) + eps);
    }
}

/* With momentum v of the scaled gradients. */
DDP__CLONES static void rmsprop_momentum(const struct ddp__rule *r,
                                         const float *restrict g,
                                         float *restrict w, float *restrict m,
                                         float *restrict v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, eps = r->eps;
    float b2 = r->beta2, c2 = 1 - b2, keep = r->momentum;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b2 * m[i] + c2 * (d * d);
        v[i] = keep * v[i] + d / (sqrtf(m[i]) + eps);
        w[i] -= lr * v[i];
    }
}

void ddp__rule_rmsprop(const struct ddp__rule *r, const float *g, float *w,
                       float *m, float *v, size_t len)
{
    if (v)
        rmsprop_momentum(r, g, w, m, v, len);
    else
        rmsprop_plain(r, g, w, m, len);
}

DDP__CLONES static void rmsprop_tf_plain(const struct ddp__rule *r,
                                         const float *restrict g,
                                         float *restrict w, float *restrict m,
                                         size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, rest = r->rest + r->eps;
    float b2 = r->beta2, c2 = 1 - b2;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b2 * m[i] + c2 * (d * d);
        w[i] -= lr * d / sqrtf(m[i] + rest);
    }
}

/* With momentum v of the steps. */
DDP__CLONES static void rmsprop_tf_momentum(const struct ddp__rule *r,
                                            const float *restrict g,
                                            float *restrict w,
                                            float *restrict m,
                                            float *restrict v, size_t len)
{
    struct ddp__scale s = r->scale;
    float lr = r->lr, rest = r->rest + r->eps;
    float b2 = r->beta2, c2 = 1 - b2, keep = r->momentum;

    for (size_t i = 0; i < len; i++) {
        float d = ddp__gradient(s, g[i], w[i]);

        m[i] = b2 * m[i] + c2 * (d * d);
        v[i] = keep * v[i] + lr * d / sqrtf(m[i] + rest);
        w[i] -= v[i];
    }
}

void ddp__rule_rmsprop_tf(const struct ddp__rule *r, const float *g, float *w,
                          float *m, float *v, size_t len)
{
    if (v)
        rmsprop_tf_momentum(r, g, w, m, v, len);
    else
        rmsprop_tf_plain(r, g, w, m, len);
}
