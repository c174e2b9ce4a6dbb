/* kept.c - how much memory copies of weights take, and packed gradients
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "conv_norm.h"
#include "cpu/amx/amx_weight.h"
#include "cpu/product/i16_weight.h"
#include "cpu/product/pixels.h"
#include "cpu/product/thin.h"
#include "cpu/thread.h"
#include "cpu/wino/wino.h"
#include "infer.h"
#include "kept.h"
#include "plan.h"
#include "plan_shape.h"
#include "plan_variant.h"

/* That for the call's cap; one for fewer samples has the same layout, or takes
 * its place.  NULL: there is none. */
static const struct ddp__variant *variant_of(const struct ddp__plan *p)
{
    const struct ddp__variant *v = p->variant;

    while (v && v->next)
        v = v->next;
    return v;
}

static size_t packed_size(const struct ddp__plan *p, size_t groups)
{
    const struct ddp__variant *v = variant_of(p);

    if (!v || (groups == 0 && !p->transposed && ddp__dnn_is_plain(v->dnn)))
        return 0;
    return groups ? groups * ddp__align(ddp__dnn_packed_size(v->dnn))
                  : ddp__dnn_packed_size(v->dnn);
}

static size_t copies_size(const struct ddp__plan *p);

static size_t phases_size(const struct ddp__plan *p)
{
    size_t size = 0;

    for (int i = 0; i < ddp__plan_phases(p); i++)
        if (p->phase[i])
            size += copies_size(p->phase[i]);
    return size;
}

static size_t copies_size(const struct ddp__plan *p)
{
    struct ddp__conv_shape s = ddp__plan_shape(p, 1);

    if (p->pass == DDP__BWD_W) /* they are in scratch */
        return 0;
    switch (p->way) {
    case DDP__WAY_WINO:
        return ddp__wino_packed_size(&s);
    case DDP__WAY_THIN:
        s = ddp__thin_product(&s);
        return ddp__pixels_packed_size(&s);
    case DDP__WAY_AMX_PIXELS:
        return ddp__amx_weight_size(&s);
    case DDP__WAY_I16:
        return ddp__i16_weight_size(&s);
    case DDP__WAY_INFER:
        return p->infer->packed_size(&s);
    case DDP__WAY_PATCHES:
        return packed_size(p->product, (size_t)p->shape.conv.groups);
    case DDP__WAY_PHASES:
        return phases_size(p);
    default:
        return packed_size(p, 0);
    }
}

size_t ddp__cpu_conv_kept(const struct ddp__call *c, const void *plan)
{
    const struct ddp__plan *p = plan;
    size_t folds = c->op == DDP__OP_CONV_NORM ? ddp__conv_norm_folds(p) : 0;

    return copies_size(p) + folds * sizeof(float);
}

/* Phases and groups have several copies, and the weights of inference are of
 * one process. */
size_t ddp__cpu_conv_common(const struct ddp__call *c, const void *plan)
{
    const struct ddp__plan *p = plan;
    bool own = p->way == DDP__WAY_PHASES || p->way == DDP__WAY_PATCHES ||
               p->way == DDP__WAY_INFER || c->op == DDP__OP_CONV_NORM;
    size_t size = own ? 0 : copies_size(p);

    return size ? ddp__shared_pack_size(size) : 0;
}

void ddp__cpu_conv_share(void *plan, void *memory)
{
    struct ddp__plan *p = plan;
    const struct ddp__variant *v = variant_of(p);

    ddp__packs_share(&p->packs, memory, v ? v->dnn : NULL);
}

/* As ddp__conv_gradient() has it. */
static size_t gradient_size(const struct ddp__plan *p, const struct ddp__dnn *d,
                            bool adds)
{
    size_t plain = adds ? ddp__align(p->weights * sizeof(float)) : 0;

    return (ddp__dnn_is_plain(d) ? 0 : ddp__align(ddp__dnn_packed_size(d))) +
           plain;
}

size_t ddp__cpu_conv_room(const struct ddp__call *c, const void *plan,
                          bool adds)
{
    const struct ddp__plan *p = plan;
    const struct ddp__variant *v = variant_of(p);
    size_t room;

    (void)c;
    if (!v)
        return 0;
    room = ddp__align(ddp__dnn_scratch(v->dnn));
    if (p->pass == DDP__BWD_W)
        room += gradient_size(p, v->dnn, adds);
    else if (ddp__plan_flips(p))
        room += p->weights * sizeof(float);
    return ddp__scratch_size(room);
}
