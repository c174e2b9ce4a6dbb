/* ddp_layer.h - write custom layers and kernels
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A custom layer is a struct that begins with a struct ddp_layer, and a table
 * of functions, the same that the library's own layers have:
 *
 *     struct scale {
 *         ddp_layer_t layer;
 *         float factor;
 *     };
 *     static const struct ddp_layer_ops SCALE = {
 *         .kind = "scale", .shape = ..., .forward = ..., .backward = ...};
 *     ddp_layer_t *l = ddp_layer_new(sizeof(struct scale), &SCALE);
 *
 * forward and backward add calls of kernels to a graph, which the library then
 * runs for each sub-batch on the device that is free.  Programs that only use
 * layers need ddp.h alone.
 */
#ifndef DDP_LAYER_H
#define DDP_LAYER_H

#include "ddp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A chain as operations, while it is built; a tensor of it. */
typedef struct ddp_graph ddp_graph_t;
typedef struct ddp_value ddp_value_t;

/* A parameter tensor of a layer.  dim as in ddp_param_info; memory order of
 * four-dimensional ones is (out, kh, kw, in). */
struct ddp_param {
    const char *name;         /* "weight", "bias", ... */
    enum ddp_param_role role; /* whether it is trained, and decays */
    int ndim, dim[4];         /* how many dimensions, and these */
    float fill;               /* initial value when std and bound are 0 */
    float std;                /* of a normal distribution */
    float bound;              /* of a uniform one, -bound..bound */
    float momentum;           /* of DDP_RUNNING: the share of the new value */
    int pixels;    /* of a matrix: its columns read (pixels, channels), and
                      are (channels, pixels) in files; 0: as they are */
    bool identity; /* of a convolution: its first outputs begin as its inputs */
};
enum { DDP_MAX_PARAMS = 4, DDP_MAX_BUFFERS = 8, DDP_MAX_BRANCHES = 8 };

/* What forward leaves for backward. */
struct ddp_record {
    ddp_layer_t *layer;
    int begin; /* first record of what is inside the layer */
    int end;   /* of those records; set when the record is kept */
    int split[DDP_MAX_BRANCHES]; /* where a branch's records begin */
    int tag;                     /* as the layer likes */
    ddp_value_t *x, *y;          /* the layer's input and output */
    ddp_value_t *saved;          /* a further value to keep, or NULL */
    ddp_value_t *residual;       /* fused: added before the activation */
    ddp_value_t *mask; /* of act: where it lets gradients pass, or NULL */
    enum ddp_act act;  /* fused */
};

/* What a kind of layer does. */
struct ddp_layer_ops {
    const char *kind; /* "conv", in messages and inspection */
    /* The output's shape, or a negative code. */
    int (*shape)(const ddp_layer_t *l, struct ddp_shape x, struct ddp_shape *y);
    /* Fill in the parameters and return how many; NULL: none. */
    int (*params)(const ddp_layer_t *l, struct ddp_param p[DDP_MAX_PARAMS]);
    /* Add the forward operations; return y.  NULL after a failure. */
    ddp_value_t *(*forward)(ddp_layer_t *l, ddp_graph_t *g, ddp_value_t *x);
    /* Add the backward operations; return dx, or NULL if x needs none. */
    ddp_value_t *(*backward)(ddp_layer_t *l, ddp_graph_t *g,
                             const struct ddp_record *r, ddp_value_t *dy);
    /* Multiply-adds times 2 of one sample, forward; NULL: 0. */
    double (*flops)(const ddp_layer_t *l, struct ddp_shape x);
    /* Fill in the options that, besides shapes and parameters, decide what the
     * layer computes, and return how many; NULL: none.  A checkpoint stores
     * them, and a run in which one differs cannot resume from it. */
    int (*options)(const ddp_layer_t *l, struct ddp_option o[DDP_MAX_OPTIONS]);
    void (*free)(ddp_layer_t *l); /* what the layer itself owns; NULL: none */
    unsigned fuses; /* DDP_FUSE_...: what forward can take into itself */
};
/* Bit a of fuses: the layer computes activation a of its output by itself. */
#define DDP_FUSE_ACT(a) (1u << (a))
#define DDP_FUSE_RESIDUAL (1u << 31)

/* The first member of every custom layer's struct. */
struct ddp_layer {
    const struct ddp_layer_ops *ops; /* not owned */
    char *name;                      /* owned; NULL: numbered */
    ddp_layer_t **child;             /* owned */
    int children;                    /* how many */
    int rc;                          /* sticky error of a build */
    struct ddp__params *params;      /* of a root chain; owned */
    int param_block;                 /* index in the root's blocks; -1: none */
};

/* Allocate a layer of size bytes (>= sizeof(ddp_layer_t)), zeroed. */
ddp_layer_t *ddp_layer_new(size_t size, const struct ddp_layer_ops *ops);

/* The buffers of a custom kernel as it runs.  f32, bf16 or f16 by type. */
struct ddp_buffer {
    void *data; /* in the memory of the device that runs it */
    enum ddp_dtype type;
    struct ddp_shape shape; /* of one sample; parameters: (1, 1, all) */
};
struct ddp_kernel_args {
    int n;                                  /* samples */
    int buffers;                            /* how many of buf there are */
    struct ddp_buffer buf[DDP_MAX_BUFFERS]; /* as they were given to
                                               ddp_graph_call() */
    bool accumulate; /* gradients of parameters: add instead of writing */
    void *stream;    /* of a GPU: cudaStream_t on DDP_CUDA; else NULL */
    const void *arg; /* that of ddp_graph_call() */
};
/* Returns 0; anything else fails the step with the kernel's name.  On a GPU it
 * puts work on the stream and returns, without waiting or allocating.  The last
 * CUDA error of a thread may be one of StarPU's ("not ready"): take the
 * status of cudaLaunchKernel(), or call cudaGetLastError() before a launch. */
typedef int (*ddp_kernel_f)(const struct ddp_kernel_args *a);

/* A custom operation: its kernels by kind of device. */
struct ddp_kernel {
    const char *name;                  /* in messages and traces */
    ddp_kernel_f on[DDP_DEVICE_KINDS]; /* [DDP_CPU] at least; NULL: none */
};

/* What a kernel does with a buffer; DDP_UPDATE: reads and writes it. */
enum ddp_access { DDP_READ, DDP_WRITE, DDP_UPDATE };

/* For forward and backward: make values, add calls, keep records. */
ddp_value_t *ddp_graph_value(ddp_graph_t *g, struct ddp_shape shape,
                             enum ddp_dtype type);
struct ddp_shape ddp_value_shape(const ddp_value_t *v);
enum ddp_dtype ddp_value_type(const ddp_value_t *v);
bool ddp_value_needs_gradient(const ddp_value_t *v);
ddp_value_t *ddp_graph_param(ddp_graph_t *g, ddp_layer_t *l);
ddp_value_t *ddp_graph_param_gradient(ddp_graph_t *g, ddp_layer_t *l);
int ddp_graph_call(ddp_graph_t *g, const struct ddp_kernel *k, const void *arg,
                   int buffers, ddp_value_t *const buf[],
                   const enum ddp_access access[]);
/* Keep a record for backward, and return r->y. */
ddp_value_t *ddp_graph_record(ddp_graph_t *g, const struct ddp_record *r);
bool ddp_graph_training(const ddp_graph_t *g);

#ifdef __cplusplus
}
#endif
#endif
