/* plan.c - what a convolution or dense layer keeps between its runs
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "cpu/cpu.h"
#include "norm_conv.h"
#include "plan.h"
#include "plan_shape.h"
#include "plan_variant.h"
#include "rows.h"
#include "way.h"

/* Samples that share a pass over copies of weights where these may be on small
 * pages.  Two cores of an Intel Xeon with AMX (a virtual machine) under load,
 * milliseconds of processor time on large and on small pages: one image by
 * ResNet-50 50, 52, by ResNet-18 21.1, 24.0; a step of ResNet-9 in two
 * sub-batches of eight, whose copies change, 227, 248.  16 images by ResNet-50
 * in slices of eight, an image: 48.1, 44.8, which is noise. */
enum { MANY_SAMPLES = 8 };

static int plan_of_layer(struct ddp__plan **out,
                         const struct ddp__conv_shape *s,
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

/* A primitive computes the layer without them. */
static void phases_free(struct ddp__plan *p)
{
    for (int i = 0; i < ddp__plan_phases(p); i++)
        if (p->phase[i])
            ddp__plan_free(p->phase[i]);
    free(p->phase);
    p->phase = NULL;
    p->way = DDP__WAY_PRIMITIVE;
}

void ddp__plan_free(struct ddp__plan *p)
{
    phases_free(p);
    ddp__rows_free(p);
    if (p->product)
        ddp__plan_free(p->product);
    ddp__plan_variants_free(p);
    ddp__packs_free(&p->packs);
    ddp__packs_free(&p->folds);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* ---- parts of a plan ---------------------------------------------------- */

/* *out remains NULL where there is no tap or pixel.  DDP_ENODEV: not available
 * in this way. */
static int phase_new(struct ddp__plan **out, const struct ddp__conv_shape *s,
                     int a, int b)
{
    struct ddp__conv_shape phase;
    struct ddp__taps taps;
    int rc;

    if (!ddp__plan_phase(s, a, b, &phase, &taps))
        return 0;
    if ((rc = plan_of_layer(out, &phase, DDP__BWD_X)) < 0)
        return rc;
    (*out)->taps = taps;
    if (ddp__way_takes_integers(*out))
        (*out)->way = DDP__WAY_I16;
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

static int product_new(struct ddp__plan *p)
{
    struct ddp__conv_shape s = ddp__patch_product(&p->patch, p->shape.n);
    int rc = plan_of_layer(&p->product, &s, p->pass);

    if (!rc && p->patch.is_skinny)
        p->product->way = DDP__WAY_SKINNY;
    return rc;
}

/* ---- for calls ---------------------------------------------------------- */

static enum ddp__conv_pass pass_of(enum ddp__op op)
{
    return ddp__op_is(op, DDP__IS_BWD_X)   ? DDP__BWD_X
           : ddp__op_is(op, DDP__IS_BWD_W) ? DDP__BWD_W
                                           : DDP__FWD;
}

int ddp__plan_new(const struct ddp__call *c, struct ddp__plan **out)
{
    struct ddp__conv_shape s;
    int rc;

    ddp__plan_shape_of(c, &s);
    if ((rc = plan_of_layer(out, &s, pass_of(c->op))) < 0)
        return rc;
    ddp__way_choose(*out, c);
    (*out)->packs.calm = (*out)->folds.calm =
        c->op == DDP__OP_CONV_NORM && c->cap >= MANY_SAMPLES;
    if ((*out)->way == DDP__WAY_PATCHES)
        rc = product_new(*out);
    else if ((*out)->way == DDP__WAY_PHASES)
        rc = phases_new(*out);
    if (rc < 0)
        ddp__plan_free(*out);
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
    for (int i = 0; i < ddp__plan_phases(p) && !rc; i++)
        if (p->phase[i])
            rc = make_primitives(p->phase[i]);
    if (rc == DDP_ENODEV)
        phases_free(p);
    else if (rc || p->way == DDP__WAY_PHASES)
        return rc;
    return ddp__plan_primitive(p, p->shape.n, &d);
}

/* Whether a primitive computes one image forward that may have parts. */
static bool may_split(const struct ddp__call *c, const struct ddp__plan *p)
{
    return c->split && c->cap == 1 && ddp__op_is(c->op, DDP__IS_CONV) &&
           p->pass == DDP__FWD && p->way == DDP__WAY_PRIMITIVE;
}

static bool is_of_norm(const struct ddp__call *c)
{
    return c->op == DDP__OP_NORM_CONV_FWD || c->op == DDP__OP_NORM_CONV_BWD_W ||
           c->op == DDP__OP_NORM_CONV_BWD_X;
}

int ddp__cpu_conv_prepare(const struct ddp__call *c, void **plan)
{
    struct ddp__plan *p;
    int rc;

    if (ddp__op_is(c->op, DDP__IS_CONV) && c->conv.in)
        return ddp__fail(DDP_ENODEV, "conv: weights of some channels alone");
    if ((rc = ddp__plan_new(c, &p)) < 0)
        return rc;
    if (c->sum && c->op != DDP__OP_CONV_NORM && !ddp__way_adds(p))
        rc = ddp__fail(DDP_ENODEV, "conv: a gradient that is added");
    if (is_of_norm(c) && !ddp__norm_conv_can(p))
        rc = ddp__fail(DDP_ENODEV, "conv: of a batch norm");
    if (!rc && (rc = make_primitives(p)) == 0 && may_split(c, p))
        rc = ddp__rows_new(p);
    if (rc < 0)
        ddp__plan_free(p);
    else
        *plan = p;
    return rc;
}

void ddp__cpu_conv_release(void *plan)
{
    ddp__plan_free(plan);
}
