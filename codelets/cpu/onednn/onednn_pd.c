/* onednn_pd.c - oneDNN's descriptors of primitives and their attributes
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Most of what 2.6 and 3.x have in different ways is here.
 */
#include "config.h"

#include "onednn_pd.h"
#include "onednn_wrong.h"

/* ---- attributes --------------------------------------------------------- */

static dnnl_status_t append_act(dnnl_post_ops_t ops, enum ddp_act act)
{
    static const struct {
        dnnl_alg_kind_t alg;
        float alpha, beta;
    } kind[DDP_ACT_COUNT] = {
        [DDP_RELU] = {dnnl_eltwise_relu, 0, 0},
        [DDP_RELU6] = {dnnl_eltwise_clip, 0, 6},
        [DDP_SILU] = {dnnl_eltwise_swish, 1, 0},
        [DDP_SIGMOID] = {dnnl_eltwise_logistic, 0, 0},
        [DDP_TANH] = {dnnl_eltwise_tanh, 0, 0},
        [DDP_HARDSWISH] = {dnnl_eltwise_hardswish, 1.0f / 6, 0.5f},
    };

    if (kind[act].alg == dnnl_alg_kind_undef)
        return dnnl_unimplemented;
#if V3
    return dnnl_post_ops_append_eltwise(ops, kind[act].alg, kind[act].alpha,
                                        kind[act].beta);
#else
    return dnnl_post_ops_append_eltwise(ops, 1, kind[act].alg, kind[act].alpha,
                                        kind[act].beta);
#endif
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if V3
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1);
#endif
}

dnnl_status_t ddp__dnn_attr(dnnl_primitive_attr_t *out, bool sum,
                            enum ddp_act act)
{
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st;

    if ((st = dnnl_primitive_attr_create(&attr)))
        return st;
    st = dnnl_primitive_attr_set_scratchpad_mode(attr,
                                                 dnnl_scratchpad_mode_user);
    if (!st)
        st = dnnl_post_ops_create(&ops);
    if (!st && sum)
        st = append_sum(ops);
    if (!st && act != DDP_IDENTITY)
        st = append_act(ops, act);
    if (!st)
        st = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (st)
        dnnl_primitive_attr_destroy(attr);
    else
        *out = attr;
    return st;
}

/* ---- primitive descriptors ---------------------------------------------- */

#if V3
static dnnl_status_t skip_denied(dnnl_primitive_desc_t pd,
                                 const struct ddp__conv_shape *s,
                                 enum ddp__conv_pass pass)
{
    while (ddp__dnn_is_denied(pd, s, pass))
        if (dnnl_primitive_desc_next_impl(pd))
            return dnnl_unimplemented;
    return dnnl_success;
}
#else
/* The first one that is not denied. */
static dnnl_status_t
choose_implementation(dnnl_primitive_desc_t *pd, const_dnnl_op_desc_t op,
                      const struct ddp__conv_shape *s, enum ddp__conv_pass pass,
                      dnnl_engine_t engine, dnnl_primitive_desc_t hint,
                      dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_iterator_t it;
    dnnl_status_t st;

    if ((st = dnnl_primitive_desc_iterator_create(&it, op, attr, engine, hint)))
        return st;
    while ((*pd = dnnl_primitive_desc_iterator_fetch(it)) &&
           ddp__dnn_is_denied(*pd, s, pass)) {
        dnnl_primitive_desc_destroy(*pd);
        *pd = NULL;
        if (dnnl_primitive_desc_iterator_next(it))
            break;
    }
    dnnl_primitive_desc_iterator_destroy(it);
    return *pd ? dnnl_success : dnnl_unimplemented;
}
#endif

/* Versions 2 and 3 differ in whether an operation descriptor comes first: both
 * are written out, pass by pass, to be compared with oneDNN's manual. */
static dnnl_status_t dense_pd(dnnl_primitive_desc_t *pd,
                              enum ddp__conv_pass pass,
                              const struct ddp__mds *m, bool bias,
                              dnnl_primitive_desc_t hint,
                              dnnl_primitive_attr_t attr)
{
    cmd_t x = REF(m->x), y = REF(m->y), w = REF(m->w),
          b = bias ? REF(m->bias) : NULL;
#if V3
    if (pass == DDP__FWD)
        return dnnl_inner_product_forward_primitive_desc_create(
            pd, m->engine, dnnl_forward_training, x, w, b, y, attr);
    if (pass == DDP__BWD_X)
        return dnnl_inner_product_backward_data_primitive_desc_create(
            pd, m->engine, x, w, y, hint, attr);
    return dnnl_inner_product_backward_weights_primitive_desc_create(
        pd, m->engine, x, w, b, y, hint, attr);
#else
    dnnl_inner_product_desc_t op;
    dnnl_status_t st;

    if (pass == DDP__FWD)
        st = dnnl_inner_product_forward_desc_init(&op, dnnl_forward_training, x,
                                                  w, b, y);
    else if (pass == DDP__BWD_X)
        st = dnnl_inner_product_backward_data_desc_init(&op, x, w, y);
    else
        st = dnnl_inner_product_backward_weights_desc_init(&op, x, w, b, y);
    if (st)
        return st;
    return dnnl_primitive_desc_create(pd, &op, attr, m->engine, hint);
#endif
}

/* As dense_pd().  Version 2 has choose_implementation() skip what is denied;
 * with version 3 pd_new() does that for every operation. */
static dnnl_status_t conv_pd(dnnl_primitive_desc_t *pd,
                             enum ddp__conv_pass pass, const struct ddp__mds *m,
                             const struct ddp__conv_shape *s, bool bias,
                             dnnl_primitive_desc_t hint,
                             dnnl_primitive_attr_t attr)
{
    const struct ddp__conv *k = &s->conv;
    dnnl_dims_t stride = {k->sh, k->sw}, dil = {k->dh - 1, k->dw - 1};
    dnnl_dims_t l = {k->top, k->left}, r = {k->bottom, k->right};
    cmd_t x = REF(m->x), y = REF(m->y), w = REF(m->w),
          b = bias ? REF(m->bias) : NULL;
#if V3
    if (pass == DDP__FWD)
        return dnnl_convolution_forward_primitive_desc_create(
            pd, m->engine, dnnl_forward_training, dnnl_convolution_direct, x, w,
            b, y, stride, dil, l, r, attr);
    if (pass == DDP__BWD_X)
        return dnnl_convolution_backward_data_primitive_desc_create(
            pd, m->engine, dnnl_convolution_direct, x, w, y, stride, dil, l, r,
            hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        pd, m->engine, dnnl_convolution_direct, x, w, b, y, stride, dil, l, r,
        hint, attr);
#else
    dnnl_convolution_desc_t op;
    dnnl_status_t st;

    if (pass == DDP__FWD)
        st = dnnl_dilated_convolution_forward_desc_init(
            &op, dnnl_forward_training, dnnl_convolution_direct, x, w, b, y,
            stride, dil, l, r);
    else if (pass == DDP__BWD_X)
        st = dnnl_dilated_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, x, w, y, stride, dil, l, r);
    else
        st = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, x, w, b, y, stride, dil, l, r);
    if (st)
        return st;
    return choose_implementation(pd, &op, s, pass, m->engine, hint, attr);
#endif
}

static dnnl_status_t pass_pd(dnnl_primitive_desc_t *pd,
                             const struct ddp__conv_shape *s,
                             enum ddp__conv_pass pass, const struct ddp__mds *m,
                             dnnl_primitive_desc_t hint,
                             dnnl_primitive_attr_t attr)
{
    bool bias = s->conv.bias && pass != DDP__BWD_X;

    if (s->dense)
        return dense_pd(pd, pass, m, bias, hint, attr);
    return conv_pd(pd, pass, m, s, bias, hint, attr);
}

/* A backward pass needs a forward descriptor as a hint; it is made of
 * descriptors of its own, which leave the layouts open as m does. */
static dnnl_status_t pd_new(dnnl_primitive_desc_t *pd,
                            const struct ddp__conv_shape *s,
                            enum ddp__conv_pass pass, const struct ddp__mds *m)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t hint = NULL;
    struct ddp__mds f = {.has = {false}};
    dnnl_status_t st;

    if ((st = ddp__dnn_attr(&attr, s->sum,
                            pass == DDP__FWD ? s->conv.act : DDP_IDENTITY)))
        return st;
    if (pass != DDP__FWD) {
        if (!(st = ddp__mds_new(&f, m->engine, s, DDP__FWD, false)))
            st = pass_pd(&hint, s, DDP__FWD, &f, NULL, NULL);
        ddp__mds_free(&f);
    }
    if (!st)
        st = pass_pd(pd, s, pass, m, hint, attr);
#if V3
    if (!st && (st = skip_denied(*pd, s, pass)))
        dnnl_primitive_desc_destroy(*pd);
#endif
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

dnnl_status_t ddp__dnn_pd(dnnl_primitive_desc_t *pd, md_t *plain,
                          dnnl_engine_t engine, const struct ddp__conv_shape *s,
                          enum ddp__conv_pass pass, bool transposed)
{
    struct ddp__mds m = {.has = {false}};
    dnnl_status_t st;

    if (!(st = ddp__mds_new(&m, engine, s, pass, transposed)) &&
        !(st = pd_new(pd, s, pass, &m))) {
        *plain = m.plain;
        m.has[4] = false; /* the caller's now */
    }
    ddp__mds_free(&m);
    return st;
}
