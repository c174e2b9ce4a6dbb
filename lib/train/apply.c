/* apply.c - steps with gradients that the program computes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "engine/ranks.h"
#include "graph/param_values.h"
#include "train/steps.h"
#include "train/trainer.h"

/* The gradients of this rank, and where they come from. */
struct own {
    const struct ddp__params *params; /* not owned */
    ddp_gradient_f fill;
    void *arg;
    float scale; /* of the loss */
    size_t len;
    float *sum; /* bucket after bucket; owned */
};

static int fill_param(const struct own *o, const struct ddp__param_block *b,
                      int i, float *bucket)
{
    const struct ddp_param *p = &b->param[i];
    size_t len = ddp__param_len(p);
    char name[DDP__PARAM_NAME];
    float *g;
    int rc;

    if (p->role == DDP_RUNNING)
        return 0;
    if (!(g = calloc(len + 1, sizeof(*g))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu gradients", len);
    ddp__param_name(b, i, name);
    if ((rc = o->fill(name, g, len, o->arg)) != 0)
        rc = ddp__fail(rc < 0 ? rc : DDP_ESTOPPED,
                       "the program's function of gradients returned %d for %s",
                       rc, name);
    for (size_t k = 0; k < len; k++)
        g[k] *= o->scale;
    if (rc == 0)
        ddp__param_import(p, g, bucket + b->offset + b->param_offset[i]);
    free(g);
    return rc;
}

static int fill_all(const struct own *o)
{
    const struct ddp__params *p = o->params;
    int rc = 0;

    for (int k = 0; k < p->blocks && rc == 0; k++) {
        float *bucket = o->sum;

        for (int b = 0; b < p->block[k].bucket; b++)
            bucket += p->bucket[b].len;
        for (int i = 0; i < p->block[k].params && rc == 0; i++)
            rc = fill_param(o, &p->block[k], i, bucket);
    }
    return rc;
}

static int gather_own(struct ddp_trainer *t, struct own *o, double divisor)
{
    for (int b = 0; b < o->params->buckets; b++)
        o->len += o->params->bucket[b].len;
    if (!(o->sum = calloc(o->len + 1, sizeof(*o->sum))))
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu gradients", o->len);
    return divisor > 0 ? fill_all(o) : ddp__trainer_check(t);
}

/* Every rank gets here, even if something has failed on it: then its divisor is
 * no number. */
static int apply_sums(struct ddp_trainer *t, const struct own *o,
                      double divisor, int failed)
{
    double all = failed < 0 ? NAN : divisor;
    int rc = ddp_allreduce(t->ddp, &all, 1, DDP_F64, DDP_SUM);

    if (rc < 0 || all == 0)
        return rc;
    if (isnan(all))
        return ddp__ranks_agree(t->ddp, failed);
    if ((rc = ddp_allreduce(t->ddp, o->sum, o->len, DDP_F32, DDP_SUM)) < 0 ||
        (rc = ddp__trainer_apply(t, o->sum, all)) < 0)
        return rc;
    return 1;
}

int ddp_trainer_apply(ddp_trainer_t *t, ddp_gradient_f fill, void *arg,
                      double divisor)
{
    struct own o = {.fill = fill, .arg = arg};
    int rc = ddp__trainer_check(t);

    if (rc < 0)
        return rc;
    rc = ddp_trainer_wait(t);
    o.params = t->engine->params;
    o.scale = (float)t->skips.loss_scale;
    if (rc == 0)
        rc = ddp__trainer_need_optimizer(t);
    if (rc == 0 && ddp__is_stream(t->loader.data))
        rc = ddp__fail(DDP_EINVAL, "steps of a stream are made of its samples, "
                                   "not of other gradients");
    if (rc == 0 && !(divisor >= 0 && isfinite(divisor)))
        rc = ddp__fail(DDP_EINVAL, "divisor %g, expected 0 or more", divisor);
    if (rc == 0 && divisor > 0 && !fill)
        rc = ddp__fail_null("fill");
    if (rc == 0)
        rc = gather_own(t, &o, divisor);
    rc = apply_sums(t, &o, divisor, rc);
    free(o.sum);
    return rc;
}
