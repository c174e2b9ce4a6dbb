/* result.c - the results of steps: their end, failures, gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/lane_buffers.h"
#include "engine/result.h"
#include "graph/param_values.h"

/* ---- waiting ------------------------------------------------------------ */

/* Nothing that a failed step has computed is of use. */
static void forget_step(struct ddp__engine *e)
{
    memset(e->grad_begun, 0,
           sizeof(*e->grad_begun) *
               (size_t)(e->spec.lanes * e->params->buckets));
    for (int l = 0; l < e->spec.lanes; l++)
        ddp__engine_retry_memory(e, l);
    ddp__handle_drop_missing(&e->norm);
}

/* 0 if all steps up to this one are complete, else the error of the first that
 * is not.  A later one that has failed here, as the reading of its input may
 * long before, is another matter: the other ranks do not know of it yet, and
 * all have to submit equally many steps. */
static int steps_outcome(struct ddp__engine *e, int64_t number)
{
    int rc = ddp__task_group_error(&e->group);

    if (rc < 0 && atomic_load(&e->group.failed_step) > number)
        return 0;
    if (rc == 0)
        return e->torn ? ddp__fail(DDP_ETORN, "an earlier step failed half "
                                              "way: load the weights again")
                       : 0;
    ddp__task_group_wait(&e->group);
    forget_step(e);
    if (atomic_load(&e->group.updated_step) >= e->group.failed_step) {
        e->torn = true;
    } else {
        e->failed = e->group.failed_step;
        atomic_store(&e->group.rc, 0); /* weights are unchanged */
    }
    return e->torn ? ddp__fail(rc, "%s; some weights had been updated",
                               e->group.message)
                   : rc;
}

int ddp__engine_wait(struct ddp__engine *e, int64_t number,
                     struct ddp__result *r)
{
    int rc;

    if (number >= e->submitted) /* this would wait forever */
        return ddp__fail(DDP_EINVAL, "step %lld was not submitted",
                         (long long)number);
    ddp__lock_acquire(&e->lock);
    while (e->finished <= number)
        ddp__lock_wait(&e->lock);
    if (r)
        *r = e->result[number % (e->spec.run_ahead + 1)];
    ddp__lock_release(&e->lock);
    if ((rc = steps_outcome(e, number)) < 0 && r)
        r->step = -1;
    return rc;
}

int ddp__engine_wait_all(struct ddp__engine *e)
{
    ddp__task_group_wait(&e->group);
    return steps_outcome(e, INT64_MAX);
}

/* Steps before the one that failed are applied, and none after it is.  A step
 * may also fail to be submitted when its updates have been. */
int64_t ddp__engine_settle(struct ddp__engine *e)
{
    int rc = ddp__engine_wait_all(e);
    int64_t next = e->failed >= 0 ? e->failed : e->submitted;

    e->failed = -1;
    if (!e->torn && atomic_load(&e->group.updated_step) >= next) {
        e->torn = true;
        rc = steps_outcome(e, INT64_MAX);
    }
    if (e->torn)
        return rc;
    ddp__lock_acquire(&e->lock);
    e->submitted = e->finished = next;
    ddp__lock_release(&e->lock);
    return next;
}

/* ---- gradients ----------------------------------------------------------- */

/* A pullback does not run auxiliary branches. */
static bool is_written(const ddp_graph_t *g, const struct ddp__param_block *b)
{
    for (int i = 0; i < g->values; i++)
        if (g->value[i]->role == DDP__GRAD &&
            g->value[i]->bucket == b->bucket &&
            g->value[i]->offset == b->offset * 4)
            return true;
    return false;
}

/* A parameter's gradient: a sum over samples, in our order of elements. */
struct gradient {
    const struct ddp_param *param;
    struct ddp__handle *handle;
    float *sum;
};

/* Open the accumulator that holds a parameter's gradient. */
static int open_gradient(struct ddp__engine *e, const char *name,
                         const float *values, size_t len, bool write,
                         struct gradient *out)
{
    const struct ddp__param_block *b;
    int i, rc;

    if ((rc = ddp__params_find_for(e->params, name, values, len, &b, &i)) < 0)
        return rc;
    out->param = &b->param[i];
    out->handle = &e->lane[0].grad[b->bucket];
    if (out->param->role == DDP_RUNNING)
        return ddp__fail(DDP_EINVAL, "%s is a statistic and has no gradient",
                         name);
    if (!is_written(e->graph, b) || !e->grad_begun[b->bucket])
        return ddp__fail(DDP_EINVAL, "%s: no gradient has been computed", name);
    if (!(out->sum = ddp__handle_open(out->handle, write, "gradients")))
        return ddp_errcode();
    out->sum += b->offset + b->param_offset[i];
    return 0;
}

static float divided(float sum, double divisor)
{
    return (float)(sum * (1 / divisor));
}

int ddp__engine_gradient(struct ddp__engine *e, const char *name, float *out,
                         size_t len, double divisor)
{
    struct gradient g;
    int rc = open_gradient(e, name, out, len, false, &g);

    if (rc < 0)
        return rc;
    ddp__param_export(g.param, g.sum, out);
    ddp__handle_close(g.handle);
    for (size_t k = 0; k < len; k++)
        out[k] = divided(out[k], divisor);
    return 0;
}

/* Multiplying a quotient by the divisor need not give the sum again, so a value
 * that equals the one from ddp__engine_gradient() keeps its sum. */
int ddp__engine_set_gradient(struct ddp__engine *e, const char *name,
                             const float *in, size_t len, double divisor)
{
    float *sum = malloc(len * sizeof(*sum));
    struct gradient g;
    int rc;

    if (!sum)
        return ddp__fail(DDP_ENOMEM, "out of memory for %zu gradients", len);
    if ((rc = open_gradient(e, name, in, len, true, &g)) == 0) {
        ddp__param_export(g.param, g.sum, sum);
        for (size_t k = 0; k < len; k++)
            if (divided(sum[k], divisor) != in[k])
                sum[k] = (float)(in[k] * divisor);
        ddp__param_import(g.param, sum, g.sum);
        ddp__handle_close(g.handle);
    }
    free(sum);
    return rc;
}
