/* rules.h - update rules of the optimizers, on CPU workers
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_CPU_RULES_H
#define DDP_CPU_RULES_H

#include "ops_optim.h"
#include "cpu.h"

/* What makes the gradient of a weight from the sum g. */
struct ddp__scale {
    float factor; /* clipping by norm, and division */
    float most;   /* what it is clipped at; infinite: it is not */
    float decay;  /* times w is added */
};

DDP__INLINE float ddp__gradient(struct ddp__scale s, float g, float w)
{
    float d = g * s.factor;

    d = d > s.most ? s.most : d;
    d = d < -s.most ? -s.most : d;
    return d + s.decay * w;
}

/* What the rules need, as f32. */
struct ddp__rule {
    struct ddp__scale scale;
    float lr, momentum, beta1, beta2, eps;
    float keep;            /* AdamW: what is left of w, 1 - lr decay */
    float rate1, correct2; /* Adam: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t),
                              with t the number of updates */
    float rate_g;          /* NAdam: of the gradient; rate1 is that of m */
    float rest;            /* RMSpropTF: of the 1 that m begins at */
    bool divides;          /* RAdam: by the root of v */
    float decay;           /* LAMB, LARS: of the span */
    size_t unit;           /* AdamP: elements of an output of the span, or 0 */
    bool looks;            /* Lookahead: it is time to go back */
    float *x;              /* the third state, of the span */
};

/* Change the len weights w of a span, whose gradients sum to g, and their
 * states m and v. */
#define X(id, name, rule, ...)                                                 \
    void ddp__rule_##rule(const struct ddp__rule *r, const float *g, float *w, \
                          float *m, float *v, size_t len);
DDP__OPTIMIZERS(X)
#undef X

#endif
