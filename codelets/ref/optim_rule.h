/* optim_rule.h - update rules: what is subtracted from a weight
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#ifndef DDP_REF_OPTIM_RULE_H
#define DDP_REF_OPTIM_RULE_H

#include "ops.h"

/* What the rule needs besides gradient, weight and state. */
struct ddp__ref_rule {
    struct ddp_optimizer o;
    double lr, divisor, clip;
    double correct1, correct2; /* Adam: 1 - beta^updates */
    double updates;
    double product;      /* NAdam: of mu_1 to mu_updates */
    double *g;           /* of the span: the mean gradient, clipped */
    double decay, trust; /* LAMB, LARS: of the span; see trust_of() */
    double radial;       /* AdamP: see take_radial() */
    float *w;
    float *m, *v, *x; /* states, of the whole bucket */
    float *slow;      /* Lookahead's, likewise */
};

/* NAdam's mu_1 ... mu_updates */
double ddp__ref_nadam_product(const struct ddp__ref_rule *r);

/* What is subtracted from weight i, whose gradient is g; state changes. */
double ddp__ref_rule_step(const struct ddp__ref_rule *r, size_t i, double g);

/* LAMB's step of weight i before it is made, without lr and trust; without
 * decay, that of Adam. */
double ddp__ref_lamb_step(const struct ddp__ref_rule *r, size_t i, double g);

#endif
