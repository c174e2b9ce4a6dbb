/* model.c - construct an ONNX model, and write it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Source   github.com/onnx/onnx, docs/IR.md and onnx.proto; the wire format is
 *          protobuf-c's.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_write.h"
#include "onnx/model.h"

/* ---- memory ------------------------------------------------------------- */

/* Make room for one more pointer in an array that doubles. */
static int grow_array(struct ddp__onnx *m, void ***array, size_t n)
{
    void **p;

    if (n & (n - 1))
        return 0;
    if (!(p = realloc(*array, (n ? 2 * n : 1) * sizeof(*p))))
        return m->rc = ddp__fail(DDP_ENOMEM, "out of memory for an ONNX model");
    *array = p;
    return 0;
}

/* Take ownership of memory that malloc() returned. */
static void *keep_memory(struct ddp__onnx *m, void *p)
{
    if (!p)
        m->rc = ddp__fail(DDP_ENOMEM, "out of memory for an ONNX model");
    else if (grow_array(m, &m->memory, (size_t)m->pieces) == 0)
        return m->memory[m->pieces++] = p;
    free(p);
    return NULL;
}

static void *get_memory(struct ddp__onnx *m, size_t size)
{
    return m->rc < 0 ? NULL : keep_memory(m, calloc(1, size + 1));
}

char *ddp__onnx_text(struct ddp__onnx *m, const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    if (m->rc < 0)
        return NULL;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    return keep_memory(m, s);
}

void ddp__onnx_init(struct ddp__onnx *m)
{
    memset(m, 0, sizeof(*m));
    onnx__model_proto__init(&m->model);
    onnx__graph_proto__init(&m->graph);
    onnx__operator_set_id_proto__init(&m->opset);
    m->opset.domain = (char *)"";
    m->opset.has_version = true;
    m->opset.version = DDP__ONNX_OPSET;
    m->opsets[0] = &m->opset;
    m->model.has_ir_version = true;
    m->model.ir_version = DDP__ONNX_IR;
    m->model.producer_name = (char *)PACKAGE_NAME;
    m->model.producer_version = (char *)PACKAGE_VERSION;
    m->model.n_opset_import = 1;
    m->model.opset_import = m->opsets;
    m->model.graph = &m->graph;
    m->graph.name = (char *)"chain";
    m->graph.n_input = m->graph.n_output = 1;
    m->graph.input = &m->input;
    m->graph.output = &m->output;
}

void ddp__onnx_clear(struct ddp__onnx *m)
{
    for (size_t i = 0; i < m->graph.n_node; i++)
        free(m->graph.node[i]->attribute);
    for (int i = 0; i < m->pieces; i++)
        free(m->memory[i]);
    free(m->memory);
    free(m->graph.node);
    free(m->graph.initializer);
}

/* ---- nodes -------------------------------------------------------------- */

const char *ddp__onnx_node(struct ddp__onnx *m, const char *kind,
                           const char *label, int inputs,
                           const char *const input[])
{
    Onnx__NodeProto *n = get_memory(m, sizeof(*n));
    char **name = get_memory(m, ((size_t)inputs + 1) * sizeof(*name));
    size_t at = m->graph.n_node;

    if (!n || !name || grow_array(m, (void ***)&m->graph.node, at) < 0)
        return NULL;
    onnx__node_proto__init(n);
    for (int i = 0; i < inputs; i++) {
        if (!(name[i] = (char *)input[i])) {
            m->rc = ddp__fail(DDP_EINVAL, "ONNX: %s has no input", kind);
            return NULL;
        }
    }
    n->op_type = (char *)kind;
    n->name = label && label[0] ? ddp__onnx_text(m, "%s", label)
                                : ddp__onnx_text(m, "%s_%zu", kind, at);
    /* No parameter has a colon in its name. */
    if (n->name)
        name[inputs] = ddp__onnx_text(m, "%s:0", n->name);
    n->n_input = (size_t)inputs;
    n->input = name;
    n->n_output = 1;
    n->output = name + inputs;
    m->graph.node[m->graph.n_node++] = n;
    return m->rc < 0 ? NULL : n->output[0];
}

static Onnx__AttributeProto *add_attribute(struct ddp__onnx *m,
                                           const char *name, int type)
{
    Onnx__AttributeProto *a = get_memory(m, sizeof(*a));
    Onnx__NodeProto *n;

    if (!a)
        return NULL;
    n = m->graph.node[m->graph.n_node - 1];
    if (grow_array(m, (void ***)&n->attribute, n->n_attribute) < 0)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = true;
    a->type = (Onnx__AttributeProto__AttributeType)type;
    return n->attribute[n->n_attribute++] = a;
}

void ddp__onnx_int(struct ddp__onnx *m, const char *name, int value)
{
    Onnx__AttributeProto *a =
        add_attribute(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    if (a) {
        a->has_i = true;
        a->i = value;
    }
}

void ddp__onnx_float(struct ddp__onnx *m, const char *name, float value)
{
    Onnx__AttributeProto *a =
        add_attribute(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    if (a) {
        a->has_f = true;
        a->f = value;
    }
}

void ddp__onnx_ints(struct ddp__onnx *m, const char *name, int n,
                    const int value[])
{
    Onnx__AttributeProto *a =
        add_attribute(m, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *v = get_memory(m, (size_t)n * sizeof(*v));

    if (!a || !v)
        return;
    for (int i = 0; i < n; i++)
        v[i] = value[i];
    a->n_ints = (size_t)n;
    a->ints = v;
}

/* ---- tensors ------------------------------------------------------------ */

static void *add_tensor(struct ddp__onnx *m, const char *name, int type,
                        size_t size, int ndim, const int dim[])
{
    Onnx__TensorProto *t = get_memory(m, sizeof(*t));
    int64_t *d = get_memory(m, (size_t)ndim * sizeof(*d));

    for (int i = 0; i < ndim; i++)
        size *= (size_t)dim[i];
    if (!t || !d || !name ||
        grow_array(m, (void ***)&m->graph.initializer, m->graph.n_initializer) <
            0)
        return NULL;
    onnx__tensor_proto__init(t);
    for (int i = 0; i < ndim; i++)
        d[i] = dim[i];
    t->name = (char *)name;
    t->n_dims = (size_t)ndim;
    t->dims = d;
    t->has_data_type = t->has_raw_data = true;
    t->data_type = type;
    if (!(t->raw_data.data = get_memory(m, size)))
        return NULL;
    t->raw_data.len = size;
    m->graph.initializer[m->graph.n_initializer++] = t;
    return t->raw_data.data;
}

float *ddp__onnx_tensor(struct ddp__onnx *m, const char *name, int ndim,
                        const int dim[])
{
    return add_tensor(m, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
                      sizeof(float), ndim, dim);
}

const char *ddp__onnx_scalar(struct ddp__onnx *m, float value)
{
    char *name = ddp__onnx_text(m, "scalar:%zu", m->graph.n_initializer);
    float *v = ddp__onnx_tensor(m, name, 0, NULL);

    if (v)
        *v = value;
    return name;
}

const char *ddp__onnx_vector(struct ddp__onnx *m, int n, const int value[])
{
    char *name = ddp__onnx_text(m, "vector:%zu", m->graph.n_initializer);
    int64_t *v = add_tensor(m, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                            sizeof(*v), 1, &n);

    for (int i = 0; v && i < n; i++)
        v[i] = value[i];
    return name;
}

/* ---- input and output --------------------------------------------------- */

/* One allocation holds the five messages that are nested in each other,
 * because protobuf-c has no constructor for a message with its fields: each
 * is initialised and linked by hand. */
void ddp__onnx_describe(struct ddp__onnx *m, Onnx__ValueInfoProto **which,
                        const char *name, int ndim, const int dim[])
{
    struct {
        Onnx__ValueInfoProto info;
        Onnx__TypeProto type;
        Onnx__TypeProto__Tensor tensor;
        Onnx__TensorShapeProto shape;
        Onnx__TensorShapeProto__Dimension dim[5], *dims[5];
    } *v = get_memory(m, sizeof(*v));

    if (!v)
        return;
    onnx__value_info_proto__init(&v->info);
    onnx__type_proto__init(&v->type);
    onnx__type_proto__tensor__init(&v->tensor);
    onnx__tensor_shape_proto__init(&v->shape);
    for (int i = 0; i <= ndim; i++) {
        onnx__tensor_shape_proto__dimension__init(&v->dim[i]);
        v->dims[i] = &v->dim[i];
        v->dim[i].value_case =
            i ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
              : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        if (i)
            v->dim[i].dim_value = dim[i - 1];
        else
            v->dim[i].dim_param = (char *)"N";
    }
    v->shape.n_dim = (size_t)ndim + 1;
    v->shape.dim = v->dims;
    v->tensor.has_elem_type = true;
    v->tensor.elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    v->tensor.shape = &v->shape;
    v->type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type.tensor_type = &v->tensor;
    v->info.name = (char *)name;
    v->info.type = &v->type;
    *which = &v->info;
}

void ddp__onnx_rename(struct ddp__onnx *m, const char *from, const char *to)
{
    for (size_t i = 0; m->rc == 0 && i < m->graph.n_node; i++) {
        Onnx__NodeProto *n = m->graph.node[i];

        for (size_t k = 0; k < n->n_input; k++)
            if (n->input[k] == from)
                n->input[k] = (char *)to;
        if (n->output[0] == from)
            n->output[0] = (char *)to;
    }
}

/* ---- the file ----------------------------------------------------------- */

enum { PIECE = 1 << 22 };

/* A model to write, and who learns how far that is. */
struct job {
    const struct ddp__onnx *m;
    size_t size; /* of the file */
    ddp_count_f on_count;
    void *arg;
};

/* Where protobuf-c puts the bytes of a message. */
struct sink {
    ProtobufCBuffer base;
    const struct job *job;
    struct ddp__sink *file;
    int error; /* errno of the first failure */
    size_t len;
    uint8_t buf[65536];
};

/* In pieces, since most of a network can be one tensor. */
static void write_bytes(struct sink *s, const uint8_t *data, size_t len)
{
    const struct job *job = s->job;

    for (size_t n; len > 0 && !s->error; data += n, len -= n) {
        n = len < PIECE ? len : PIECE;
        if (ddp__write_all(s->file, data, n) < 0)
            s->error = errno;
        else if (job->on_count)
            job->on_count((int64_t)s->file->size, (int64_t)job->size, job->arg);
    }
}

static void flush_buffer(struct sink *s)
{
    write_bytes(s, s->buf, s->len);
    s->len = 0;
}

static void append_bytes(ProtobufCBuffer *b, size_t len, const uint8_t *data)
{
    struct sink *s = (struct sink *)b;

    if (s->len + len > sizeof(s->buf))
        flush_buffer(s);
    if (len <= sizeof(s->buf)) {
        memcpy(s->buf + s->len, data, len);
        s->len += len;
    } else {
        write_bytes(s, data, len);
    }
}

static int write_model(struct ddp__sink *file, void *arg)
{
    const struct job *job = arg;
    struct sink *s = calloc(1, sizeof(*s));
    int error;

    if (!s)
        return -1;
    s->base.append = append_bytes;
    s->file = file;
    s->job = job;
    protobuf_c_message_pack_to_buffer(&job->m->model.base, &s->base);
    flush_buffer(s);
    error = s->error;
    free(s);
    errno = error;
    return error ? -1 : 0;
}

/* Raw data are little-endian. */
static void order_bytes(struct ddp__onnx *m)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    for (size_t i = 0; i < m->graph.n_initializer; i++) {
        Onnx__TensorProto *t = m->graph.initializer[i];
        size_t n = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ? 8 : 4;

        for (size_t at = 0; at < t->raw_data.len; at += n)
            for (size_t k = 0; k < n / 2; k++) {
                uint8_t *p = t->raw_data.data + at, b = p[k];

                p[k] = p[n - 1 - k];
                p[n - 1 - k] = b;
            }
    }
#else
    (void)m;
#endif
}

int ddp__onnx_save(struct ddp__onnx *m, const char *path, ddp_count_f on_count,
                   void *arg)
{
    struct job job = {m, protobuf_c_message_get_packed_size(&m->model.base),
                      on_count, arg};

    if (job.size > INT_MAX)
        return ddp__fail(DDP_EINVAL,
                         "%s: the model has %zu bytes; an ONNX file can hold "
                         "2 GB",
                         path, job.size);
    order_bytes(m);
    return ddp__file_replace(path, write_model, &job, NULL);
}
