/* cost.c - what a call does, and about how long it takes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "runtime/cost.h"

double ddp__call_flops(const struct ddp__call *c, int n)
{
    struct ddp__xwy at = ddp__op_xwy(c->op);
    const struct ddp__view *x = &c->buf[at.x], *y = &c->buf[at.y];
    double per_pixel = 2.0 * y->shape.c;

    if (!ddp__op_is(c->op, DDP__IS_CONV | DDP__IS_DENSE))
        return 0;
    if (ddp__op_is(c->op, DDP__IS_CONV))
        per_pixel *= (double)c->conv.kh * c->conv.kw *
                     ddp__conv_in(&c->conv, x->shape.c);
    else
        per_pixel *= x->shape.c;
    return per_pixel * y->shape.h * y->shape.w * n;
}

double ddp__operand_bytes(const struct ddp__view *v, int n)
{
    return (double)(v->per_sample ? n : 1) * v->shape.h * v->shape.w *
           v->shape.c * (double)ddp__dtype_size(v->type);
}

/* Bytes of all operands but those with this access. */
static double bytes_but(const struct ddp__call *c, int n,
                        enum ddp_access left_out)
{
    double bytes = 0;

    for (int i = 0; i < ddp__call_signature(c)->operands; i++)
        if (ddp__call_access(c, i, true) != left_out)
            bytes += ddp__operand_bytes(&c->buf[i], n);
    return bytes;
}

double ddp__call_bytes_read(const struct ddp__call *c, int n)
{
    int sum = c->op == DDP__OP_SPLIT ? DDP__SPLIT_DX : DDP__CONV_BWD_X_DX;

    return bytes_but(c, n, DDP_WRITE) +
           (c->sum ? ddp__operand_bytes(&c->buf[sum], n) : 0);
}

double ddp__call_bytes(const struct ddp__call *c, int n)
{
    return ddp__call_bytes_read(c, n) + bytes_but(c, n, DDP_READ);
}

double ddp__call_share(const struct ddp__call *c)
{
    bool spans = c->op == DDP__OP_OPTIM || c->op == DDP__OP_SQNORM;

    return spans && c->optim.cut
               ? (double)c->optim.cut / c->buf[DDP__OPTIM_G].shape.c
               : 1;
}

double ddp__cost_us(const struct ddp__call *c, int n,
                    const struct ddp__device *d)
{
    const struct ddp__speed *s = &d->speed;
    double bytes = 0, us = d->known_us ? d->known_us(c, n) : -1;

    if (us >= 0)
        return us * ddp__call_share(c);
    for (int i = 0; i < c->buffers; i++)
        bytes += ddp__operand_bytes(&c->buf[i], n);
    return s->begin_us + 1e6 * (ddp__call_flops(c, n) / s->flops +
                                ddp__call_share(c) * bytes / s->bytes);
}
