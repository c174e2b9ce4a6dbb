/* fusebench.c - what cuDNN's fusions of ResNet-50's layers would bring
 *
 * Each convolution of ResNet-50: forward, the gradients of x and w; the former
 * added to what is there; with statistics of y (for batch norm) in its
 * epilogue; with the scale, shift and relu of the batch norm before it in front
 * of it; and the gradient of x with that of relu and the sums of batch norm
 * behind it.  And each batch norm, by cuDNN and by libddp's kernels.
 *
 *     tests/fusebench [SAMPLES [SECONDS]]      on a GPU, as CSV [256 150]
 *     tests/fusebench --describe FILE [SAMPLES]
 *         for a GPU that cuDNN's JSON in FILE describes: which of them have
 *         plans; what would be compiled at run time is believed
 *
 * Times are those of the fastest of ten engines, atomics allowed.
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>

#ifndef HAVE_CUDA
int main(void)
{
    fprintf(stderr, "fusebench: built without CUDA\n");
    return 77;
}
#else
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "cuda/bn.h"
#include "cuda/bn_kernels.h"
#include "cuda/dnn_tune.h"
#include "cuda/prepare.h"
#include "driver.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double deadline;
static int samples = 256;

/* ---- layers ------------------------------------------------------------- */

/* x (side, side, in), y (.., .., out) by a square kernel. */
static const struct layer {
    const char *name;
    int side, in, out, kernel, stride;
    int times; /* in the network */
} layers[] = {
    {"stem 7x7/2", 224, 8, 64, 7, 2, 1},
    {"1 1x1 64-64", 56, 64, 64, 1, 1, 1},
    {"1 1x1 256-64", 56, 256, 64, 1, 1, 2},
    {"1 3x3 64", 56, 64, 64, 3, 1, 3},
    {"1 1x1 64-256", 56, 64, 256, 1, 1, 4},
    {"2 1x1 256-128", 56, 256, 128, 1, 1, 1},
    {"2 1x1 512-128", 28, 512, 128, 1, 1, 3},
    {"2 3x3/2 128", 56, 128, 128, 3, 2, 1},
    {"2 3x3 128", 28, 128, 128, 3, 1, 3},
    {"2 1x1 128-512", 28, 128, 512, 1, 1, 4},
    {"2 1x1/2 256-512", 56, 256, 512, 1, 2, 1},
    {"3 1x1 512-256", 28, 512, 256, 1, 1, 1},
    {"3 1x1 1024-256", 14, 1024, 256, 1, 1, 5},
    {"3 3x3/2 256", 28, 256, 256, 3, 2, 1},
    {"3 3x3 256", 14, 256, 256, 3, 1, 5},
    {"3 1x1 256-1024", 14, 256, 1024, 1, 1, 6},
    {"3 1x1/2 512-1024", 28, 512, 1024, 1, 2, 1},
    {"4 1x1 1024-512", 14, 1024, 512, 1, 1, 1},
    {"4 1x1 2048-512", 7, 2048, 512, 1, 1, 2},
    {"4 3x3/2 512", 14, 512, 512, 3, 2, 1},
    {"4 3x3 512", 7, 512, 512, 3, 1, 2},
    {"4 1x1 512-2048", 7, 512, 2048, 1, 1, 3},
    {"4 1x1/2 1024-2048", 14, 1024, 2048, 1, 2, 1},
};
enum { LAYERS = sizeof(layers) / sizeof(layers[0]) };

/* Norms, of y; residual: with one, and the mask that its gradient needs. */
static const struct norm {
    int side, channels;
    bool residual;
    int times;
} norms[] = {
    {112, 64, false, 1}, {56, 64, false, 6}, {56, 256, true, 3},
    {28, 128, false, 7}, {28, 512, true, 4}, {14, 256, false, 11},
    {14, 1024, true, 6}, {7, 512, false, 5}, {7, 2048, true, 3},
};
enum { NORMS = sizeof(norms) / sizeof(norms[0]) };

static struct ddp__conv geometry(const struct layer *l)
{
    int pad = l->kernel / 2;

    return (struct ddp__conv){.kh = l->kernel,
                              .kw = l->kernel,
                              .sh = l->stride,
                              .sw = l->stride,
                              .dh = 1,
                              .dw = 1,
                              .top = pad,
                              .left = pad,
                              .bottom = pad,
                              .right = pad,
                              .groups = 1};
}

static int side_of_y(const struct layer *l)
{
    return (l->side + 2 * (l->kernel / 2) - l->kernel) / l->stride + 1;
}

/* ---- graphs ------------------------------------------------------------- */

/* Tensors; those that are one per channel from SUM to OFFSET. */
enum {
    X = 1,
    W,
    Y,
    SUM,
    SQUARES,
    MEAN,
    INV,
    SCALE,
    SHIFT,
    DSCALE,
    DSHIFT,
    OF_DY,
    OF_X,
    OFFSET,
    SCALED,
    SHIFTED,
    ACTIVE,
    CENTRED,
    WHITE,
    DX,
    DZ
};

static void image(struct ddp__cudnn_graph *g, int id, cudnnDataType_t type,
                  int side, int c, enum ddp__cudnn_kind kind)
{
    ddp__cudnn_tensor(g, id,
                      &(struct ddp__cudnn_shape){.type = type,
                                                 .n = samples,
                                                 .h = side,
                                                 .w = side,
                                                 .c = c,
                                                 .kind = kind});
}

static void vector(struct ddp__cudnn_graph *g, int id, cudnnDataType_t type,
                   int c)
{
    ddp__cudnn_tensor(g, id,
                      &(struct ddp__cudnn_shape){.type = type,
                                                 .n = 1,
                                                 .h = 1,
                                                 .w = 1,
                                                 .c = c,
                                                 .kind = DDP__CUDNN_REAL});
}

static void put(struct ddp__cudnn_graph *g, ddp__cudnn_desc op,
                cudnnBackendAttributeName_t name, int tensor)
{
    ddp__cudnn_set(g, op, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                   &g->tensor[tensor].desc);
}

static void add_op(struct ddp__cudnn_graph *g, ddp__cudnn_desc op,
                   const char *what)
{
    ddp__cudnn_finish(g, op, what);
    if (g->rc == 0 && g->ops < DDP__CUDNN_MAX_OPS)
        g->op[g->ops++] = op;
}

static void set_precision(struct ddp__cudnn_graph *g, ddp__cudnn_desc op,
                          cudnnBackendAttributeName_t name)
{
    cudnnDataType_t type = CUDNN_DATA_FLOAT;

    ddp__cudnn_set(g, op, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

/* Sums and sums of squares over pixels. */
static void add_statistics(struct ddp__cudnn_graph *g, int y, int c)
{
    cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    ddp__cudnn_desc op =
        ddp__cudnn_new(g, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);

    vector(g, SUM, CUDNN_DATA_FLOAT, c);
    vector(g, SQUARES, CUDNN_DATA_FLOAT, c);
    ddp__cudnn_set(g, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE,
                   CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
    set_precision(g, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC);
    put(g, op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y);
    put(g, op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, SUM);
    put(g, op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, SQUARES);
    add_op(g, op, "statistics");
}

/* relu(x scale + shift), which is nowhere in memory. */
static void add_norm_in_front(struct ddp__cudnn_graph *g, const struct layer *l,
                              cudnnDataType_t type, cudnnDataType_t between)
{
    vector(g, SCALE, type, l->in);
    vector(g, SHIFT, type, l->in);
    image(g, SCALED, between, l->side, l->in, DDP__CUDNN_VIRTUAL);
    image(g, SHIFTED, between, l->side, l->in, DDP__CUDNN_VIRTUAL);
    image(g, ACTIVE, between, l->side, l->in, DDP__CUDNN_VIRTUAL);
    ddp__cudnn_choose(g, X, SCALE, SCALED);
    ddp__cudnn_add(g, SCALED, SHIFT, SHIFTED);
    ddp__cudnn_relu(g, SHIFTED, ACTIVE);
}

static void subtract(struct ddp__cudnn_graph *g, int a, int b, int y)
{
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_SUB;
    ddp__cudnn_desc d = ddp__cudnn_new(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
                    op;

    ddp__cudnn_set(g, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
                   1, &mode);
    set_precision(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC);
    ddp__cudnn_finish(g, d, "a difference");
    op = ddp__cudnn_new(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    ddp__cudnn_set(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
    put(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
    put(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    put(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_op(g, op, "a difference's operation");
}

/* dz = the gradient through the relu of scale (x - mean) inv + shift, and the
 * sums that the gradient of that norm needs. */
static void add_norm_behind(struct ddp__cudnn_graph *g, const struct layer *l,
                            cudnnDataType_t type)
{
    static const struct {
        cudnnBackendAttributeName_t name;
        int tensor;
    } is[] = {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, X},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, DZ},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, MEAN},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, INV},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, SCALE},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, DSCALE},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, DSHIFT},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, OF_DY},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, OF_X},
              {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, OFFSET}};
    ddp__cudnn_desc op;

    for (int id = MEAN; id <= OFFSET; id++)
        vector(g, id, CUDNN_DATA_FLOAT, l->in);
    image(g, X, type, l->side, l->in, DDP__CUDNN_REAL);
    image(g, CENTRED, CUDNN_DATA_FLOAT, l->side, l->in, DDP__CUDNN_VIRTUAL);
    image(g, WHITE, CUDNN_DATA_FLOAT, l->side, l->in, DDP__CUDNN_VIRTUAL);
    image(g, SCALED, CUDNN_DATA_FLOAT, l->side, l->in, DDP__CUDNN_VIRTUAL);
    image(g, SHIFTED, CUDNN_DATA_FLOAT, l->side, l->in, DDP__CUDNN_VIRTUAL);
    image(g, DZ, type, l->side, l->in, DDP__CUDNN_REAL);
    subtract(g, X, MEAN, CENTRED);
    ddp__cudnn_choose(g, CENTRED, INV, WHITE);
    ddp__cudnn_choose(g, WHITE, SCALE, SCALED);
    ddp__cudnn_add(g, SCALED, SHIFT, SHIFTED);
    ddp__cudnn_relu_bwd(g, SHIFTED, DX, DZ);
    op = ddp__cudnn_new(g, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    set_precision(g, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC);
    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++)
        put(g, op, is[i].name, is[i].tensor);
    add_op(g, op, "sums of a norm's gradient");
}

static const char *const variants[] = {"forward",
                                       "data",
                                       "filter",
                                       "data, added",
                                       "forward, statistics",
                                       "norm, forward, statistics",
                                       "norm, filter",
                                       "data, relu, norm's sums"};
enum {
    FORWARD,
    DATA,
    FILTER,
    DATA_ADDED,
    FORWARD_STATISTICS,
    NORM_FORWARD,
    NORM_FILTER,
    DATA_NORM,
    VARIANTS
};

/* x, w and y of a convolution; data gradients that go on are nowhere. */
static void add_images(struct ddp__cudnn_graph *g, const struct layer *l,
                       cudnnDataType_t type, int variant)
{
    struct ddp__cudnn_shape w = {
        .type = type, .n = l->out, .h = l->kernel, .w = l->kernel, .c = l->in};

    if (variant == DATA_NORM)
        image(g, DX, CUDNN_DATA_FLOAT, l->side, l->in, DDP__CUDNN_VIRTUAL);
    else
        image(g, X, type, l->side, l->in, DDP__CUDNN_REAL);
    ddp__cudnn_tensor(g, W, &w);
    image(g, Y, type, side_of_y(l), l->out, DDP__CUDNN_REAL);
}

static struct ddp__cudnn_graph *conv_graph(const struct layer *l,
                                           cudnnDataType_t type, int variant)
{
    static const enum ddp__cudnn_pass pass[] = {
        [FORWARD] = DDP__CUDNN_FORWARD,
        [DATA] = DDP__CUDNN_DATA,
        [FILTER] = DDP__CUDNN_FILTER,
        [DATA_ADDED] = DDP__CUDNN_DATA,
        [FORWARD_STATISTICS] = DDP__CUDNN_FORWARD,
        [NORM_FORWARD] = DDP__CUDNN_FORWARD,
        [NORM_FILTER] = DDP__CUDNN_FILTER,
        [DATA_NORM] = DDP__CUDNN_DATA};
    struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();
    struct ddp__conv k = geometry(l);
    int x = variant == DATA_NORM ? DX : X;

    if (!g)
        return NULL;
    add_images(g, l, type, variant);
    if (variant == NORM_FORWARD || variant == NORM_FILTER) {
        add_norm_in_front(g, l, type,
                          variant == NORM_FORWARD ? CUDNN_DATA_FLOAT : type);
        x = ACTIVE;
    }
    ddp__cudnn_conv(g, pass[variant], variant == DATA_ADDED, &k, x, W, Y);
    if (variant == FORWARD_STATISTICS || variant == NORM_FORWARD)
        add_statistics(g, Y, l->out);
    if (variant == DATA_NORM)
        add_norm_behind(g, l, type);
    return g;
}

/* ---- one line ----------------------------------------------------------- */

static int planned, missing;

static void print_line(const char *type, const char *layer, const char *what,
                       int times, const struct ddp__cudnn_plan *p, float ms)
{
    printf("%s,%s,\"%s\",%d,", type, layer, what, times);
    if (p)
        printf("%lld,%.1f,%s,", (long long)p->engine,
               (double)p->workspace / (1 << 20), p->runtime ? "yes" : "no");
    else
        printf(",,,");
    if (ms > 0)
        printf("%.4f", (double)ms);
    printf("\n");
    fflush(stdout);
}

static void plan_drop(struct ddp__cudnn_plan *p)
{
    if (p->desc)
        cudnnBackendDestroyDescriptor(p->desc);
    if (p->config)
        cudnnBackendDestroyDescriptor(p->config);
    ddp__cudnn_graph_free(p->graph);
}

/* A plan, and its time where there is a GPU; takes the graph. */
static void try_graph(struct ddp__cudnn_graph *g, const char *type,
                      const char *layer, const char *what, int times)
{
    struct ddp__cudnn_plan p = {.target = ddp__cudnn_targets,
                                .graph = g,
                                .key = g ? g->key : NULL,
                                .lock = PTHREAD_MUTEX_INITIALIZER};
    struct ddp__cudnn_bench *b;
    float ms = 0;

    if (!g)
        return;
    if (g->rc < 0 || ddp__cudnn_build(&p, (size_t)512 << 20, true) < 0) {
        missing++;
        print_line(type, layer, what, times, NULL, 0);
    } else {
        planned++;
        if (!ddp__cudnn_targets[0].described &&
            (b = ddp__cudnn_bench_new(&p, p.workspace))) {
            if (ddp__cudnn_bench_run(b, &p, &ms) < 0)
                ms = 0;
            ddp__cudnn_bench_free(b);
        }
        print_line(type, layer, what, times, &p, ms);
    }
    plan_drop(&p);
}

static bool is_late(void)
{
    return now() > deadline;
}

static void try_convolutions(enum ddp_dtype type, const char *name)
{
    for (int v = 0; v < VARIANTS; v++)
        for (int i = 0; i < LAYERS && !is_late(); i++)
            if (i > 0 || v <= FORWARD_STATISTICS) /* images have no norm */
                try_graph(conv_graph(&layers[i], ddp__cudnn_type(type), v),
                          name, layers[i].name, variants[v], layers[i].times);
}

/* ---- batch norm --------------------------------------------------------- */

static struct ddp__call norm_call(const struct norm *n, enum ddp__op op,
                                  enum ddp_dtype type)
{
    struct ddp__view x = {type, true, {n->side, n->side, n->channels}, 0};
    struct ddp__view c = {DDP_F32, false, {1, 1, 4 * n->channels}, 0};
    struct ddp__view mask = {
        DDP_U8, true, {n->side, n->side, n->channels / 8}, 0};
    struct ddp__call call = {.op = op,
                             .cap = samples,
                             .bn = {1e-5f, DDP_RELU, n->residual, n->residual}};

    if (op == DDP__OP_BN_FWD) {
        call.buffers = DDP__BN_FWD_BUFFERS;
        call.buf[DDP__BN_FWD_X] = call.buf[DDP__BN_FWD_Y] = x;
        call.buf[DDP__BN_FWD_W] = call.buf[DDP__BN_FWD_STAT] = c;
        if (n->residual) {
            call.buf[DDP__BN_FWD_R] = x;
            call.buf[DDP__BN_FWD_MASK] = mask;
        }
        return call;
    }
    call.buffers = DDP__BN_BWD_BUFFERS;
    call.buf[DDP__BN_BWD_X] = call.buf[DDP__BN_BWD_DY] = x;
    call.buf[DDP__BN_BWD_DX] = x;
    call.buf[DDP__BN_BWD_SLOPE] = n->residual ? mask : x;
    call.buf[DDP__BN_BWD_W] = call.buf[DDP__BN_BWD_STAT] = c;
    call.buf[DDP__BN_BWD_G] = c;
    if (n->residual)
        call.buf[DDP__BN_BWD_DR] = x;
    return call;
}

/* Memory for all operands, zeros. */
static bool get_memory(struct ddp__task *t)
{
    for (int i = 0; i < t->call->buffers; i++) {
        size_t size = ddp__len(t, i) * ddp__dtype_size(t->call->buf[i].type);

        if (size && (cudaMalloc(&t->data[i], size) != cudaSuccess ||
                     cudaMemset(t->data[i], 0, size) != cudaSuccess))
            return false;
    }
    return true;
}

/* The fastest of some runs of a kernel of ours; 0: failed. */
static float time_kernel(struct ddp__task *t, ddp__kernel_f run)
{
    struct ddp__cuda_worker *w = ddp__cuda_self();
    cudaEvent_t begin, end;
    float best = 0, ms;

    if (!w || !get_memory(t) || cudaEventCreate(&begin) != cudaSuccess ||
        cudaEventCreate(&end) != cudaSuccess)
        return 0;
    for (int i = 0; i < 5; i++) {
        cudaEventRecord(begin, w->stream);
        if (run(t) < 0)
            break;
        cudaEventRecord(end, w->stream);
        if (cudaEventSynchronize(end) == cudaSuccess &&
            cudaEventElapsedTime(&ms, begin, end) == cudaSuccess && i > 0 &&
            (best == 0 || ms < best))
            best = ms;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return best;
}

static void try_own(const struct norm *n, enum ddp__op op, enum ddp_dtype type,
                    const char *name, const char *layer)
{
    struct ddp__call c = norm_call(n, op, type);
    struct ddp__task t = {.call = &c, .n = samples};
    bool forward = op == DDP__OP_BN_FWD;
    float ms = 0;

    if (ddp__cuda_kernels_prepare(&c) == 0 && ddp__cuda_enter_ready() == 0)
        ms = time_kernel(&t, forward ? ddp__cuda_bn_kernels_fwd
                                     : ddp__cuda_bn_kernels_bwd);
    for (int i = 0; i < c.buffers; i++)
        if (t.data[i])
            cudaFree(t.data[i]);
    print_line(name, layer,
               forward ? "norm, libddp" : "norm's gradient, libddp", n->times,
               NULL, ms);
}

static void try_norm(const struct norm *n, enum ddp_dtype type,
                     const char *name)
{
    static const enum ddp__op ops[] = {DDP__OP_BN_FWD, DDP__OP_BN_BWD};
    static const char *const what[] = {"norm", "norm's gradient"};
    char layer[64];

    snprintf(layer, sizeof(layer), "norm %dx%dx%d%s", n->side, n->side,
             n->channels, n->residual ? " residual" : "");
    for (int i = 0; i < 2 && !is_late(); i++) {
        struct ddp__call c = norm_call(n, ops[i], type);
        struct ddp__cudnn_graph *g = ddp__cudnn_graph_new();

        if (g)
            ddp__cuda_bn_graph(g, &c, samples);
        try_graph(g, name, layer, what[i], n->times);
        if (!ddp__cudnn_targets[0].described)
            try_own(n, ops[i], type, name, layer);
    }
}

/* ---- all of it ---------------------------------------------------------- */

static int describe(const char *path)
{
    static char json[1 << 16];
    FILE *f = fopen(path, "r");
    size_t len = f ? fread(json, 1, sizeof(json) - 1, f) : 0;

    if (f)
        fclose(f);
    if (!have_driver())
        fprintf(stderr, "fusebench: no library of a driver, not even a stub: "
                        "nothing is compiled\n");
    json[len] = '\0';
    while (len && (json[len - 1] == '\n' || json[len - 1] == ' '))
        json[--len] = '\0';
    return ddp__cudnn_target_json("described", json, false, false);
}

static int find_gpu(void)
{
    static struct ddp__cuda_worker worker;
    int n = 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess || n < 1)
        return ddp__fail(DDP_ENODEV, "there is no GPU");
    if (ddp__cuda_enter(&worker, 0) < 0)
        return DDP_ENODEV;
    return ddp__cudnn_target_device(0, false, true);
}

int main(int argc, char **argv)
{
    static const enum ddp_dtype types[] = {DDP_BF16, DDP_F16};
    static const char *const names[] = {"bf16", "f16"};
    bool described = argc > 2 && strcmp(argv[1], "--describe") == 0;
    int at = described ? 3 : 1;

    if (argc > at)
        samples = atoi(argv[at]);
    deadline = now() + (argc > at + 1 ? atof(argv[at + 1]) : 150);
    if (samples < 1 || (described ? describe(argv[2]) : find_gpu()) < 0) {
        fprintf(stderr, "fusebench: %s\n", ddp_errmsg());
        return 1;
    }
    printf("type,layer,what,times,engine,workspace_mib,compiled,ms\n");
    for (int i = 0; i < 2; i++) {
        try_convolutions(types[i], names[i]);
        for (int k = 0; k < NORMS && !is_late(); k++)
            try_norm(&norms[k], types[i], names[i]);
    }
    fprintf(stderr, "fusebench: %d plans, %d graphs without%s\n", planned,
            missing, is_late() ? "; there was no time for the rest" : "");
    ddp__cuda_leave();
    ddp__cudnn_targets_free();
    return 0;
}
#endif
