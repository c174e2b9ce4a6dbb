/* packed.c - forward passes by libddp's kernels that read packed weights
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The factors of a norm become a part of the weights while these are packed:
 * a copy of them all would be written and read in between, and fresh memory
 * costs more than the products.
 */
#include "config.h"

#include "conv_onednn.h"
#include "conv_weights.h"
#include "cpu/amx/amx_pixels.h"
#include "cpu/amx/amx_weight.h"
#include "cpu/backend.h"
#include "cpu/product/i16_conv.h"
#include "cpu/product/i16_weight.h"
#include "cpu/product/pixels.h"
#include "cpu/product/thin.h"
#include "cpu/wino/wino.h"
#include "infer.h"
#include "packed.h"
#include "plan_shape.h"

enum { IN = DDP__CONV_IN, WEIGHT = DDP__CONV_WEIGHT, OUT = DDP__CONV_OUT };

struct pack_source {
    const struct ddp__plan *plan;
    const float *w;
    const float *by; /* factors of filters; NULL: there are none */
};

static int pack_for_wino(const void *arg, void *to, int part)
{
    const struct pack_source *f = arg;
    struct ddp__conv_shape s = ddp__plan_shape(f->plan, 1);

    return ddp__wino_pack(&s, f->w, f->by, f->plan->transposed, part, to);
}

uint64_t ddp__packed_key(const struct ddp__task *t, const struct ddp__plan *p)
{
    return p->packs.shared && t->common[WEIGHT]
               ? ddp__shared_pack_key(t->common[WEIGHT], t->data[WEIGHT],
                                      p->weights)
               : 0;
}

static int run_wino(const struct ddp__task *t, struct ddp__plan *p,
                    const float *by, const float *bias)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, t->n);
    struct pack_source from = {p, t->data[WEIGHT], by};
    struct ddp__pack *k;
    int rc;

    rc = ddp__pack_get(&p->packs, &k, NULL, t->id[WEIGHT], t->version[WEIGHT],
                       &(struct ddp__packing){
                           pack_for_wino, &from, ddp__wino_parts(&s),
                           ddp__wino_packed_size(&s), ddp__packed_key(t, p)});
    if (rc < 0)
        return rc;
    rc = ddp__wino_run(&s, t->data[IN], k->data, s.conv.bias ? bias : NULL,
                       t->data[OUT]);
    ddp__pack_put(&p->packs, k);
    return rc;
}

static int pack_for_inference(const void *arg, void *to, int part)
{
    const struct pack_source *f = arg;
    const struct ddp__plan *p = f->plan;

    p->infer->pack(&p->shape, f->w, f->by, part, to);
    return 0;
}

static int run_inference(const struct ddp__task *t, struct ddp__plan *p,
                         const float *by, const float *bias)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, t->n);
    struct pack_source from = {p, t->data[WEIGHT], by};
    struct ddp__pack *k;
    int rc = ddp__pack_get(
        &p->packs, &k, NULL, t->id[WEIGHT], t->version[WEIGHT],
        &(struct ddp__packing){pack_for_inference, &from, p->infer->parts(&s),
                               p->infer->packed_size(&s), 0});

    if (rc < 0)
        return rc;
    rc = p->infer->run(&s, t->data[IN], k->data, bias, t->data[OUT]);
    ddp__pack_put(&p->packs, k);
    return rc;
}

static int pack_for_pixels(const void *arg, void *to, int part)
{
    const struct pack_source *f = arg;
    struct ddp__conv_shape s = ddp__plan_shape(f->plan, 1);
    struct ddp__conv_shape thin = ddp__thin_product(&s);

    if (f->plan->way == DDP__WAY_THIN)
        ddp__pixels_pack(&thin, f->w, NULL, f->plan->transposed, part, to);
    else
        ddp__amx_weight_pack(&s, f->w, f->plan->transposed, to);
    return 0;
}

static int multiply_pixels(const struct ddp__task *t, const struct ddp__plan *p,
                           const void *packed)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, t->n);

    if (p->way != DDP__WAY_THIN)
        return ddp__amx_pixels_run(&s, t->data[IN], packed, t->data[OUT]);
    if (t->call->op == DDP__OP_NORM_CONV_FWD)
        return ddp__thin_norm_run(t, &s, packed);
    return ddp__thin_run(&s, t->data[IN], packed, t->data[OUT]);
}

/* Of training.  The packed weights have the bias. */
static int run_pixels(const struct ddp__task *t, struct ddp__plan *p)
{
    struct ddp__conv_shape layer = ddp__plan_shape(p, t->n);
    struct ddp__conv_shape s = ddp__thin_product(&layer);
    struct pack_source from = {p, t->data[WEIGHT], NULL};
    bool thin = p->way == DDP__WAY_THIN;
    size_t size = thin ? ddp__pixels_packed_size(&s) : ddp__amx_weight_size(&s);
    struct ddp__pack *k;
    int rc =
        ddp__pack_get(&p->packs, &k, NULL, t->id[WEIGHT], t->version[WEIGHT],
                      &(struct ddp__packing){pack_for_pixels, &from,
                                             thin ? ddp__pixels_parts(&s) : 1,
                                             size, ddp__packed_key(t, p)});

    if (rc < 0)
        return rc;
    rc = multiply_pixels(t, p, k->data);
    ddp__pack_put(&p->packs, k);
    return rc;
}

/* ---- products of integers ----------------------------------------------- */

static int pack_integers(const void *arg, void *to, int part)
{
    const struct pack_source *f = arg;
    const struct ddp__plan *p = f->plan;
    struct ddp__conv_shape s = ddp__plan_shape(p, 1);
    struct ddp__i16_filters filters = {
        .w = f->w,
        .by = f->by,
        .turn = p->transposed,
        .taps = (size_t)(p->taps.height * p->taps.width)};

    for (int i = 0; p->transposed && i < s.conv.kh * s.conv.kw; i++)
        filters.tap[i] = ddp__conv_turned_tap(p, i);
    return ddp__i16_weight_pack(&s, &filters, part, to);
}

static int run_integers(const struct ddp__task *t, struct ddp__plan *p,
                        const float *by, const float *bias,
                        const struct ddp__i16_target *to)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, t->n);
    struct pack_source from = {p, t->data[WEIGHT], by};
    struct ddp__pack *k;
    int rc =
        ddp__pack_get(&p->packs, &k, NULL, t->id[WEIGHT], t->version[WEIGHT],
                      &(struct ddp__packing){
                          pack_integers, &from, ddp__i16_weight_parts(&s),
                          ddp__i16_weight_size(&s), ddp__packed_key(t, p)});

    if (rc < 0)
        return rc;
    rc = ddp__i16_conv_run(&s, t->data[IN], k->data, s.conv.bias ? bias : NULL,
                           to);
    ddp__pack_put(&p->packs, k);
    return rc;
}

static int run_layer(const struct ddp__task *t, struct ddp__plan *p,
                     const float *by, const float *bias)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, t->n);
    struct ddp__i16_target to = ddp__i16_target(&s, t->data[OUT]);

    return run_integers(t, p, by, bias, &to);
}

/* Straight to its pixels of dx. */
int ddp__packed_phase(const struct ddp__task *t, const struct ddp__plan *p,
                      int a, int b)
{
    const struct ddp__conv_shape *s = &p->shape;
    size_t c = (size_t)s->c, row = (size_t)s->w * c;
    struct ddp__i16_target to = {.y = (uint16_t *)t->data[OUT] +
                                      (size_t)a * row + (size_t)b * c,
                                 .pixel = (size_t)s->conv.sw * c,
                                 .row = (size_t)s->conv.sh * row,
                                 .image = (size_t)s->h * row};

    return run_integers(t, p->phase[a * s->conv.sw + b], NULL, NULL, &to);
}

/* ---- any ---------------------------------------------------------------- */

bool ddp__packed_has(const struct ddp__plan *p)
{
    return p->way == DDP__WAY_WINO || p->way == DDP__WAY_THIN ||
           p->way == DDP__WAY_AMX_PIXELS || p->way == DDP__WAY_I16 ||
           p->way == DDP__WAY_INFER;
}

int ddp__packed_run(const struct ddp__task *t, struct ddp__plan *p,
                    const float *by, const float *bias)
{
    if (p->way == DDP__WAY_WINO)
        return run_wino(t, p, by, bias);
    if (p->way == DDP__WAY_INFER)
        return run_inference(t, p, by, bias);
    if (p->way == DDP__WAY_I16)
        return run_layer(t, p, by, bias);
    return run_pixels(t, p);
}
