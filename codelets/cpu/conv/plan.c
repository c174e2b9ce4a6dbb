/* plan.c - what a convolution or dense layer keeps between its runs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "cpu/cpu.h"
#include "plan.h"
#include "plan_shape.h"
#include "rows.h"
#include "way.h"

/* Samples that share a pass over copies of weights where these may be on small
 * pages.  Two cores of an Intel Xeon with AMX (a virtual machine) under load,
 * milliseconds of processor time on large and on small pages: one image by
 * ResNet-50 50, 52, by ResNet-18 21.1, 24.0; a step of ResNet-9 in two
 * sub-batches of eight, whose copies change, 227, 248.  16 images by ResNet-50
 * in slices of eight, an image: 48.1, 44.8, which is noise. */
enum { MANY_SAMPLES = 8 };

static int variant_new(struct ddp__plan *p, int n, struct ddp__variant **out)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, n);
    struct ddp__variant *v;
    int rc;

    if (!(v = calloc(1, sizeof(*v))))
        return ddp__fail(DDP_ENOMEM,
                         "out of memory for a convolution of %d samples", n);
    rc = ddp__dnn_new(&v->dnn, &s, p->transposed ? DDP__FWD : p->pass,
                      p->transposed);
    if (rc < 0) {
        free(v);
        return rc;
    }
    v->n = n;
    v->next = p->variant;
    __atomic_store_n(&p->variant, v, __ATOMIC_RELEASE);
    *out = v;
    return 0;
}

static struct ddp__variant *find_variant(struct ddp__plan *p, int n)
{
    struct ddp__variant *v = __atomic_load_n(&p->variant, __ATOMIC_ACQUIRE);

    while (v && v->n != n)
        v = v->next;
    return v;
}

int ddp__plan_primitive(struct ddp__plan *p, int n, struct ddp__dnn **out)
{
    struct ddp__variant *v = find_variant(p, n);
    int rc = 0;

    if (!v) {
        pthread_mutex_lock(&p->lock);
        if (!(v = find_variant(p, n)))
            rc = variant_new(p, n, &v);
        pthread_mutex_unlock(&p->lock);
    }
    if (!rc)
        *out = v->dnn;
    return rc;
}

static int plan_new(struct ddp__plan **out, const struct ddp__conv_shape *s,
                    enum ddp__conv_pass pass)
{
    const struct ddp__conv *k = &s->conv;
    struct ddp__conv_shape t;
    struct ddp__plan *p;

    if (!(p = calloc(1, sizeof(*p))))
        return ddp__fail(DDP_ENOMEM, "the plan of a convolution");
    p->shape = *s;
    p->pass = pass;
    p->weights = (size_t)s->o * (size_t)k->kh * (size_t)k->kw *
                 (size_t)(s->c / k->groups);
    p->transposed = pass == DDP__BWD_X && ddp__plan_transpose(s, &t);
    p->taps = (struct ddp__taps){0, 0, 1, 1, k->kh, k->kw};
    pthread_mutex_init(&p->lock, NULL);
    ddp__packs_init(&p->packs);
    ddp__packs_init(&p->folds);
    *out = p;
    return 0;
}

static void plan_free(struct ddp__plan *p);

static int count_phases(const struct ddp__plan *p)
{
    return p->phase ? p->shape.conv.sh * p->shape.conv.sw : 0;
}

/* A primitive computes the layer without them. */
static void phases_free(struct ddp__plan *p)
{
    for (int i = 0; i < count_phases(p); i++)
        if (p->phase[i])
            plan_free(p->phase[i]);
    free(p->phase);
    p->phase = NULL;
    p->way = DDP__WAY_PRIMITIVE;
}

static void plan_free(struct ddp__plan *p)
{
    struct ddp__variant *v, *next;

    phases_free(p);
    ddp__rows_free(p);
    if (p->product)
        plan_free(p->product);
    for (v = p->variant; v; v = next) {
        next = v->next;
        ddp__dnn_free(v->dnn);
        free(v);
    }
    ddp__packs_free(&p->packs);
    ddp__packs_free(&p->folds);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- phases ------------------------------------------------------------- */

/* Phase a in one direction: a layer without stride from `in` pixels to those
 * of dy, with `size` taps from `first` on, and padding before. */
struct phase {
    int in, first, size, before;
};

static struct phase phase_of(int a, int pixels, int kernel, int stride, int pad)
{
    struct phase p = {.in = (pixels - a + stride - 1) / stride,
                      .first = (a + pad) % stride,
                      .before = (a + pad) / stride};

    p.size = p.first < kernel ? (kernel - p.first + stride - 1) / stride : 0;
    return p;
}

/* *out remains NULL where there is no tap or pixel.  DDP_ENODEV: not available
 * in this way. */
static int phase_new(struct ddp__plan **out, const struct ddp__conv_shape *s,
                     int a, int b)
{
    const struct ddp__conv *k = &s->conv;
    struct phase v = phase_of(a, s->h, k->kh, k->sh, k->top);
    struct phase h = phase_of(b, s->w, k->kw, k->sw, k->left);
    struct ddp__conv_shape u = *s;
    int rc;

    if (v.in <= 0 || h.in <= 0 || v.size == 0 || h.size == 0)
        return 0;
    u.h = v.in;
    u.w = h.in;
    u.conv = ddp__conv_plain(v.size, h.size);
    u.conv.top = v.before;
    u.conv.left = h.before;
    if ((rc = plan_new(out, &u, DDP__BWD_X)) < 0)
        return rc;
    (*out)->taps =
        (struct ddp__taps){v.first, h.first, k->sh, k->sw, k->kh, k->kw};
    return (*out)->transposed ? 0
                              : ddp__fail(DDP_ENODEV, "a phase with cut edges");
}

static int phases_new(struct ddp__plan *p)
{
    const struct ddp__conv *k = &p->shape.conv;
    int count = k->sh * k->sw, rc = 0;

    if (!(p->phase = calloc((size_t)count, sizeof(struct ddp__plan *))))
        return ddp__fail(DDP_ENOMEM, "the phases of a convolution");
    for (int i = 0; i < count && !rc; i++)
        rc = phase_new(&p->phase[i], &p->shape, i / k->sw, i % k->sw);
    if (rc)
        phases_free(p);
    return rc == DDP_ENODEV ? 0 : rc;
}

/* ---- for calls ---------------------------------------------------------- */

static int product_new(struct ddp__plan *p)
{
    struct ddp__conv_shape s = ddp__patch_product(&p->patch, p->shape.n);
    int rc = plan_new(&p->product, &s, p->pass);

    if (!rc && p->patch.is_skinny)
        p->product->way = DDP__WAY_SKINNY;
    return rc;
}

/* What is run for the call's cap is made now. */
static int make_primitives(struct ddp__plan *p)
{
    struct ddp__dnn *d;
    int rc = 0;

    if (ddp__way_kernel(p))
        return 0;
    if (p->way == DDP__WAY_PATCHES)
        return make_primitives(p->product);
    for (int i = 0; i < count_phases(p) && !rc; i++)
        if (p->phase[i])
            rc = make_primitives(p->phase[i]);
    if (rc == DDP_ENODEV)
        phases_free(p);
    else if (rc || p->way == DDP__WAY_PHASES)
        return rc;
    return ddp__plan_primitive(p, p->shape.n, &d);
}

static enum ddp__conv_pass pass_of(enum ddp__op op)
{
    return ddp__op_is(op, DDP__IS_BWD_X)   ? DDP__BWD_X
           : ddp__op_is(op, DDP__IS_BWD_W) ? DDP__BWD_W
                                           : DDP__FWD;
}

/* The plan of a call, with its way of computing; no primitive is made. */
static int plan_of_call(const struct ddp__call *c, struct ddp__plan **out)
{
    struct ddp__conv_shape s;
    int rc;

    ddp__plan_shape_of(c, &s);
    if ((rc = plan_new(out, &s, pass_of(c->op))) < 0)
        return rc;
    ddp__way_choose(*out, c);
    (*out)->packs.calm = (*out)->folds.calm =
        c->op == DDP__OP_CONV_NORM && c->cap >= MANY_SAMPLES;
    if ((*out)->way == DDP__WAY_PATCHES)
        rc = product_new(*out);
    else if ((*out)->way == DDP__WAY_PHASES)
        rc = phases_new(*out);
    if (rc < 0)
        plan_free(*out);
    return rc;
}

/* Whether a primitive computes one image forward that may have parts. */
static bool may_split(const struct ddp__call *c, const struct ddp__plan *p)
{
    return c->split && c->cap == 1 && ddp__op_is(c->op, DDP__IS_CONV) &&
           p->pass == DDP__FWD && p->way == DDP__WAY_PRIMITIVE;
}

int ddp__cpu_conv_prepare(const struct ddp__call *c, void **plan)
{
    struct ddp__plan *p;
    int rc;

    if (ddp__op_is(c->op, DDP__IS_CONV) && c->conv.in)
        return ddp__fail(DDP_ENODEV, "conv: weights of some channels alone");
    if (c->sum && c->op != DDP__OP_CONV_NORM)
        return ddp__fail(DDP_ENODEV, "conv: a gradient that is added");
    if ((rc = plan_of_call(c, &p)) < 0)
        return rc;
    if ((rc = make_primitives(p)) == 0 && may_split(c, p))
        rc = ddp__rows_new(p);
    if (rc < 0)
        plan_free(p);
    else
        *plan = p;
    return rc;
}

void ddp__cpu_conv_release(void *plan)
{
    plan_free(plan);
}

/* ---- for people --------------------------------------------------------- */

static int list_names(const struct ddp__plan *p,
                      int (*each)(const char *name, void *arg), void *arg)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, p->shape.n);
    char name[DDP__DNN_NAME];
    int rc = 0;

    if (ddp__way_kernel(p))
        return each(ddp__way_kernel(p), arg);
    if (p->way == DDP__WAY_PATCHES)
        return list_names(p->product, each, arg);
    for (int i = 0; i < count_phases(p) && !rc; i++)
        if (p->phase[i])
            rc = list_names(p->phase[i], each, arg);
    if (p->way == DDP__WAY_PHASES)
        return rc;
    rc = ddp__dnn_find(&s, p->transposed ? DDP__FWD : p->pass, p->transposed,
                       name);
    return rc < 0 ? rc : each(name, arg);
}

int ddp__cpu_conv_names(const struct ddp__call *c,
                        int (*each)(const char *name, void *arg), void *arg)
{
    struct ddp__plan *p;
    int rc = plan_of_call(c, &p);

    if (rc < 0)
        return rc;
    rc = list_names(p, each, arg);
    plan_free(p);
    return rc;
}
