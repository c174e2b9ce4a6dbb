/* plan_shape.c - the layers that plans compute
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "plan_shape.h"

void ddp__plan_shape_of(const struct ddp__call *c, struct ddp__conv_shape *s)
{
    bool dense = ddp__op_is(c->op, DDP__IS_DENSE);
    struct ddp__xwy at = ddp__op_xwy(c->op);
    struct ddp_shape x = c->buf[at.x].shape, y = c->buf[at.y].shape;

    *s = (struct ddp__conv_shape){.dense = dense,
                                  .type = c->buf[at.x].type,
                                  .n = c->cap,
                                  .h = x.h,
                                  .w = x.w,
                                  .c = x.c,
                                  .oh = y.h,
                                  .ow = y.w,
                                  .o = y.c};
    if (dense) {
        s->c = x.h * x.w * x.c;
        s->o = y.h * y.w * y.c;
        s->h = s->w = s->oh = s->ow = 1;
        s->conv = ddp__conv_plain(1, 1);
        s->conv.bias = c->dense.bias;
        s->conv.act = c->dense.act;
    } else {
        s->conv = c->conv;
        s->conv.bias |= c->op == DDP__OP_CONV_NORM;
        s->sum = c->sum;
    }
}

bool ddp__plan_transpose(const struct ddp__conv_shape *s,
                         struct ddp__conv_shape *t)
{
    const struct ddp__conv *k = &s->conv;
    struct ddp__conv *u = &t->conv;
    int spread_h = k->dh * (k->kh - 1), spread_w = k->dw * (k->kw - 1);
    bool one_each = k->groups == s->c && s->o == s->c; /* depthwise */

    *t = *s;
    t->c = s->o;
    t->o = s->c;
    t->h = s->oh;
    t->w = s->ow;
    t->oh = s->h;
    t->ow = s->w;
    u->bias = false;
    u->act = DDP_IDENTITY;
    u->top = spread_h - k->top;
    u->left = spread_w - k->left;
    u->bottom = s->h + spread_h - s->oh - u->top;
    u->right = s->w + spread_w - s->ow - u->left;
    return !s->dense && (k->groups == 1 || one_each) && k->sh == 1 &&
           k->sw == 1 && u->top >= 0 && u->left >= 0 && u->bottom >= 0 &&
           u->right >= 0;
}

/* A phase in one direction: a layer without stride from `in` pixels to those of
 * dy, with `size` taps from `first` on, and padding before. */
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

bool ddp__plan_phase(const struct ddp__conv_shape *s, int a, int b,
                     struct ddp__conv_shape *t, struct ddp__taps *taps)
{
    const struct ddp__conv *k = &s->conv;
    struct phase v = phase_of(a, s->h, k->kh, k->sh, k->top);
    struct phase h = phase_of(b, s->w, k->kw, k->sw, k->left);

    if (v.in <= 0 || h.in <= 0 || v.size == 0 || h.size == 0)
        return false;
    *t = *s;
    t->h = v.in;
    t->w = h.in;
    t->conv = ddp__conv_plain(v.size, h.size);
    t->conv.top = v.before;
    t->conv.left = h.before;
    *taps = (struct ddp__taps){v.first, h.first, k->sh, k->sw, k->kh, k->kw};
    return true;
}

struct ddp__conv_shape ddp__plan_shape(const struct ddp__plan *p, int n)
{
    struct ddp__conv_shape s = p->shape;

    if (p->transposed)
        ddp__plan_transpose(&p->shape, &s);
    s.n = n;
    if (p->gap) {
        s.n = 1;
        s.w = n * (s.w + p->gap);
        s.ow = s.w + s.conv.left + s.conv.right - s.conv.kw + 1;
    }
    return s;
}
