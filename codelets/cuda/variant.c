/* variant.c - variants of a call for numbers of samples, and their scratch
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bn.h"
#include "conv.h"
#include "gpu/after.h"
#include "launch.h"
#include "matmul.h"
#include "tasks.h"
#include "variant.h"
#include "worker.h"

/* The most workspace an engine may have, and the least that is reserved, for
 * variants to come. */
enum { MAX_WORKSPACE = 512 << 20, MIN_WORKSPACE = 32 << 20 };

static void variant_free(struct ddp__cuda_variant *v)
{
    ddp__cuda_matmul_free(v->matmul);
    free(v);
}

static size_t variant_workspace(const struct ddp__cuda_variant *v)
{
    if (v->dnn)
        return v->dnn->workspace;
    return v->matmul ? ddp__cuda_matmul_workspace(v->matmul) : 0;
}

/* The variant for n samples on a target; the caller has the lock. */
static int get_variant(const struct ddp__call *c, struct ddp__cuda_plan *p,
                       struct ddp__cudnn_target *t, int n,
                       struct ddp__cuda_variant **out)
{
    struct ddp__cuda_variant **end = &p->variant, *v;
    int rc;

    while (*end && ((*end)->n != n || (*end)->target != t))
        end = &(*end)->next;
    if ((*out = *end))
        return 0;
    if (!(v = calloc(1, sizeof(*v))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a plan");
    v->target = t;
    v->n = n;
    if ((rc = p->make(c, p, v)) < 0) {
        variant_free(v);
        return rc;
    }
    *end = *out = v;
    return 0;
}

/* Those for n samples, of all targets; *workspace is raised to what they need.
 */
static int get_variants(const struct ddp__call *c, struct ddp__cuda_plan *p,
                        int n, size_t *workspace)
{
    struct ddp__cuda_variant *v;
    int rc = 0;

    for (int i = 0; i < ddp__cudnn_target_count() && rc == 0; i++)
        if ((rc = get_variant(c, p, &ddp__cudnn_targets[i], n, &v)) == 0 &&
            variant_workspace(v) > *workspace)
            *workspace = variant_workspace(v);
    return rc;
}

/* The variants for the cap decide how much workspace is reserved: the limit is
 * MAX_WORKSPACE while they are made, and what they took, but at least
 * MIN_WORKSPACE, for variants that follow. */
static int make_variants(const struct ddp__call *c, struct ddp__cuda_plan *p)
{
    size_t workspace = MIN_WORKSPACE;
    int rc;

    p->limit = MAX_WORKSPACE;
    if ((rc = get_variants(c, p, c->cap, &workspace)) < 0)
        return rc;
    p->limit = ddp__cuda_round(workspace);
    for (int i = 0; i < DDP__FEWER && rc == 0; i++)
        if (c->fewer[i])
            rc = get_variants(c, p, c->fewer[i], &workspace);
    return rc;
}

int ddp__cuda_plan_new(const struct ddp__call *c, ddp__cuda_make_f *make,
                       size_t side, void **out)
{
    struct ddp__cuda_plan *p;
    int rc;

    if ((rc = ddp__cudnn_targets_ready()) < 0)
        return rc;
    if (!(p = calloc(1, sizeof(*p))))
        return ddp__fail(DDP_ENOMEM, "out of memory for a plan");
    pthread_mutex_init(&p->lock, NULL);
    p->make = make;
    p->side = side;
    if ((rc = make_variants(c, p)) < 0) {
        ddp__cuda_plan_free(p);
        return rc;
    }
    ddp__cuda_want_scratch(p->side + p->limit);
    *out = p;
    return 0;
}

void ddp__cuda_plan_free(void *plan)
{
    struct ddp__cuda_plan *p = plan;
    struct ddp__cuda_variant *v;

    if (!p)
        return;
    while ((v = p->variant)) {
        p->variant = v->next;
        variant_free(v);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- many at a time ----------------------------------------------------- */

enum { MAX_THREADS = 64 };

struct warm {
    const struct ddp__call *const *call;
    int calls;
    atomic_int next;
};

static int prepare_slow_call(const struct ddp__call *c, void **plan)
{
    if (ddp__op_is(c->op, DDP__IS_CONV))
        return ddp__cuda_conv_prepare(c, plan);
    if (c->op == DDP__OP_BN_FWD || c->op == DDP__OP_BN_BWD)
        return ddp__cuda_bn_prepare(c, plan);
    return DDP_ENODEV; /* nothing that takes long */
}

static void *warm_calls(void *arg)
{
    struct warm *w = arg;
    int i;

    while ((i = atomic_fetch_add(&w->next, 1)) < w->calls) {
        void *plan = NULL;

        if (prepare_slow_call(w->call[i], &plan) == 0)
            ddp__cuda_plan_free(plan);
    }
    return NULL;
}

void ddp__cuda_plans_warm(const struct ddp__call *const *call, int calls,
                          int threads)
{
    struct warm w = {.call = call, .calls = calls};
    pthread_t id[MAX_THREADS];
    int n = 0;

    if (ddp__cudnn_targets_ready() < 0)
        return;
    while (n + 1 < threads && n < MAX_THREADS &&
           pthread_create(&id[n], NULL, warm_calls, &w) == 0)
        n++;
    warm_calls(&w);
    while (n > 0)
        pthread_join(id[--n], NULL);
}

void ddp__cuda_plans_close(void)
{
    ddp__cudnn_plans_free();
    ddp__cudnn_targets_free();
}

int ddp__cuda_run(const struct ddp__task *t, struct ddp__cuda_run *r)
{
    struct ddp__cuda_plan *p = t->plan;
    struct ddp__cuda_variant *v;
    int rc;

    if (!(r->worker = ddp__cuda_self()))
        return DDP_ENODEV;
    pthread_mutex_lock(&p->lock);
    rc = get_variant(t->call, p, ddp__cudnn_target_of(r->worker->device), t->n,
                     &v);
    pthread_mutex_unlock(&p->lock);
    if (rc < 0)
        return rc;
    if (r->worker->scratch_size < p->side + variant_workspace(v))
        return ddp__fail(DDP_EDEVICE, "%zu bytes of scratch, expected %zu",
                         r->worker->scratch_size,
                         p->side + variant_workspace(v));
    r->variant = v;
    r->side = r->worker->scratch;
    r->workspace = r->side + p->side;
    return 0;
}

void *ddp__cuda_take(struct ddp__cuda_run *r, size_t size)
{
    void *p = r->side;

    r->side += ddp__cuda_round(size);
    return p;
}

const void *ddp__cuda_align(struct ddp__cuda_run *r, const void *ptr,
                            size_t size)
{
    void *copy;

    if (!ptr || (uintptr_t)ptr % 16 == 0)
        return ptr;
    copy = ddp__cuda_take(r, size);
    if (ddp__cuda_check(cudaMemcpyAsync(copy, ptr, size,
                                        cudaMemcpyDeviceToDevice,
                                        r->worker->stream),
                        "copying weights to where they are aligned") < 0)
        return NULL;
    return copy;
}

size_t ddp__cuda_weight_len(const struct ddp__call *c)
{
    struct ddp__xwy at = ddp__op_xwy(c->op);
    const struct ddp__view *x = &c->buf[at.x], *y = &c->buf[at.y];
    size_t in, out;

    if (ddp__op_is(c->op, DDP__IS_CONV))
        return (size_t)y->shape.c * (size_t)c->conv.kh * (size_t)c->conv.kw *
               (size_t)ddp__conv_in(&c->conv, x->shape.c);
    in = (size_t)x->shape.h * (size_t)x->shape.w * (size_t)x->shape.c;
    out = (size_t)y->shape.h * (size_t)y->shape.w * (size_t)y->shape.c;
    return in * out;
}

int ddp__cuda_bias_act(const struct ddp__cuda_run *r, enum ddp_dtype type,
                       void *y, const float *bias, enum ddp_act act,
                       size_t rows, size_t c)
{
    struct ddp__k_bias_act p = {.items = (unsigned)ddp__groups(rows * c),
                                .type = type,
                                .wide = ddp__aligned(y),
                                .act = act,
                                .bias = bias,
                                .y = y,
                                .len = rows * c,
                                .c = (int)c};

    return ddp__cuda_launched(ddp__k_bias_act(&p, r->worker->stream),
                              "bias and activation");
}
