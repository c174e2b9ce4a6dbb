/* way.c - how a convolution or dense layer is computed
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The choice depends on the call and the processor alone, so that weights have
 * the same bits wherever a task runs.
 */
#include "config.h"

#include "cpu/amx/amx_pixels.h"
#include "cpu/depthwise/depthwise.h"
#include "cpu/depthwise/depthwise_train.h"
#include "cpu/onednn/onednn_wrong.h"
#include "cpu/product/dense.h"
#include "cpu/product/i16_conv.h"
#include "cpu/product/skinny.h"
#include "cpu/product/taps.h"
#include "cpu/product/thin.h"
#include "cpu/wino/wino_kind.h"
#include "gradient.h"
#include "infer.h"
#include "plan_shape.h"
#include "way.h"

/* Rows of fewer pixels are narrow; wide ones are not made longer than this. */
enum { NARROW = 8, MOST_PIXELS = 1 << 16, FEW_OUTPUTS = 256 };

const char *ddp__way_kernel(const struct ddp__plan *p)
{
    static const char *const name[DDP__WAYS] = {
        [DDP__WAY_SKINNY] = "loops for few rows",
        [DDP__WAY_DENSE] = "products of rows",
        [DDP__WAY_DEPTHWISE] = "depthwise loops",
        [DDP__WAY_TAPS] = "products of taps",
        [DDP__WAY_WINO] = "Winograd",
        [DDP__WAY_THIN] = "products of pixels",
        [DDP__WAY_AMX_PIXELS] = "products of pixels on AMX",
        [DDP__WAY_I16] = "products of integers",
        [DDP__WAY_DEPTHWISE_TRAIN] = "depthwise rows",
        [DDP__WAY_WINO_WGRAD] = "Winograd",
    };

    if (p->way == DDP__WAY_GRADIENT)
        return p->gradient->name;
    return p->way == DDP__WAY_INFER ? p->infer->name : name[p->way];
}

bool ddp__way_adds(const struct ddp__plan *p)
{
    return p->way == DDP__WAY_DENSE || p->way == DDP__WAY_THIN ||
           (p->way == DDP__WAY_PRIMITIVE && p->transposed);
}

/* ---- primitives --------------------------------------------------------- */

/* Where phases are faster than oneDNN's own way. */
static bool wants_phases(const struct ddp__plan *p)
{
    const struct ddp__conv *k = &p->shape.conv;

    return p->pass == DDP__BWD_X && !p->shape.dense && k->groups == 1 &&
           k->dh == 1 && k->dw == 1 && (k->sh > 1 || k->sw > 1) &&
           (p->shape.type == DDP_BF16 || k->kh * k->kw == 1);
}

/* Tiles of 16 pixels of a row suit narrow images badly.  The gap is as wide as
 * the padding, which it replaces. */
static int gap_of(const struct ddp__plan *p)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, p->shape.n);
    const struct ddp__conv *k = &s.conv;
    int gap = k->left > k->right ? k->left : k->right;

    if (s.dense || s.type != DDP_BF16 || s.ow >= NARROW || s.n < 2 ||
        k->kw == 1 || k->sw != 1 || k->dw != 1 || k->groups != 1 ||
        (p->pass != DDP__FWD && !p->transposed) ||
        s.n > MOST_PIXELS / (s.w + gap))
        return 0;
    return gap > 0 ? gap : 1;
}

/* ---- libddp's kernels --------------------------------------------------- */

/* In training each step packs the weights: Winograd's are four times as large
 * as integers, which take longer to multiply. */
static bool has_few_outputs(const struct ddp__plan *p)
{
    const struct ddp__conv_shape *s = &p->shape;

    return s->type == DDP_BF16 && ddp__i16_here() &&
           (int64_t)s->n * s->oh * s->ow <= FEW_OUTPUTS;
}

/* pays: as products of patches. */
static enum ddp__way way_of_gradient(struct ddp__plan *p, bool pays)
{
    const struct ddp__conv_shape *s = &p->shape;

    if (ddp__skinny_fits(s, DDP__BWD_W))
        return DDP__WAY_SKINNY;
    if (ddp__taps_fits(s, DDP__BWD_W))
        return DDP__WAY_TAPS;
    if (!pays && ddp__dense_fits(s, DDP__BWD_W))
        return DDP__WAY_DENSE;
    if (!pays && ddp__wino_fits(s) && !has_few_outputs(p))
        return DDP__WAY_WINO_WGRAD;
    p->gradient = ddp__gradient_of(s);
    return p->gradient ? DDP__WAY_GRADIENT : DDP__WAY_PRIMITIVE;
}

/* oneDNN has data gradients of dense layers as such. */
bool ddp__way_takes_integers(struct ddp__plan *p)
{
    struct ddp__conv_shape s = p->shape;
    bool turns = p->pass == DDP__BWD_X;
    bool can = !turns || ddp__plan_transpose(&p->shape, &s) || s.dense;

    if (!can || !ddp__i16_conv_fits(&s))
        return false;
    p->transposed = turns;
    return true;
}

/* 1x1 of training, and forward what has as few products. */
static enum ddp__way way_of_pixels(const struct ddp__plan *p)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, p->shape.n);

    if (p->pass != DDP__FWD && !(p->transposed && s.conv.kh * s.conv.kw == 1))
        return DDP__WAY_PRIMITIVE;
    if (ddp__amx_pixels_fits(&s))
        return DDP__WAY_AMX_PIXELS;
    return ddp__thin_fits(&s) ? DDP__WAY_THIN : DDP__WAY_PRIMITIVE;
}

/* Integers would take longer to make than to multiply. */
static bool is_thin_bf16(const struct ddp__plan *p, const struct ddp__call *c)
{
    return p->shape.type == DDP_BF16 && c->op != DDP__OP_CONV_NORM &&
           !c->split && way_of_pixels(p) == DDP__WAY_THIN;
}

/* Forward passes and data gradients.  Kernels for layers of inference would
 * change the bits of training. */
static enum ddp__way way_of_layer(struct ddp__plan *p,
                                  const struct ddp__call *c, bool pays)
{
    const struct ddp__conv_shape *s = &p->shape;

    if (ddp__skinny_fits(s, p->pass))
        return DDP__WAY_SKINNY;
    if (c->op != DDP__OP_CONV_NORM && ddp__taps_fits(s, p->pass))
        return DDP__WAY_TAPS;
    if (!pays && ddp__wino_fits(s) && (p->pass == DDP__FWD || p->transposed) &&
        (c->op == DDP__OP_CONV_NORM || !has_few_outputs(p)))
        return DDP__WAY_WINO;
    if (is_thin_bf16(p, c))
        return DDP__WAY_THIN;
    if (ddp__way_takes_integers(p))
        return DDP__WAY_I16;
    if (c->op == DDP__OP_CONV_NORM) {
        p->infer = ddp__infer_of(s);
        return p->infer ? DDP__WAY_INFER : DDP__WAY_PRIMITIVE;
    }
    if (ddp__depthwise_train_fits(s, p->pass))
        return DDP__WAY_DEPTHWISE_TRAIN;
    if (c->split)
        return DDP__WAY_PRIMITIVE;
    return !pays && ddp__dense_fits(s, p->pass) ? DDP__WAY_DENSE
                                                : way_of_pixels(p);
}

void ddp__way_choose(struct ddp__plan *p, const struct ddp__call *c)
{
    bool wrong = ddp__dnn_is_wrong(&p->shape),
         pays = ddp__patch_pays(&p->shape);

    p->way = p->pass == DDP__BWD_W ? way_of_gradient(p, pays)
                                   : way_of_layer(p, c, pays);
    if (p->way != DDP__WAY_PRIMITIVE)
        return;
    if (wrong && ddp__depthwise_fits(&p->shape)) {
        p->way = DDP__WAY_DEPTHWISE;
    } else if (wrong || pays) {
        p->way = DDP__WAY_PATCHES;
        p->patch = ddp__patch_of(&p->shape);
    } else if (wants_phases(p)) {
        p->way = DDP__WAY_PHASES;
    } else if ((p->gap = gap_of(p)) > 0) {
        p->way = DDP__WAY_STRIP;
    }
}
