/* dnn_graph.c - graphs of cuDNN: descriptors, tensors and operations
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dnn_graph.h"

/* ---- descriptors -------------------------------------------------------- */

static int error_code(cudnnStatus_t e)
{
    if (e == CUDNN_STATUS_ALLOC_FAILED ||
        e == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
        return DDP_ENOMEM;
    return e >= 2000 && e < 4000 ? DDP_ENODEV : DDP_EDEVICE;
}

int ddp__cudnn_status(cudnnStatus_t e, const char *what)
{
    char text[400] = "";

    if (e == CUDNN_STATUS_SUCCESS)
        return 0;
    cudnnGetLastErrorString(text, sizeof(text));
    return ddp__fail(error_code(e), "cuDNN, %s: %s%s%s", what,
                     cudnnGetErrorString(e), *text ? ", " : "", text);
}

struct ddp__cudnn_graph *ddp__cudnn_graph_new(void)
{
    struct ddp__cudnn_graph *g = calloc(1, sizeof(*g));

    if (!g)
        ddp__fail(DDP_ENOMEM, "out of memory for a graph of cuDNN");
    return g;
}

void ddp__cudnn_graph_free(struct ddp__cudnn_graph *g)
{
    if (!g)
        return;
    while (g->descs > 0)
        cudnnBackendDestroyDescriptor(g->desc[--g->descs]);
    free(g);
}

ddp__cudnn_desc ddp__cudnn_new(struct ddp__cudnn_graph *g,
                               cudnnBackendDescriptorType_t type)
{
    ddp__cudnn_desc d = NULL;

    if (g->rc < 0)
        return NULL;
    if (g->descs == DDP__CUDNN_MAX_DESCS) {
        g->rc = ddp__fail(
            DDP_EINVAL, "a graph of cuDNN has too many tensors or operations");
        return NULL;
    }
    g->rc = ddp__cudnn_status(cudnnBackendCreateDescriptor(type, &d),
                              "a new descriptor");
    if (g->rc < 0)
        return NULL;
    return g->desc[g->descs++] = d;
}

void ddp__cudnn_set(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                    cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *value)
{
    char what[32];

    if (g->rc < 0)
        return;
    snprintf(what, sizeof(what), "attribute %d", (int)name);
    g->rc = ddp__cudnn_status(
        cudnnBackendSetAttribute(d, name, type, count, value), what);
}

void ddp__cudnn_finish(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                       const char *what)
{
    if (g->rc == 0)
        g->rc = ddp__cudnn_status(cudnnBackendFinalize(d), what);
}

static void set_int(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                    cudnnBackendAttributeName_t name, int64_t value)
{
    ddp__cudnn_set(g, d, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_pair(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                     cudnnBackendAttributeName_t name, int first, int second)
{
    int64_t value[] = {first, second};

    ddp__cudnn_set(g, d, name, CUDNN_TYPE_INT64, 2, value);
}

static void set_float(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                      cudnnBackendAttributeName_t name, float value)
{
    ddp__cudnn_set(g, d, name, CUDNN_TYPE_FLOAT, 1, &value);
}

static void set_bool(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                     cudnnBackendAttributeName_t name, bool value)
{
    ddp__cudnn_set(g, d, name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

/* A value of an enum, which are all ints. */
static void set_enum(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                     cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int value)
{
    ddp__cudnn_set(g, d, name, type, 1, &value);
}

static void set_type(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                     cudnnBackendAttributeName_t name, cudnnDataType_t value)
{
    set_enum(g, d, name, CUDNN_TYPE_DATA_TYPE, (int)value);
}

static void set_desc(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                     cudnnBackendAttributeName_t name, ddp__cudnn_desc value)
{
    ddp__cudnn_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_tensor(struct ddp__cudnn_graph *g, ddp__cudnn_desc d,
                       cudnnBackendAttributeName_t name, int tensor)
{
    set_desc(g, d, name, g->tensor[tensor].desc);
}

/* Write down what the graph is. */
static __attribute__((format(printf, 2, 3))) void
note_in_key(struct ddp__cudnn_graph *g, const char *fmt, ...)
{
    size_t room = sizeof(g->key) - g->key_len;
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(g->key + g->key_len, room, fmt, ap);
    va_end(ap);
    if (len >= 0 && (size_t)len < room)
        g->key_len += (size_t)len;
    else if (g->rc == 0)
        g->rc = ddp__fail(
            DDP_EINVAL, "a graph of cuDNN has too many tensors or operations");
}

/* ---- tensors ------------------------------------------------------------ */

static const struct {
    cudnnDataType_t type;
    const char *name;
} types[] = {
    [DDP_F32] = {CUDNN_DATA_FLOAT, "f32"},
    [DDP_BF16] = {CUDNN_DATA_BFLOAT16, "bf16"},
    [DDP_F16] = {CUDNN_DATA_HALF, "f16"},
};

cudnnDataType_t ddp__cudnn_type(enum ddp_dtype type)
{
    return types[type].type;
}

struct ddp__cudnn_shape ddp__cudnn_view(const struct ddp__call *c, int buf,
                                        int n)
{
    const struct ddp__view *v = &c->buf[buf];

    return (struct ddp__cudnn_shape){.type = ddp__cudnn_type(v->type),
                                     .n = n,
                                     .h = v->shape.h,
                                     .w = v->shape.w,
                                     .c = v->shape.c};
}

static size_t bits_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_BOOLEAN ? 1 : type == CUDNN_DATA_FLOAT ? 32 : 16;
}

static const char *type_name(cudnnDataType_t type)
{
    if (type == CUDNN_DATA_BOOLEAN)
        return "bit";
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].type == type && types[i].name)
            return types[i].name;
    return "?";
}

/* Channels last: strides tell cuDNN, which lists dimensions as n, c, h, w. */
void ddp__cudnn_tensor(struct ddp__cudnn_graph *g, int tensor,
                       const struct ddp__cudnn_shape *s)
{
    int64_t h = s->h, w = s->w, c = s->c;
    ddp__cudnn_desc d = ddp__cudnn_new(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    set_type(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, s->type);
    ddp__cudnn_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4,
                   (int64_t[]){s->n, c, h, w});
    ddp__cudnn_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4,
                   (int64_t[]){h * w * c, 1, w * c, c});
    set_int(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor);
    set_int(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    set_bool(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, s->kind == DDP__CUDNN_VIRTUAL);
    set_bool(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, s->kind == DDP__CUDNN_SCALAR);
    ddp__cudnn_finish(g, d, "a tensor");
    g->tensor[tensor].desc = d;
    g->tensor[tensor].kind = s->kind;
    if (s->kind == DDP__CUDNN_REAL)
        g->tensor[tensor].size =
            (size_t)s->n * (size_t)(h * w * c) * bits_of(s->type) / 8;
    note_in_key(g, "%d:%s", tensor, type_name(s->type));
    if (s->kind != DDP__CUDNN_SCALAR)
        note_in_key(g, "[%d,%d,%d,%d]", s->n, s->h, s->w, s->c);
    note_in_key(g, s->kind == DDP__CUDNN_VIRTUAL ? "v " : " ");
}

/* ---- operations --------------------------------------------------------- */

/* The operation is complete. */
static void add_op(struct ddp__cudnn_graph *g, ddp__cudnn_desc op,
                   const char *what)
{
    ddp__cudnn_finish(g, op, what);
    if (g->rc < 0)
        return;
    if (g->ops == DDP__CUDNN_MAX_OPS)
        g->rc = ddp__fail(
            DDP_EINVAL, "a graph of cuDNN has too many tensors or operations");
    else
        g->op[g->ops++] = op;
}

static ddp__cudnn_desc conv_desc(struct ddp__cudnn_graph *g,
                                 const struct ddp__conv *k)
{
    ddp__cudnn_desc d = ddp__cudnn_new(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

    set_int(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    set_type(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set_enum(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
             CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    set_pair(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, k->dh, k->dw);
    set_pair(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, k->sh, k->sw);
    set_pair(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, k->top, k->left);
    set_pair(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, k->bottom, k->right);
    ddp__cudnn_finish(g, d, "a convolution");
    note_in_key(g, "s%dx%d d%dx%d p%d,%d,%d,%d ", k->sh, k->sw, k->dh, k->dw,
                k->top, k->left, k->bottom, k->right);
    return d;
}

/* The three passes differ in nothing but attributes' names, in which a gradient
 * is DX, DW or DY. */
void ddp__cudnn_conv(struct ddp__cudnn_graph *g, enum ddp__cudnn_pass pass,
                     bool add, const struct ddp__conv *k, int x, int w, int y)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
    } is[] = {
        [DDP__CUDNN_FORWARD] =
            {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
             .x = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
             .w = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
             .y = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
             .conv = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
             .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
             .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        [DDP__CUDNN_DATA] =
            {.type =
                 CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
             .x = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
             .w = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
             .y = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
             .conv = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
             .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
             .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        [DDP__CUDNN_FILTER] =
            {.type =
                 CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
             .x = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
             .w = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
             .y = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
             .conv = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
             .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
             .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    };
    ddp__cudnn_desc conv = conv_desc(g, k),
                    op = ddp__cudnn_new(g, is[pass].type);

    set_tensor(g, op, is[pass].x, x);
    set_tensor(g, op, is[pass].w, w);
    set_tensor(g, op, is[pass].y, y);
    set_desc(g, op, is[pass].conv, conv);
    set_float(g, op, is[pass].alpha, 1);
    set_float(g, op, is[pass].beta, add ? 1 : 0);
    add_op(g, op, "a convolution's operation");
    note_in_key(g, "conv%d%s(%d,%d,%d) ", (int)pass, add ? "+" : "", x, w, y);
}

static ddp__cudnn_desc pointwise_op(struct ddp__cudnn_graph *g,
                                    cudnnPointwiseMode_t mode)
{
    ddp__cudnn_desc d = ddp__cudnn_new(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
                    op;

    set_enum(g, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    set_type(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    ddp__cudnn_finish(g, d, "a pointwise function");
    op = ddp__cudnn_new(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_desc(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
    return op;
}

/* y = f(x, b), which a key knows as `name`. */
static void add_binary_op(struct ddp__cudnn_graph *g, cudnnPointwiseMode_t mode,
                          const char *name, int x, int b, int y)
{
    ddp__cudnn_desc op = pointwise_op(g, mode);

    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_op(g, op, name);
    note_in_key(g, "%s(%d,%d,%d) ", name, x, b, y);
}

void ddp__cudnn_add(struct ddp__cudnn_graph *g, int x, int b, int y)
{
    add_binary_op(g, CUDNN_POINTWISE_ADD, "add", x, b, y);
}

void ddp__cudnn_greater(struct ddp__cudnn_graph *g, int x, int zero, int y)
{
    add_binary_op(g, CUDNN_POINTWISE_CMP_GT, "greater", x, zero, y);
}

void ddp__cudnn_choose(struct ddp__cudnn_graph *g, int x, int m, int y)
{
    add_binary_op(g, CUDNN_POINTWISE_MUL, "choose", x, m, y);
}

void ddp__cudnn_relu(struct ddp__cudnn_graph *g, int x, int y)
{
    ddp__cudnn_desc op = pointwise_op(g, CUDNN_POINTWISE_RELU_FWD);

    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_op(g, op, "a relu");
    note_in_key(g, "relu(%d,%d) ", x, y);
}

void ddp__cudnn_relu_bwd(struct ddp__cudnn_graph *g, int x, int dy, int dx)
{
    ddp__cudnn_desc op = pointwise_op(g, CUDNN_POINTWISE_RELU_BWD);

    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx);
    add_op(g, op, "a relu's gradient");
    note_in_key(g, "relu_bwd(%d,%d,%d) ", x, dy, dx);
}

void ddp__cudnn_norm(struct ddp__cudnn_graph *g,
                     const struct ddp__cudnn_norm *t)
{
    ddp__cudnn_desc op =
        ddp__cudnn_new(g, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);

    set_enum(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE,
             CUDNN_BATCH_NORM);
    set_enum(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE,
             CUDNN_TYPE_NORM_FWD_PHASE,
             t->eps ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, t->x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, t->mean);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, t->inv);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, t->scale);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, t->shift);
    if (t->eps)
        set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, t->eps);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, t->y);
    add_op(g, op, "a batch norm");
    note_in_key(g, "norm%d(%d,%d,%d,%d,%d,%d) ", t->eps != 0, t->x, t->scale,
                t->shift, t->mean, t->inv, t->y);
}

void ddp__cudnn_norm_bwd(struct ddp__cudnn_graph *g,
                         const struct ddp__cudnn_norm_bwd *t)
{
    ddp__cudnn_desc op =
        ddp__cudnn_new(g, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);

    set_enum(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE,
             CUDNN_BATCH_NORM);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, t->x);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, t->mean);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, t->inv);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, t->dy);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, t->scale);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, t->dscale);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, t->dshift);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, t->dx);
    add_op(g, op, "a batch norm's gradient");
    note_in_key(g, "norm_bwd(%d,%d,%d,%d,%d,%d,%d,%d) ", t->x, t->dy, t->scale,
                t->mean, t->inv, t->dscale, t->dshift, t->dx);
}
