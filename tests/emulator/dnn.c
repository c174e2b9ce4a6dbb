/* dnn.c - cuDNN's graphs: descriptors are lists of attributes, a plan runs the
 * operations of its graph one after another, in f32
 *
 * Tensors have their channels last and no gaps, as libddp makes them.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cudnn.h>

#include "emulator.h"
#include "gpu/arith.h"

/* ---- descriptors -------------------------------------------------------- */

struct attribute {
    struct attribute *next;
    int name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    void *data;
};

struct desc {
    cudnnBackendDescriptorType_t type;
    struct attribute *first;
    struct desc *graph;          /* of an engine, its configuration, a plan */
    int capability;              /* of the GPU that these are for */
    long serial;                 /* all have another */
    struct desc *next, **before; /* in the list of all */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct desc *all;

struct handle {
    cudaStream_t stream;
};

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

static struct attribute *find(const struct desc *d, int name)
{
    struct attribute *a = d->first;

    while (a && a->name != name)
        a = a->next;
    return a;
}

/* The value of an attribute that must be there. */
static const void *value(const struct desc *d, int name)
{
    const struct attribute *a = find(d, name);

    if (!a)
        emulator_die("a descriptor of type %d lacks attribute %d", (int)d->type,
                     name);
    return a->data;
}

static struct desc *child(const struct desc *d, int name)
{
    return *(struct desc *const *)value(d, name);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    static long serial;
    struct desc *d = calloc(1, sizeof(*d));

    if (!d)
        return CUDNN_STATUS_ALLOC_FAILED;
    d->type = type;
    pthread_mutex_lock(&lock);
    d->serial = ++serial;
    d->next = all;
    d->before = &all;
    if (all)
        all->before = &d->next;
    all = d;
    pthread_mutex_unlock(&lock);
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
    struct desc *d = desc;
    struct attribute *a;

    pthread_mutex_lock(&lock);
    if ((*d->before = d->next))
        d->next->before = d->before;
    pthread_mutex_unlock(&lock);
    while ((a = d->first)) {
        d->first = a->next;
        free(a->data);
        free(a);
    }
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *data)
{
    struct desc *d = desc;
    struct attribute *a = find(d, (int)name);

    if (!a) {
        if (!(a = calloc(1, sizeof(*a))))
            return CUDNN_STATUS_ALLOC_FAILED;
        a->next = d->first;
        a->name = (int)name;
        d->first = a;
    }
    free(a->data);
    a->data = emulator_copy(data, (size_t)count * size_of(type));
    a->type = type;
    a->count = count;
    return CUDNN_STATUS_SUCCESS;
}

/* A plan as text names its graph: good for this process while there is one. */
#define TEXT "emulated %ld %ld %d"

static struct desc *find_graph(const struct attribute *text, int *capability)
{
    char copy[64] = "";
    long pid = 0, serial = 0;
    struct desc *d;

    snprintf(copy, sizeof(copy), "%.*s", (int)text->count,
             (const char *)text->data);
    if (sscanf(copy, TEXT, &pid, &serial, capability) != 3 ||
        pid != (long)getpid())
        return NULL;
    pthread_mutex_lock(&lock);
    for (d = all; d && d->serial != serial; d = d->next)
        ;
    pthread_mutex_unlock(&lock);
    return d;
}

static int capability_of(const struct desc *d, int device)
{
    return emulator_capability(*(const int32_t *)value(
        child(d, device), CUDNN_ATTR_DEVICEPROP_DEVICE_ID));
}

/* Code for one model of GPU does not load on another. */
static cudnnStatus_t finish_plan(struct desc *d)
{
    const struct attribute *text =
        find(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    const struct desc *config =
        text ? NULL : child(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);

    if (config)
        d->capability = config->capability;
    d->graph = config ? config->graph : find_graph(text, &d->capability);
    return d->graph && d->capability ==
                           capability_of(
                               d, (int)CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_BAD_PARAM;
}

/* Whether a graph is a data gradient that is added. */
static bool adds(const struct desc *graph)
{
    const struct desc *op = child(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    return op->type ==
               CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR &&
           *(const float *)value(
               op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA) == 1;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc)
{
    struct desc *d = desc;

    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        return finish_plan(d);
    if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
        emulator_plans();
        d->graph = child(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        d->capability = capability_of(d, (int)CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
        if (getenv("EMULATED_NO_SUMS") && adds(d->graph))
            return CUDNN_STATUS_NOT_SUPPORTED;
    }
    return CUDNN_STATUS_SUCCESS;
}

static int64_t get_text(const struct desc *d, int64_t room, void *out)
{
    char text[64];
    int64_t len = snprintf(text, sizeof(text), TEXT, (long)getpid(),
                           d->graph->serial, d->capability);

    if (out)
        memcpy(out, text, (size_t)(len < room ? len : room));
    return len;
}

/* One engine does everything, without workspace and without notes. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t room, int64_t *count, void *out)
{
    const struct desc *d = desc;

    (void)type;
    *count = 0;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        (*(struct desc **)out)->graph = d->graph;
        (*(struct desc **)out)->capability = d->capability;
        *count = 1;
        break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)out = 0;
        *count = 1;
        break;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
        *count = get_text(d, room, out);
        break;
    default:
        break;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Workers make one for themselves when they start. */
static _Thread_local int handles;

void emulator_plans(void)
{
    if (handles && getenv("EMULATED_AHEAD"))
        emulator_die("a worker makes a plan, which others should have made");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    handles++;
    *out = calloc(1, sizeof(struct handle));
    return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
    handles--;
    free(h);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream)
{
    ((struct handle *)(void *)h)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- tensors while a plan runs ------------------------------------------ */

enum { MOST = 24 };

struct tensor {
    const struct desc *desc;
    size_t n, c, h, w;
    cudnnDataType_t type;
    void *data; /* in memory; NULL: virtual, or a number */
    bool number;
    float *v; /* the values */
};

struct run {
    struct desc *graph;
    int tensors;
    struct tensor t[MOST];
};

static size_t len(const struct tensor *t)
{
    return t->n * t->c * t->h * t->w;
}

/* Where boolean i is in its byte: the manual does not say. */
static bool reversed;

__attribute__((constructor)) static void choose_order(void)
{
    reversed = getenv("EMULATED_REVERSED");
}

static unsigned bit_of(size_t i)
{
    return reversed ? 7 - i % 8 : i % 8;
}

static float load(const struct tensor *t, size_t i)
{
    switch (t->type) {
    case CUDNN_DATA_BOOLEAN:
        return (float)(((const uint8_t *)t->data)[i / 8] >> bit_of(i) & 1);
    case CUDNN_DATA_FLOAT:
        return ddp__k_get(DDP_F32, t->data, i);
    case CUDNN_DATA_HALF:
        return ddp__k_get(DDP_F16, t->data, i);
    default:
        return ddp__k_get(DDP_BF16, t->data, i);
    }
}

static void put(struct tensor *t, size_t i, float v)
{
    uint8_t *byte = (uint8_t *)t->data + i / 8;
    uint8_t bit = (uint8_t)(1 << bit_of(i));

    switch (t->type) {
    case CUDNN_DATA_BOOLEAN:
        *byte = (uint8_t)(v != 0 ? *byte | bit : *byte & ~bit);
        break;
    case CUDNN_DATA_FLOAT:
        ddp__k_put(DDP_F32, t->data, i, v);
        break;
    case CUDNN_DATA_HALF:
        ddp__k_put(DDP_F16, t->data, i, v);
        break;
    default:
        ddp__k_put(DDP_BF16, t->data, i, v);
    }
}

static struct tensor *tensor(struct run *r, const struct desc *op, int name)
{
    const struct desc *d = child(op, name);

    for (int i = 0; i < r->tensors; i++)
        if (r->t[i].desc == d)
            return &r->t[i];
    emulator_die("a tensor that has no pointer");
}

/* To read: values as they are in memory. */
static struct tensor *in(struct run *r, const struct desc *op, int name)
{
    struct tensor *t = tensor(r, op, name);

    for (size_t i = 0; t->data && i < len(t); i++)
        t->v[i] = load(t, i);
    return t;
}

static struct tensor *out(struct run *r, const struct desc *op, int name)
{
    return tensor(r, op, name);
}

static void stored(struct tensor *t)
{
    for (size_t i = 0; t->data && i < len(t); i++)
        put(t, i, t->v[i]);
}

/* ---- convolutions ------------------------------------------------------- */

struct conv {
    const int64_t *pad, *stride, *dilation;
    struct tensor *x, *w, *y;
    size_t groups;
};

/* fn for each pair of a pixel of x and one of y that meet at a place of w. */
static void each_pair(const struct conv *k,
                      void (*fn)(const struct conv *k, float *x, float *w,
                                 float *y))
{
    const struct tensor *x = k->x, *w = k->w, *y = k->y;

    for (size_t n = 0; n < y->n; n++)
        for (size_t oy = 0; oy < y->h; oy++)
            for (size_t ox = 0; ox < y->w; ox++)
                for (size_t at = 0; at < w->h * w->w; at++) {
                    int64_t iy = (int64_t)oy * k->stride[0] - k->pad[0] +
                                 (int64_t)(at / w->w) * k->dilation[0];
                    int64_t ix = (int64_t)ox * k->stride[1] - k->pad[1] +
                                 (int64_t)(at % w->w) * k->dilation[1];
                    size_t px = (n * x->h + (size_t)iy) * x->w + (size_t)ix;

                    if (iy >= 0 && iy < (int64_t)x->h && ix >= 0 &&
                        ix < (int64_t)x->w)
                        fn(k, x->v + px * x->c, w->v + at * w->c,
                           y->v + ((n * y->h + oy) * y->w + ox) * y->c);
                }
}

/* Channels are taken four at a time: a network has billions of products. */
typedef float four __attribute__((vector_size(16)));

static four four_of(const float *x)
{
    four v;

    memcpy(&v, x, sizeof(v));
    return v;
}

static float dot(const float *a, const float *b, size_t n)
{
    four sums = {0};
    float sum = 0;
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        sums += four_of(a + i) * four_of(b + i);
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int k = 0; k < 4; k++)
        sum += sums[k];
    return sum;
}

/* y += a x */
static void add_scaled(float a, const float *x, float *y, size_t n)
{
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        four v = four_of(y + i) + a * four_of(x + i);

        memcpy(y + i, &v, sizeof(v));
    }
    for (; i < n; i++)
        y[i] += a * x[i];
}

/* Row o of the weights at this place, and the first channel of x it is for. */
#define ROWS(k)                                                                \
    size_t c = (k)->w->c, step = (k)->w->h * (k)->w->w * c;                    \
    size_t each = (k)->y->c / (k)->groups;                                     \
    for (size_t o = 0, first = 0; o < (k)->y->c; first = ++o / each * c)

static void forward(const struct conv *k, float *x, float *w, float *y)
{
    ROWS(k)
    y[o] += dot(w + o * step, x + first, c);
}

static void data(const struct conv *k, float *x, float *w, float *y)
{
    ROWS(k)
    add_scaled(y[o], w + o * step, x + first, c);
}

static void filter(const struct conv *k, float *x, float *w, float *y)
{
    ROWS(k)
    add_scaled(y[o], x + first, w + o * step, c);
}

/* y = x w, of the tensor that is the result; or with beta 1 added to it. */
static void run_conv(struct run *r, const struct desc *op, int x, int w, int y,
                     int conv, int result, int beta)
{
    bool add = *(const float *)value(op, beta) == 1;
    const struct desc *d = child(op, conv);
    struct conv k = {value(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                     value(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                     value(d, CUDNN_ATTR_CONVOLUTION_DILATIONS),
                     (result == x && !add ? out : in)(r, op, x),
                     (result == w && !add ? out : in)(r, op, w),
                     (result == y && !add ? out : in)(r, op, y),
                     0};
    struct tensor *t = tensor(r, op, result);

    k.groups = k.x->c / k.w->c;
    if (!add)
        memset(t->v, 0, len(t) * sizeof(float));
    each_pair(&k, result == y ? forward : result == x ? data : filter);
    stored(t);
}

/* ---- the rest ----------------------------------------------------------- */

static void run_pointwise(struct run *r, const struct desc *op)
{
    const struct desc *pw =
        child(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    int mode = *(const int *)value(pw, CUDNN_ATTR_POINTWISE_MODE);
    bool bwd = mode == CUDNN_POINTWISE_RELU_BWD;
    struct tensor *x = in(r, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    struct tensor *b = mode == CUDNN_POINTWISE_RELU_FWD ? x
                       : bwd ? in(r, op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC)
                             : in(r, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    struct tensor *y = out(r, op,
                           bwd ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                               : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);

    for (size_t i = 0; i < len(y); i++) {
        float u = x->v[i], v = b->v[len(b) == len(y) ? i : i % len(b)];

        y->v[i] = mode == CUDNN_POINTWISE_ADD        ? u + v
                  : mode == CUDNN_POINTWISE_MUL      ? u * v
                  : mode == CUDNN_POINTWISE_CMP_GT   ? u > v
                  : mode == CUDNN_POINTWISE_RELU_FWD ? fmaxf(u, 0)
                  : bwd && u > 0                     ? v
                                                     : 0;
    }
    stored(y);
}

static void measure(const struct tensor *x, size_t c, float eps, float *mean,
                    float *inv)
{
    size_t m = len(x) / x->c;
    double sum = 0, squares = 0;

    for (size_t p = 0; p < m; p++)
        sum += x->v[p * x->c + c];
    sum /= (double)m;
    for (size_t p = 0; p < m; p++) {
        double d = x->v[p * x->c + c] - sum;

        squares += d * d;
    }
    *mean = (float)sum;
    *inv = (float)(1 / sqrt(squares / (double)m + eps));
}

static void run_norm(struct run *r, const struct desc *op)
{
    bool train = *(const int *)value(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) ==
                 CUDNN_NORM_FWD_TRAINING;
    struct tensor *x = in(r, op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
    struct tensor *scale = in(r, op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC);
    struct tensor *shift = in(r, op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC);
    struct tensor *mean =
        (train ? out : in)(r, op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC);
    struct tensor *inv = (train ? out : in)(
        r, op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
    struct tensor *y = out(r, op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);

    for (size_t c = 0; c < x->c && train; c++)
        measure(x, c,
                in(r, op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC)->v[0],
                &mean->v[c], &inv->v[c]);
    for (size_t i = 0; i < len(x); i++) {
        size_t c = i % x->c;

        y->v[i] =
            (x->v[i] - mean->v[c]) * inv->v[c] * scale->v[c] + shift->v[c];
    }
    if (train) {
        stored(mean);
        stored(inv);
    }
    stored(y);
}

static void run_norm_bwd(struct run *r, const struct desc *op)
{
    struct tensor *x = in(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
    struct tensor *dy = in(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC);
    struct tensor *mean = in(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC);
    struct tensor *inv =
        in(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
    struct tensor *scale = in(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC);
    struct tensor *ds = out(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC);
    struct tensor *db = out(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
    struct tensor *dx = out(r, op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC);
    size_t m = len(x) / x->c;

    for (size_t c = 0; c < x->c; c++) {
        double sum = 0, product = 0;

        for (size_t i = c; i < len(x); i += x->c) {
            sum += dy->v[i];
            product += (double)dy->v[i] * (x->v[i] - mean->v[c]) * inv->v[c];
        }
        ds->v[c] = (float)product;
        db->v[c] = (float)sum;
        for (size_t i = c; i < len(x); i += x->c) {
            double xhat = (x->v[i] - mean->v[c]) * (double)inv->v[c];

            dx->v[i] = (float)(scale->v[c] * inv->v[c] *
                               (dy->v[i] - (sum + xhat * product) / (double)m));
        }
    }
    stored(ds);
    stored(db);
    stored(dx);
}

#define CONV(kind, x, w, y, result)                                            \
    run_conv(r, op, CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##x,             \
             CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##w,                    \
             CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##y,                    \
             CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_CONV_DESC,              \
             CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_##result,               \
             CUDNN_ATTR_OPERATION_CONVOLUTION_##kind##_BETA)

static void run_op(struct run *r, const struct desc *op)
{
    switch (op->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        CONV(FORWARD, X, W, Y, Y);
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        CONV(BWD_DATA, DX, W, DY, DX);
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        CONV(BWD_FILTER, X, DW, DY, DW);
        break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        run_pointwise(r, op);
        break;
    case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
        run_norm(r, op);
        break;
    case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
        run_norm_bwd(r, op);
        break;
    default:
        emulator_die("an operation of type %d", (int)op->type);
    }
}

/* ---- running a plan ----------------------------------------------------- */

static void run_graph(void *arg)
{
    struct run *r = arg;
    const struct attribute *ops = find(r->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    for (int64_t i = 0; i < ops->count; i++)
        run_op(r, ((struct desc *const *)ops->data)[i]);
    for (int i = 0; i < r->tensors; i++)
        free(r->t[i].v);
}

static void *pointer(const struct desc *pack, int64_t uid)
{
    const struct attribute *ids =
        find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    void *const *ptr = value(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);

    for (int64_t i = 0; i < ids->count; i++)
        if (((const int64_t *)ids->data)[i] == uid)
            return ptr[i];
    emulator_die("no pointer for tensor %d", (int)uid);
}

static bool is_true(const struct desc *d, int name)
{
    const struct attribute *a = find(d, name);

    return a && *(const bool *)a->data;
}

static void add_tensor(struct run *r, const struct desc *d,
                       const struct desc *pack)
{
    const int64_t *dim = value(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
    int64_t uid = *(const int64_t *)value(d, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    struct tensor *t = &r->t[r->tensors];

    for (int i = 0; i < r->tensors; i++)
        if (r->t[i].desc == d)
            return;
    if (r->tensors++ == MOST)
        emulator_die("a graph of many tensors");
    *t = (struct tensor){
        .desc = d,
        .n = (size_t)dim[0],
        .c = (size_t)dim[1],
        .h = (size_t)dim[2],
        .w = (size_t)dim[3],
        .type = *(const cudnnDataType_t *)value(d, CUDNN_ATTR_TENSOR_DATA_TYPE),
        .number = is_true(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    if (!(t->v = malloc((len(t) + 1) * sizeof(float))))
        emulator_die("out of memory");
    if (t->number) /* read now: it may be gone when the plan runs */
        t->v[0] = *(const float *)pointer(pack, uid);
    else if (!is_true(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
        t->data = pointer(pack, uid);
        if ((uintptr_t)t->data % 16)
            emulator_die("tensor %d is not aligned", (int)uid);
    }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t p,
                                  cudnnBackendDescriptor_t pack)
{
    struct run r = {.graph = ((struct desc *)p)->graph};
    const struct attribute *ops = find(r.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

    if (emulator_gone(emulator_current(), "launch"))
        return CUDNN_STATUS_EXECUTION_FAILED_CUDART;
    emulator_made_for(((struct desc *)p)->capability);
    for (int64_t i = 0; i < ops->count; i++) {
        const struct desc *op = ((struct desc *const *)ops->data)[i];

        for (const struct attribute *a = op->first; a; a = a->next)
            if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
                child(op, a->name)->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                add_tensor(&r, child(op, a->name), pack);
    }
    emulator_launch();
    emulator_queue(((struct handle *)(void *)h)->stream, run_graph,
                   emulator_copy(&r, sizeof(r)));
    return CUDNN_STATUS_SUCCESS;
}
