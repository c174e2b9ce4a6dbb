/* result.c - what steps leave: their end, failures, gradients */
#include "config.h"

#include <stdatomic.h>

#include "base/error.h"
#include "engine/engine.h"

/* ---- waiting ------------------------------------------------------------ */

/* Whether all steps so far are whole, and if not, what the caller is told. */
static int outcome(struct ddp__engine *e)
{
    int rc = ddp__flow_error(&e->flow);

    if (rc == 0)
        return e->torn ? ddp__fail(DDP_ETORN, "an earlier step failed half "
                                              "way: load the weights again")
                       : 0;
    ddp__flow_wait(&e->flow);
    if (atomic_load(&e->flow.updated_step) >= e->flow.failed_step)
        e->torn = true;
    else
        atomic_store(&e->flow.rc, 0); /* weights are as before that step */
    return e->torn ? ddp__fail(rc, "%s; some weights had been updated",
                               e->flow.message)
                   : rc;
}

int ddp__engine_wait(struct ddp__engine *e, int64_t number,
                     struct ddp__result *r)
{
    int rc;

    starpu_pthread_mutex_lock(&e->lock);
    while (e->finished <= number)
        starpu_pthread_cond_wait(&e->done, &e->lock);
    if (r)
        *r = e->result[number % (e->spec.run_ahead + 1)];
    starpu_pthread_mutex_unlock(&e->lock);
    if ((rc = outcome(e)) < 0 && r)
        r->step = -1;
    return rc;
}

int ddp__engine_wait_all(struct ddp__engine *e)
{
    ddp__flow_wait(&e->flow);
    return outcome(e);
}

/* ---- gradients ----------------------------------------------------------- */

/* Nothing of a pullback reaches an auxiliary branch. */
static bool is_written(const ddp_graph_t *g, const struct ddp__block *b)
{
    for (int i = 0; i < g->values; i++)
        if (g->value[i]->role == DDP__GRAD &&
            g->value[i]->bucket == b->bucket &&
            g->value[i]->offset == b->offset * 4)
            return true;
    return false;
}

int ddp__engine_gradient(struct ddp__engine *e, const char *name, float *out,
                         size_t len, double scale)
{
    const struct ddp__block *b;
    struct ddp__handle *h;
    const float *grad;
    int i, rc;

    if ((rc = ddp__params_find(e->params, name, &b, &i)) < 0)
        return rc;
    if (ddp__param_len(&b->param[i]) != len)
        return ddp__fail(DDP_ESHAPE, "%s has %zu values, not %zu", name,
                         ddp__param_len(&b->param[i]), len);
    if (b->param[i].role == DDP_RUNNING)
        return ddp__fail(DDP_EINVAL, "%s is a statistic: it has no gradient",
                         name);
    h = &e->lane[0].grad[b->bucket];
    if (!is_written(e->graph, b) || !e->grad_begun[b->bucket])
        return ddp__fail(DDP_EINVAL, "%s: no gradient has been computed", name);
    if (!(grad = ddp__handle_open(h, false, "gradients")))
        return DDP_EINVAL;
    ddp__param_export(&b->param[i], grad + b->offset + b->param_offset[i], out);
    ddp__handle_close(h);
    for (size_t k = 0; k < len; k++)
        out[k] = (float)(out[k] * scale);
    return 0;
}
