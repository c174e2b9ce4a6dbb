/* groups.c - how each parameter of a chain is trained
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   Clark et al. 2020 (ELECTRA: a decay of rates by layers); timm,
 *          param_groups_layer_decay.
 */
#include "config.h"

#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/update.h"
#include "train/groups.h"

static struct ddp__rule *rule_at(const struct ddp_trainer *t, int block, int i)
{
    return &t->rule[block * DDP_MAX_PARAMS + i];
}

/* ---- groups ------------------------------------------------------------- */

/* Whether a pattern matches the name, or that of a layer around it. */
static bool matches(const char *pattern, const char *name)
{
    char part[DDP__PARAM_NAME];

    for (size_t len = 1; name[len - 1]; len++) {
        if (name[len] && name[len] != '.')
            continue;
        memcpy(part, name, len);
        part[len] = 0;
        if (fnmatch(pattern, part, 0) == 0)
            return true;
    }
    return false;
}

/* What a group says of a parameter; it may leave either to those before. */
static void apply_to(struct ddp__rule *r, const struct ddp_param_group *g)
{
    if (g->lr >= 0)
        r->lr = g->lr;
    if (g->weight_decay >= 0)
        r->decay = g->weight_decay;
}

static int apply_group(struct ddp_trainer *t, const struct ddp__params *p,
                       const struct ddp_param_group *g)
{
    char name[DDP__PARAM_NAME];
    bool found = false;

    for (int k = 0; k < p->blocks; k++)
        for (int i = 0; i < p->block[k].params; i++) {
            ddp__param_name(&p->block[k], i, name);
            if (!matches(g->match, name))
                continue;
            apply_to(rule_at(t, k, i), g);
            found = true;
        }
    return found ? 0
                 : ddp__fail(DDP_EINVAL,
                             "no parameter or layer of the chain matches '%s'",
                             g->match);
}

static int check_group(const struct ddp_param_group *g, int i)
{
    if (!g->match)
        return ddp__fail(DDP_EINVAL, "group %d matches NULL", i);
    if (isfinite(g->lr) && isfinite(g->weight_decay))
        return 0;
    return ddp__fail(DDP_EINVAL,
                     "group '%s': lr %g, weight_decay %g, expected numbers",
                     g->match, (double)g->lr, (double)g->weight_decay);
}

static int apply_groups(struct ddp_trainer *t, const struct ddp__params *p)
{
    const struct ddp_train_config *c = &t->cfg;
    int rc = 0;

    if (c->group_count && !c->groups)
        return ddp__fail(DDP_EINVAL, "groups is NULL, expected %d",
                         c->group_count);
    for (int i = 0; i < c->group_count && rc == 0; i++)
        if ((rc = check_group(&c->groups[i], i)) == 0)
            rc = apply_group(t, p, &c->groups[i]);
    return rc;
}

/* ---- layers ------------------------------------------------------------- */

static bool is_norm(const struct ddp__param_block *b)
{
    bool norm = b->params > 0;

    for (int i = 0; i < b->params; i++)
        norm = norm && (b->param[i].role == DDP_NORM ||
                        b->param[i].role == DDP_RUNNING);
    return norm;
}

/* The length of the name of the layer that a block is in: up to its first
 * number, as in "layer1.0", or its first word. */
static size_t layer_len(const char *prefix)
{
    const char *s = prefix;
    size_t first = strcspn(s, ".");

    while (*s && !isdigit((unsigned char)*s)) {
        s += strcspn(s, ".");
        s += *s == '.';
    }
    return *s ? (size_t)(s - prefix) + strcspn(s, ".") : first;
}

static bool same_layer(const struct ddp__param_block *a,
                       const struct ddp__param_block *b)
{
    size_t len = layer_len(a->prefix);

    return len == layer_len(b->prefix) && !strncmp(a->prefix, b->prefix, len);
}

/* From the last block to the first. */
static void decay_layers(struct ddp_trainer *t, const struct ddp__params *p)
{
    double factor = 1;

    for (int k = p->blocks - 1; k >= 0; k--) {
        const struct ddp__param_block *b = &p->block[k];

        for (int i = 0; i < b->params; i++) {
            struct ddp__rule *r = rule_at(t, k, i);

            r->lr = (float)(r->lr * factor);
        }
        if (k && !same_layer(b, b - 1) && !is_norm(b))
            factor *= t->cfg.layer_decay;
    }
}

/* ---- frozen ones -------------------------------------------------------- */

/* A layer is if all that it trains is. */
static bool is_frozen(const struct ddp_trainer *t, const struct ddp__params *p,
                      int block)
{
    const struct ddp__param_block *b = &p->block[block];
    int count = 0;

    for (int i = 0; i < b->params; i++)
        if (b->param[i].role != DDP_RUNNING) {
            if (rule_at(t, block, i)->lr > 0)
                return false;
            count++;
        }
    return count > 0;
}

static int note_frozen(struct ddp_trainer *t, const struct ddp__params *p)
{
    int frozen = 0;

    for (int k = 0; k < p->blocks; k++)
        frozen += t->frozen[k] = is_frozen(t, p, k);
    return frozen < p->blocks
               ? 0
               : ddp__fail(DDP_EINVAL, "all layers are frozen: there is "
                                       "nothing to train");
}

int ddp__groups_resolve(struct ddp_trainer *t)
{
    const struct ddp__params *p = ddp__params_of(t->chain);
    float decay = t->cfg.layer_decay;
    int rc;

    if (!p)
        return ddp_errcode();
    if (!(decay >= 0 && decay <= 1))
        return ddp__fail(DDP_EINVAL, "layer_decay %g, expected 0 to 1",
                         (double)decay);
    if (t->cfg.group_count == 0 && (decay == 0 || decay == 1))
        return 0;
    t->rule =
        calloc((size_t)(p->blocks + 1) * DDP_MAX_PARAMS, sizeof(*t->rule));
    t->frozen = calloc((size_t)p->blocks + 1, sizeof(*t->frozen));
    if (!t->rule || !t->frozen)
        return ddp__fail(DDP_ENOMEM, "out of memory for groups of parameters");
    for (int i = 0; i < p->blocks * DDP_MAX_PARAMS; i++)
        t->rule[i] = (struct ddp__rule){1, -1};
    if ((rc = apply_groups(t, p)) < 0)
        return rc;
    if (decay > 0)
        decay_layers(t, p);
    return note_frozen(t, p);
}
