/* ddp.h - train neural networks from C on every device of a machine
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A program builds a chain of layers, names a data set, and trains.  Every
 * training step becomes a StarPU task graph of per-layer tasks over
 * sub-batches.  A sub-batch goes to the first device that is free; those of a
 * step form lanes, whose gradients are added in a fixed order and tree, so the
 * weights are the same to the last bit for any number of devices of a kind and
 * any scheduler.
 *
 *     ddp_t *ddp = ddp_init(NULL);
 *     ddp_chain_t *m =
 *         ddp_chain_new(ddp_dense_new(4, 8, NULL), ddp_dense_new(8, 16, NULL),
 *                       ddp_dense_new(16, 3, NULL), DDP_END);
 *     ddp_dataset_t *iris = ddp_dataset_csv("iris.csv", "class");
 *     struct ddp_train_config cfg;
 *     ddp_train_config_init(&cfg);
 *     cfg.optimizer = ddp_adam(1e-3f);
 *     cfg.sub_batch = 8;
 *     cfg.epochs = 50;
 *     ddp_trainer_t *t = ddp_trainer_new(ddp, m, iris, &cfg);
 *     if (ddp_trainer_train(t) < 0)
 *         fprintf(stderr, "%s\n", ddp_errmsg());
 *     ddp_trainer_free(t); ddp_dataset_free(iris); ddp_chain_free(m);
 *     ddp_finish(ddp);
 *
 * Errors     A function returns 0 or a negative DDP_E... code, or a pointer
 *            and NULL; ddp_errmsg() then returns the reason.  A
 *            function given the NULL of a failed constructor fails with its
 *            message (DDP_EINVAL), so one check at the end is enough.  A
 *            function that succeeds leaves the message as it was.
 * Ownership  Who calls ..._new() or ddp_dataset_...() calls ..._free(), except
 *            where a comment says "takes": then the callee owns the argument
 *            from that moment, also when it fails.  ..._free(NULL) is fine.
 * Options    A pointer to a struct of options may be NULL: all defaults.  A
 *            struct that begins with struct_size is filled with its defaults by
 *            its ..._init(), and then changed field by field; a program built
 *            with this ddp.h then runs with later libraries too.  In the other
 *            structs 0 is 0, unless the field's comment says otherwise.
 * Shapes     One sample is (h, w, c): height, width, channels, channels last.
 *            A vector of k features is (1, 1, k).  Labels are int32_t.
 * Threads    Call from one thread at a time, except where a comment says
 *            otherwise.  The library never prints, exits or installs signal
 *            handlers.
 */
#ifndef DDP_H
#define DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------- */

/* Every error the library returns, and the text ddp_strerror() has for it. */
#define DDP_ERRORS(X)                                                          \
    X(INVAL, 1, "invalid argument")                                            \
    X(NOMEM, 2, "out of memory")                                               \
    X(SHAPE, 3, "shapes do not fit together")                                  \
    X(IO, 4, "a file could not be read or written")                            \
    X(DATA, 5, "the data are bad")                                             \
    X(NODEV, 6, "no device can run this")                                      \
    X(DEVICE, 7, "a device or its library failed")                             \
    X(DIVERGED, 8, "too many steps with numbers that are not finite")          \
    X(TORN, 9, "a step failed half way: weights must be loaded again")         \
    X(STOPPED, 10, "stopped by the caller")                                    \
    X(BUSY, 11, "too many requests are in flight")                             \
    X(PEER, 12, "another rank has ended")

/* Their codes, which functions return. */
enum ddp_err {
    DDP_OK = 0,
#define X(name, num, text) DDP_E##name = -num,
    DDP_ERRORS(X)
#undef X
};

/* The general text of a code. */
const char *ddp_strerror(int code);

/* The last error of this thread as a sentence; "" if there was none. */
const char *ddp_errmsg(void);

/* Make text of unknown origin, such as the name of a file, fit for a terminal,
 * in place: what a terminal may obey becomes question marks, that is control
 * characters (C0, DEL, and C1 as UTF-8), marks that reverse the direction of
 * text, and bytes that are not UTF-8.  The text may become shorter.  All
 * messages of the library are such text. */
void ddp_printable(char *text);

/* Its code; for a constructor that returned NULL. */
int ddp_errcode(void);

/* The version of this header, and of the library that runs, as one number:
 * 10000 major + 100 minor + patch.  CONTRIBUTING.md has what may change in a
 * minor version. */
#define DDP_VERSION_MAJOR 0
#define DDP_VERSION_MINOR 1
#define DDP_VERSION_PATCH 0
#define DDP_VERSION_NUMBER                                                     \
    (10000 * DDP_VERSION_MAJOR + 100 * DDP_VERSION_MINOR + DDP_VERSION_PATCH)
int ddp_version_number(void);

/* "libddp 0.1.0, StarPU 1.3.10, oneDNN 2.6.3, ..." */
const char *ddp_version(void);

/* ---- start and stop ----------------------------------------------------- */

/* libddp, started: StarPU, the devices, and the other ranks. */
typedef struct ddp ddp_t;

/* How to start.  STARPU_* variables of the environment win over all of it. */
struct ddp_config {
    size_t struct_size;
    int cpus;            /* CPU workers; DDP_ALL (default): one per core */
    const char *backend; /* kernels of CPU workers: "cpu" (default), "ref" */
    int gpus;            /* DDP_ALL (default): all that can be used, maybe none;
                            n: as many, or ddp_init() fails */
    double peer_timeout; /* see ddp_ranks_status(); default 300; 0: never */
    /* Another rank has died or hangs: called once, at once, by another thread,
     * with the sentence that calls of the library then fail with. */
    void (*on_peer_lost)(const char *why, void *arg);
    void *arg;
};
enum { DDP_ALL = -1 };

/* Fill in the defaults. */
#define ddp_config_init(c) ddp_config_init_sized(c, sizeof(*(c)))
void ddp_config_init_sized(struct ddp_config *c, size_t size);

/* Start StarPU and the devices.
 *
 * The scheduler is "ddp" unless STARPU_SCHED names another of StarPU's.  If the
 * program has started StarPU itself, that one is used as it is, with its
 * scheduler and workers, and runs on after ddp_finish().  The program's own
 * tasks are neither waited for nor changed.
 * GPUs, where there are some that can be used, train alone, and CPU workers
 * read their input and do what no GPU can; with DDP_HYBRID=1 in the environment
 * both train.  GPUs are of the model of the first one, unless the environment
 * has DDP_UNLIKE_GPUS=1.  With either variable the weights depend on who did
 * what.  Why a GPU is not used is in ddp_describe().
 * Errors   NULL: libddp is already started (there is one StarPU in a process,
 *          and one context), a STARPU_SCHED that does not exist (the message
 *          lists those that do), no CPU worker, a backend that was not built,
 * GPUs that were asked for and cannot be used.
 */
ddp_t *ddp_init(const struct ddp_config *cfg);

/* Free what was made with ddp first: trainers, chains, then ddp_finish().  What
 * is left, other than chains, refuses every call then and can only be freed. */
void ddp_finish(ddp_t *ddp);

/* How many cores this process may use: by its affinity, and by the CPU quota of
 * its container; hyper-threads of a core count as one.  libddp need not have
 * been started.
 * Errors   DDP_ENODEV: hwloc cannot read the topology; DDP_ENOMEM. */
int ddp_core_count(void);

/* One line on the workers: "2 CPU workers (oneDNN 2.6.3 AVX2, loops AVX2),
 * scheduler ddp", "1 CUDA worker on 1 GPU (CUDA 13.0, cuDNN 9.19.0), input by
 * 15 CPU ..." */
const char *ddp_describe(const ddp_t *ddp);

/* The copy between memories that the calling thread began last, "from CUDA 1 to
 * main memory"; false: it made none.  For a handler of SIGABRT, by which a
 * StarPU that contrib/build-starpu did not build ends the process where a copy
 * fails: takes no lock. */
bool ddp_last_copy(char *text, size_t size);

/* How many workers can run kernels. */
int ddp_worker_count(const ddp_t *ddp);
/* How many of them belong to GPUs. */
int ddp_gpu_worker_count(const ddp_t *ddp);

/* The name of the i-th of StarPU's workers, those included that only read
 * input: "CPU 0", "CUDA 0.0 (NVIDIA H100 ...)".
 * Errors   DDP_EINVAL: there is no i-th; name is "" then. */
int ddp_worker_name(const ddp_t *ddp, int i, char *name, size_t size);

/* Processes that mpirun or srun --mpi=pmix has started together are the ranks
 * of one training: trainers divide the lanes among them, and have the same
 * weights on all of them as one process alone.  Every rank makes the same calls
 * in the same order; ddp_finish() waits for all.  A process that was started
 * alone, or with DDP_MPI=0 in its environment, is rank 0 of 1. */
int ddp_rank(const ddp_t *ddp);
int ddp_rank_count(const ddp_t *ddp);
/* Its number among those on this host. */
int ddp_local_rank(const ddp_t *ddp);

/* The kinds of devices, as places in a table of kernels. */
enum ddp_device {
    DDP_CPU,  /* processor cores: they run what no other device can */
    DDP_CUDA, /* NVIDIA's GPUs */
    DDP_DEVICE_KINDS = 8 /* places of a table; more kinds may come */
};

/* A GPU that has workers, as its driver describes it; 0 where it does not. */
struct ddp_gpu_info {
    char name[96];      /* "NVIDIA H100 80GB HBM3" */
    int architecture;   /* in its vendor's numbers: 90 for NVIDIA's 9.0 */
    int units;          /* multiprocessors, or compute units */
    double clock_hz;    /* of these, at most */
    double bytes_per_s; /* of its memory, at most */
};

/* How many GPUs have workers, and the first of them (NULL: not wanted).  The
 * others are of the same model unless DDP_UNLIKE_GPUS=1 is set. */
int ddp_gpu_count(const ddp_t *ddp, struct ddp_gpu_info *first);

/* ---- layers ------------------------------------------------------------- */

/* A part of a network: what it computes, and its parameters.  A chain is a
 * layer. */
typedef struct ddp_layer ddp_layer_t;
typedef struct ddp_layer ddp_chain_t;

/* Types of elements.  Activations are F32, BF16 or F16; files of weights may
 * have more. */
enum ddp_dtype {
    DDP_F32,
    DDP_BF16,
    DDP_F16,
    DDP_U8,
    DDP_I32,
    DDP_I64,
    DDP_F64
};

/* One sample: height, width, channels. */
struct ddp_shape {
    int h, w, c; /* in this order in memory, c the fastest */
};

/* Activations.  Source: torch.nn, of these names. */
enum ddp_act {
    DDP_IDENTITY,
    DDP_RELU,
    DDP_RELU6,
    DDP_SILU,
    DDP_SIGMOID,
    DDP_TANH,
    DDP_GELU,
    DDP_HARDSWISH,
    DDP_HARDSIGMOID,
    DDP_ACT_COUNT
};

/* Ends the list of layers of a constructor.  Not NULL: a constructor that
 * failed returns NULL, and the list must not stop short at it. */
extern const char ddp_end_mark[];
#define DDP_END ((ddp_layer_t *)(void *)ddp_end_mark)

/* Layers one after another.  Takes the layers. */
ddp_chain_t *ddp_chain_new(ddp_layer_t *first, ...);
/* The same of an array, as other languages call it.  n 0: an empty chain. */
ddp_chain_t *ddp_chain_of(int n, ddp_layer_t *const layer[]);

/* Append a layer.  Takes it.  After a failure every later add fails too. */
int ddp_chain_add(ddp_chain_t *chain, ddp_layer_t *layer);

/* Free a layer that no chain has taken, or a chain with all its layers. */
void ddp_layer_free(ddp_layer_t *layer);
void ddp_chain_free(ddp_chain_t *chain);

/* Name a layer for weight files and inspection; "" leaves it out of the names
 * of what is inside it, NULL leaves it unnamed.  Unnamed layers are numbered
 * from 0 in their chain.  Returns the layer, so that calls nest; a NULL layer
 * remains NULL. */
ddp_layer_t *ddp_layer_set_name(ddp_layer_t *layer, const char *name);

/* Initial weights.  All 0: the layer's default. */
struct ddp_weight_init {
    float std;      /* of a normal distribution; or */
    float bound;    /* uniform within -bound..bound */
    bool zero_bias; /* biases are 0, else uniform in 1 / sqrt(fan in) */
};

/* Options of ddp_dense_new(). */
struct ddp_dense_options {
    size_t struct_size;
    bool no_bias; /* y = W x */
    int pixels; /* h w of what was flattened into x; default 1.  The columns of
                   W are in PyTorch's order (c, h, w) in files and for
                   ddp_chain_get() and set(). */
    struct ddp_weight_init init; /* all 0: uniform in 1 / sqrt(in) */
};

/* Fill in the defaults. */
#define ddp_dense_options_init(o) ddp_dense_options_init_sized(o, sizeof(*(o)))
void ddp_dense_options_init_sized(struct ddp_dense_options *o, size_t size);

/* y = W x + b.  x (1, 1, in), y (1, 1, out).  Source: Flux Dense. */
ddp_layer_t *ddp_dense_new(int in, int out, const struct ddp_dense_options *o);

/* Of an option that follows another one by default. */
enum { DDP_SAME = -1 };

/* Options of ddp_conv_new(). */
struct ddp_conv_options {
    size_t struct_size;
    int kernel_w;   /* width of the kernel; DDP_SAME: as its height */
    int stride;     /* default 1 */
    int stride_w;   /* DDP_SAME: as stride */
    int dilation;   /* default 1 */
    int dilation_w; /* DDP_SAME: as dilation */
    int pad;        /* on all four sides; default 0 */
    int pad_w;      /* left and right; DDP_SAME: as pad */
    int pads[4];    /* top, left, bottom, right; DDP_SAME: as pad and pad_w */
    int groups;     /* default 1; in == out == groups is a depthwise one */
    bool no_bias;   /* y = w * x */
    struct ddp_weight_init init; /* all 0: Kaiming normal by fan out */
    bool identity; /* the first outputs begin as the inputs, each through a 1 in
                      the middle of its kernel, as torch.nn.init.dirac_ has it;
                      those that are left as init says.  Not with groups */
};

/* Fill in the defaults. */
#define ddp_conv_options_init(o) ddp_conv_options_init_sized(o, sizeof(*(o)))
void ddp_conv_options_init_sized(struct ddp_conv_options *o, size_t size);

/* A 2-D convolution, y = w * x + b.
 *
 * Shapes   x (h, w, in), y (h', w', out), w (out, kh, kw, in / groups), b (out)
 *          h' = (h + top + bottom - dilation (kh - 1) - 1) / stride + 1
 * Source   FluxML/Flux.jl src/layers/conv.jl, Conv; PyTorch Conv2d
 *          (cross-correlation, as PyTorch).
 */
ddp_layer_t *ddp_conv_new(int in, int out, int kernel,
                          const struct ddp_conv_options *o);

/* Options of ddp_batch_norm_new(). */
struct ddp_batch_norm_options {
    size_t struct_size;
    float eps;      /* above 0; default 1e-5 */
    float momentum; /* of the running statistics, PyTorch's meaning: 0 keeps
                       them; default 0.1 */
    bool zero_init; /* scale starts at 0 (last one of a residual block) */
};

/* Fill in the defaults. */
#define ddp_batch_norm_options_init(o)                                         \
    ddp_batch_norm_options_init_sized(o, sizeof(*(o)))
void ddp_batch_norm_options_init_sized(struct ddp_batch_norm_options *o,
                                       size_t size);

/* Batch normalisation over the samples and pixels of one sub-batch.
 *
 * Running statistics are updated once a step with the mean of the sub-batches'
 * statistics (unbiased variance), weighted by their sizes.
 */
ddp_layer_t *ddp_batch_norm_new(int channels,
                                const struct ddp_batch_norm_options *o);

/* An elementwise activation. */
ddp_layer_t *ddp_act_new(enum ddp_act act);
#define ddp_relu_new() ddp_act_new(DDP_RELU)
#define ddp_relu6_new() ddp_act_new(DDP_RELU6)
#define ddp_silu_new() ddp_act_new(DDP_SILU)
#define ddp_sigmoid_new() ddp_act_new(DDP_SIGMOID)
#define ddp_tanh_new() ddp_act_new(DDP_TANH)
#define ddp_gelu_new() ddp_act_new(DDP_GELU)

/* Options of ddp_max_pool_new() and ddp_mean_pool_new(). */
struct ddp_pool_options {
    size_t struct_size;
    int kernel_w;     /* DDP_SAME: as its height */
    int stride;       /* DDP_SAME: as the kernel */
    int stride_w;     /* DDP_SAME: as stride, or the kernel's width with it */
    int pad;          /* on all four sides; default 0 */
    int pad_w;        /* DDP_SAME: as pad */
    bool ceil_mode;   /* windows may begin inside and end outside: sizes are
                         rounded up */
    bool exclude_pad; /* mean: divide by the pixels inside the image only */
};

/* Fill in the defaults. */
#define ddp_pool_options_init(o) ddp_pool_options_init_sized(o, sizeof(*(o)))
void ddp_pool_options_init_sized(struct ddp_pool_options *o, size_t size);

/* The maximum, or the mean, over windows of kernel x kernel pixels.
 *
 * Shapes   as those of a convolution; with ceil_mode rounded up, where a window
 *          begins inside the image.
 * Source   PyTorch MaxPool2d, AvgPool2d.
 */
ddp_layer_t *ddp_max_pool_new(int kernel, const struct ddp_pool_options *o);
ddp_layer_t *ddp_mean_pool_new(int kernel, const struct ddp_pool_options *o);

/* The mean over windows that divide the image into out_h x out_w parts, as
 * PyTorch's AdaptiveAvgPool2d; and over all of it: (h, w, c) to (1, 1, c). */
ddp_layer_t *ddp_adaptive_mean_pool_new(int out_h, int out_w);
ddp_layer_t *ddp_global_mean_pool_new(void);

/* Zero each value with probability p and divide the others by 1 - p; or, for
 * stochastic depth, whole samples.  Evaluation leaves x as it is. */
ddp_layer_t *ddp_dropout_new(float p);
ddp_layer_t *ddp_stochastic_depth_new(float p);

/* (h, w, c) to (1, 1, h w c). */
ddp_layer_t *ddp_flatten_new(void);

/* y = branch(x) + shortcut(x); shortcut DDP_END: + x.  Takes both. */
ddp_layer_t *ddp_skip_new(ddp_layer_t *branch, ddp_layer_t *shortcut);

/* How the outputs of branches become one. */
enum ddp_join { DDP_CONCAT, DDP_ADD };

/* y = the outputs of all branches on x, joined by channels or added.  Takes
 * the branches. */
ddp_layer_t *ddp_parallel_new(enum ddp_join join, ddp_layer_t *first, ...);
ddp_layer_t *ddp_parallel_of(enum ddp_join join, int n,
                             ddp_layer_t *const branch[]);

/* y = x times gate(x), one factor per sample and channel (squeeze-excite).
 * gate maps (h, w, c) to (1, 1, c).  Takes gate. */
ddp_layer_t *ddp_channel_scale_new(ddp_layer_t *gate);

/* An auxiliary classifier: y = x, and in training branch(x) has the run's loss
 * as well, times weight (0 < weight <= 1), added to loss and gradients but not
 * to the counts of right answers.  Evaluation, ddp_chain_forward() and
 * pullbacks leave the branch out.  Takes branch. */
ddp_layer_t *ddp_aux_new(ddp_layer_t *branch, float weight);

/* ---- named models ------------------------------------------------------- */

/* Options of ddp_model_new(). */
struct ddp_model_options {
    size_t struct_size;
    int classes;     /* default 1000 */
    int in_channels; /* default 3 */
    int width;       /* ResNets: channels of the first stage; default 64 */
    bool small_stem; /* ResNets, for 32x32 images: 3x3 convolution, no pool */
    bool zero_init_residual; /* ResNets */
    const int *sizes;        /* mlp: widths, ended by 0; NULL: 784, 256, 128 */
    float dropout;           /* probability; DDP_MODEL_RATE (default): the one
                                that the network was published with */
    float stochastic_depth;  /* of the last block; the same */
    bool no_aux; /* googlenet, inception_v3: no auxiliary classifiers */
};
enum { DDP_MODEL_RATE = -1 };

/* Fill in the defaults. */
#define ddp_model_options_init(o) ddp_model_options_init_sized(o, sizeof(*(o)))
void ddp_model_options_init_sized(struct ddp_model_options *o, size_t size);

/* A network by its name, which is torchvision's where that has it: alexnet,
 * densenet, efficientnet and efficientnet_v2, googlenet, inception_v3,
 * mobilenet_v2 and v3, resnet, resnext, squeezenet, vgg and wide_resnet in all
 * their sizes; also inception_v2 (the paper's network), resnet9 and airbench
 * for 32x32 images, and mlp.  ddp_model_name() lists them.
 *
 * Names, shapes and order of elements of all tensors are torchvision's too, so
 * that ddp_chain_load() reads its weights.
 * Errors   NULL: no such model (the message lists all), an option that it does
 *          not have.
 */
ddp_chain_t *ddp_model_new(const char *name, const struct ddp_model_options *o);

/* The i-th name ddp_model_new() knows, or NULL. */
const char *ddp_model_name(int i);

/* Side of the images that a model is usually trained on; 0: no such model. */
int ddp_model_size(const char *name);

struct ddp_image_options;

/* Set size, resize, interpolation, mean and std to those that torchvision's
 * weights of a model expect; DDP_EINVAL: no such model.  GoogLeNet, Inception
 * v3 and EfficientNetV2-L take values from -1 to 1; to the first two,
 * torchvision passes ImageNet's mean and deviation, which the network turns
 * into those (transform_input), and libddp's does not. */
int ddp_model_image_options(const char *name, struct ddp_image_options *o);

/* ---- what is in a chain ------------------------------------------------- */

/* What a parameter is, which decides whether weight decay is for it. */
enum ddp_param_role {
    DDP_WEIGHT,  /* decays */
    DDP_BIAS,    /* does not, nor do norms, unless asked */
    DDP_NORM,    /* scale and shift of a norm */
    DDP_RUNNING, /* running statistics: not trained */
};

/* A parameter tensor of a chain. */
struct ddp_param_info {
    char name[160];           /* "layer1.0.conv1.weight" */
    enum ddp_param_role role; /* of all its elements */
    int ndim;                 /* how many of dim there are */
    int dim[4]; /* as PyTorch has them: (out, in, kh, kw), (out, in), (c) */
    size_t len; /* elements: the product of dim */
};

/* The i-th parameter tensor; DDP_EINVAL past the last. */
int ddp_chain_param(const ddp_chain_t *c, int i, struct ddp_param_info *info);

/* Copy a parameter out or in, in PyTorch's order of elements. */
int ddp_chain_get(ddp_chain_t *c, const char *name, float *out, size_t len);
int ddp_chain_set(ddp_chain_t *c, const char *name, const float *in,
                  size_t len);

/* Initialise all parameters: convolutions Kaiming normal (fan out), dense
 * uniform in 1 / sqrt(in) as PyTorch's ResNets; norms 1 and 0. */
int ddp_chain_init(ddp_chain_t *c, uint64_t seed);

/* Weights as a safetensors file under torchvision's names and layout, which
 * PyTorch loads as a state_dict.  The file appears whole or not at all. */
struct ddp_save_options {
    size_t struct_size;
    enum ddp_dtype dtype; /* DDP_F32, or DDP_BF16: rounded to it */
};

/* Fill in the defaults. */
#define ddp_save_options_init(o) ddp_save_options_init_sized(o, sizeof(*(o)))
void ddp_save_options_init_sized(struct ddp_save_options *o, size_t size);

/* o NULL: F32.  Errors: DDP_EIO; path is then as it was. */
int ddp_chain_save(ddp_chain_t *c, const char *path,
                   const struct ddp_save_options *o);

/* Words that files of the chain's weights carry with them, such as the size of
 * images: ddp_chain_save(), ddp_trainer_ema_save() and checkpoints write them,
 * ddp_weights_convert() copies those of its input.  Both texts are UTF-8 and
 * copied; a second value of a key replaces the first. */
int ddp_chain_set_metadata(ddp_chain_t *c, const char *key, const char *value);

/* Call fn for each of those in a file, or in the files of an index, but for
 * PyTorch's "format"; not 0 stops with DDP_ESTOPPED.  The file is untrusted:
 * check what it says. */
int ddp_weights_metadata(const char *path,
                         int (*fn)(const char *key, const char *value,
                                   void *arg),
                         void *arg);

/* The name of the model whose tensors, by their names, are those of a file (of
 * several, the one with the most of their shapes); NULL: of none.  The classes
 * do not matter.  Errors: DDP_EIO; DDP_EDATA: no safetensors file. */
int ddp_weights_model(const char *path, const char **name);

/* How a file may differ from the chain.  Shapes may not, but for new_head. */
struct ddp_load_options {
    size_t struct_size;
    bool partial;  /* keep the values of tensors that the file lacks, but not of
                      all; skip those that the chain lacks */
    bool new_head; /* keep the values of the last layer with weights if it has
                      another number of outputs in the file (fine-tuning) */
};

/* Fill in the defaults. */
#define ddp_load_options_init(o) ddp_load_options_init_sized(o, sizeof(*(o)))
void ddp_load_options_init_sized(struct ddp_load_options *o, size_t size);

/* What was loaded; text lists what was not, "" if nothing is missing. */
struct ddp_load_report {
    int loaded, missing, unexpected; /* tensors */
    bool new_head; /* the last layer has other classes and kept its values */
    char text[1600];
};

/* Weights from such a file, of F32, F16, BF16, F64 or I64: every tensor of the
 * chain with its shape and no other, except PyTorch's num_batches_tracked.
 * After an error no weight has changed.  A path that ends in .json is an index
 * of several files next to it, model.safetensors.index.json.  report may be
 * NULL.
 * Errors   DDP_EIO; DDP_EDATA: no safetensors file, or tensors are missing or
 *          unexpected; DDP_ESHAPE.  The message lists names. */
int ddp_chain_load(ddp_chain_t *c, const char *path,
                   const struct ddp_load_options *o,
                   struct ddp_load_report *report);

/* How far something long is: `done` of `count` samples, or bytes of
 * a file, of one call at a time.
 * It may be called by another thread than the caller's. */
typedef void (*ddp_count_f)(int64_t done, int64_t count, void *arg);

/* What the chain computes in evaluation, with its weights, as an ONNX model
 * (opset 14, IR version 7) for other programs to run.  on_count, which may be
 * NULL, learns how much of the file is written.
 *
 * Shapes   "input" (N, c, h, w) f32 for samples of shape in, "output" likewise;
 *          vectors are (N, k).  N is free.  The normalisation of images is not
 *          in it.
 * Order    of what is flattened: (c, h, w), as PyTorch's.
 * Errors   DDP_EINVAL: a custom layer, more than 2 GB, a libddp built
 *          without ONNX; DDP_ESHAPE: in does not fit the chain; DDP_EIO.
 */
int ddp_chain_export_onnx(ddp_chain_t *c, struct ddp_shape in, const char *path,
                          ddp_count_f on_count, void *arg);

/* Convert a safetensors file of weights, or an index of several, of any
 * network. */
struct ddp_convert_options {
    size_t struct_size;
    enum ddp_dtype dtype;     /* DDP_F32, or DDP_BF16: rounded to it */
    const char *strip_prefix; /* off all names that begin with it; one must */
    const char *add_prefix;   /* in front of all names */
    const char *drop;         /* patterns of names to leave out, as a shell's,
                                 separated by commas; NULL: what only training
                                 needs, "opt.*,ema.*,*num_batches_tracked" */
};

/* Fill in the defaults. */
#define ddp_convert_options_init(o)                                            \
    ddp_convert_options_init_sized(o, sizeof(*(o)))
void ddp_convert_options_init_sized(struct ddp_convert_options *o, size_t size);

/* What ddp_weights_convert() did. */
struct ddp_convert_report {
    int written, dropped, renamed; /* tensors: written, dropped and,
                                        of those written, renamed */
};

/* Errors   DDP_EIO; DDP_EDATA: no safetensors file, integers that are not left
 *          out, nothing left, no such prefix; DDP_EINVAL: two tensors would
 *          have one name.  out is then as it was.  report may be NULL. */
int ddp_weights_convert(const char *in, const char *out,
                        const struct ddp_convert_options *o,
                        struct ddp_convert_report *report);

/* CRC-32C of all parameters in order: equal means the same bits. */
int ddp_chain_checksum(ddp_chain_t *c, uint32_t *crc);

/* The Euclidean norm of all trained parameters together, running statistics
 * left out. */
int ddp_chain_norm(ddp_chain_t *c, double *norm);

/* An option of a layer: a number, or a word where text is not NULL. */
struct ddp_option {
    const char *name; /* "stride" */
    double value;     /* if text is NULL */
    const char *text;
};
enum { DDP_MAX_OPTIONS = 16 };

/* A leaf layer of a chain, as ddp_chain_inspect() reports it. */
struct ddp_layer_info {
    char name[160];           /* "layer1.0.conv1" */
    const char *kind;         /* "conv" */
    struct ddp_shape in, out; /* of one sample */
    int options;              /* stride, eps, ...; with the defaults resolved */
    struct ddp_option option[DDP_MAX_OPTIONS]; /* so many of them */
    size_t params;                             /* trained ones */
    double flops;           /* forward, one sample, a multiply-add is 2 */
    size_t activation_size; /* bytes kept for backward, one sample */
    bool training_only;     /* of an auxiliary classifier */
};

/* Call fn for every leaf layer in order, for input of this shape. */
int ddp_chain_inspect(ddp_chain_t *c, struct ddp_shape in, enum ddp_dtype type,
                      int (*fn)(const struct ddp_layer_info *, void *arg),
                      void *arg);

/* ---- ranks -------------------------------------------------------------- */

/* Wait until every rank has called this. */
int ddp_barrier(ddp_t *ddp);

/* Give every rank the root's bytes. */
int ddp_bcast(ddp_t *ddp, void *data, size_t bytes, int root);

/* What becomes of the ranks' values of an element. */
enum ddp_reduction { DDP_SUM, DDP_MEAN, DDP_PROD, DDP_MIN, DDP_MAX };

/* Reduce what the ranks have in data, element by element, and give the result
 * to all (in place); of ddp_reduce() only the root gets it, and the others keep
 * theirs.  All get the same bits; another number of ranks may give others.
 * Types: DDP_F32, DDP_F64, and, but for the mean, DDP_U8, DDP_I32, DDP_I64.
 * Errors   DDP_EPEER: a rank has ended, and data is undefined. */
int ddp_allreduce(ddp_t *ddp, void *data, size_t count, enum ddp_dtype type,
                  enum ddp_reduction op);
int ddp_reduce(ddp_t *ddp, void *data, size_t count, enum ddp_dtype type,
               enum ddp_reduction op, int root);

/* The same from one place to another, which may overlap.  Only the root needs
 * a `to` of ddp_reduce_to() and a `from` of ddp_bcast_to(): others may have
 * NULL there. */
int ddp_bcast_to(ddp_t *ddp, const void *from, void *to, size_t bytes,
                 int root);
int ddp_allreduce_to(ddp_t *ddp, const void *from, void *to, size_t count,
                     enum ddp_dtype type, enum ddp_reduction op);
int ddp_reduce_to(ddp_t *ddp, const void *from, void *to, size_t count,
                  enum ddp_dtype type, enum ddp_reduction op, int root);

/* The same of those ranks that take part; every rank calls it and gets the
 * result.  *parts: how many did; if none, data is left as it is. */
int ddp_allreduce_optional(ddp_t *ddp, void *data, size_t count,
                           enum ddp_dtype type, enum ddp_reduction op,
                           bool take_part, int *parts);

/* The same as ddp_allreduce() and ddp_bcast(), while the program runs: data,
 * not owned, is in use until ddp_request_wait(), which ends and frees the
 * request.  NULL: it was not begun. */
typedef struct ddp_request ddp_request_t;
ddp_request_t *ddp_allreduce_begin(ddp_t *ddp, void *data, size_t count,
                                   enum ddp_dtype type, enum ddp_reduction op);
ddp_request_t *ddp_bcast_begin(ddp_t *ddp, void *data, size_t bytes, int root);
int ddp_request_test(ddp_request_t *r, bool *done);
int ddp_request_wait(ddp_request_t *r);

/* Give every rank the root's parameters, which then count as set.  Every rank
 * calls it, with the same network.  A trainer initialises equal weights on
 * all ranks, and needs this only if they were set differently.
 * Errors   DDP_EINVAL: the networks differ; DDP_EPEER: a rank has ended. */
int ddp_chain_sync(ddp_t *ddp, ddp_chain_t *chain, int root);

/* What a process is doing. */
enum ddp_phase {
    DDP_PHASE_PROGRAM, /* nothing that the library knows of */
    DDP_PHASE_TRAINING,
    DDP_PHASE_READING, /* a sample that takes more than a second */
    DDP_PHASE_EVALUATING,
    DDP_PHASE_SAVING,
    DDP_PHASE_ENDED,
};

/* "training", "reading input", ... */
const char *ddp_phase_name(enum ddp_phase phase);

/* What a rank is doing, as the others know. */
struct ddp_rank_status {
    char host[64];        /* the name of its machine */
    enum ddp_phase phase; /* see ddp_phase_name() */
    double phase_s; /* seconds in it; training and evaluating: in this step */
    int64_t step;   /* training steps done */
    double loss;    /* of the last one, as all ranks together computed it */
    double step_s;  /* seconds that it took */
    double wait_share; /* of the time since training began: waiting for other
                          ranks with nothing else to do, 0..1 */
    double silent_s;   /* since the rank was last heard of */
};

/* What a rank is doing, as the others hear about twice a second.  Any
 * thread may ask, also in callbacks.
 *
 * When a rank that the others wait for has done nothing for peer_timeout
 * seconds (of struct ddp_config), or a rank has not been heard of for as long,
 * their calls fail with DDP_EPEER and a sentence that names it, its host and
 * what it was doing; when a process on the same host dies, they do so at once.
 * Errors   DDP_EINVAL: there is no such rank. */
int ddp_ranks_status(const ddp_t *ddp, int rank, struct ddp_rank_status *s);

/* What carries the messages between ranks, such as "Open MPI v4.1.4,
 * MPI_THREAD_FUNNELED"; "" without other ranks.  Valid until ddp_finish(). */
const char *ddp_ranks_describe(const ddp_t *ddp);

/* Measure the network: each rank sends bytes to the next one (the last one to
 * rank 0) and gets as many of the one before, rounds times.  Every rank calls
 * it with the same numbers, at about the same time. Output   seconds: of a
 * round on this rank, on average; 0 with one rank. Errors   DDP_EINVAL: bytes
 * is 0 or above 2^30, or rounds is not positive; DDP_ENOMEM; DDP_EPEER: a rank
 * has ended. */
int ddp_ranks_measure(ddp_t *ddp, size_t bytes, int rounds, double *seconds);

/* From now on a rank counts as lost when it has not been heard of for so many
 * seconds, if that is less than peer_timeout: for a process that was asked to
 * end, perhaps because another one has died on another host, and will be
 * killed soon.  May be called in signal handlers. Errors   DDP_EINVAL: seconds
 * is not positive. */
int ddp_ranks_hurry(ddp_t *ddp, double seconds);

/* ---- data --------------------------------------------------------------- */

/* Samples, by number, with classes or targets. */
typedef struct ddp_dataset ddp_dataset_t;

/* What becomes of an image. */
enum ddp_augment {
    DDP_AUGMENT_NONE,   /* resize short side, centre crop */
    DDP_AUGMENT_RANDOM, /* random resized crop, flip: ImageNet training */
    DDP_AUGMENT_SHIFT,  /* zero-pad, random crop, flip: CIFAR training */
};

/* Pillow's filters of these names, antialiased; DDP_EITHER_FILTER is bilinear
 * or bicubic, drawn for each training image (timm's "random"). */
enum ddp_interpolation {
    DDP_BILINEAR,
    DDP_BICUBIC,
    DDP_BOX,
    DDP_HAMMING,
    DDP_LANCZOS,
    DDP_EITHER_FILTER,
};

/* Policies that choose random operations for each sample.  Source:
 * torchvision's AutoAugment (of ImageNet), RandAugment, TrivialAugmentWide and
 * AugMix on images of Pillow, where what comes from outside is black; and
 * timm's RandAugment and AutoAugment, where it is the mean colour. */
enum ddp_policy_kind {
    DDP_POLICY_NONE,
    DDP_AUTO_AUGMENT,
    DDP_RAND_AUGMENT,
    DDP_TRIVIAL_AUGMENT,
    DDP_AUGMIX,
    DDP_TIMM_AUGMENT,
    DDP_TIMM_ORIGINAL, /* timm's AutoAugment of the paper, "original" */
    DDP_TIMM_V0,       /* and of EfficientNet, "v0" */
};

/* All 0: none.  ddp_policy_parse() sets what a kind needs. */
struct ddp_policy {
    enum ddp_policy_kind kind;
    int ops;            /* operations one after another; of AugMix's chains, 0:
                           1 to 3 */
    int chains;         /* of AugMix */
    double magnitude;   /* RandAugment 0..30; AugMix, its severity, 1..10; timm
                           0..10 */
    double deviation;   /* timm: of the magnitude; above 100: it is uniform */
    double probability; /* timm: of each operation */
    double alpha;       /* AugMix: of the distribution of shares */
    bool increasing;    /* timm: a larger magnitude is always stronger; of its
                           AutoAugment, for posterize ("originalr", "v0r") */
};

/* Set a policy by its name: torchvision's "imagenet", "ra", "ta_wide" and
 * "augmix", timm's "rand-m9-mstd0.5-inc1", "original", "originalr", "v0" and
 * "v0r" (with "-mstd0.5"), or "none"; "ra-m9-n2" and
 * "augmix-m3-w3-d2-a1" change the defaults.
 * Errors   DDP_EINVAL: there is no such name, or no such number. */
int ddp_policy_parse(const char *text, struct ddp_policy *p);

/* What erased boxes are filled with: the mean colour (torchvision, timm's
 * "const"), a colour for each box (timm's "rand") or for each pixel ("pixel"),
 * whose values have mean 0 and deviation 1 once they are normalised, within the
 * range of a byte. */
enum ddp_erase {
    DDP_ERASE_MEAN,
    DDP_ERASE_COLOUR,
    DDP_ERASE_NOISE,
};

/* How image files become samples: see ddp_dataset_open() and its kin. */
struct ddp_image_options {
    size_t struct_size;
    int size;   /* of the square that goes in; 0: 224, CIFAR 32, MNIST 28 */
    int resize; /* short side before the centre crop; 0: size * 8 / 7,
                   CIFAR and MNIST size */
    enum ddp_augment augment; /* of training; default: none */
    float min_area;           /* of the random crop; default 0.08 */
    int shift;                /* pixels of DDP_AUGMENT_SHIFT; default 4 */
    float horizontal_flip;    /* probability that a sample is mirrored, left and
                                 right; default 0.5; not with NONE */
    float erase; /* probability that boxes of 2 to 33 % of a sample are painted
                    over (random erasing); not with NONE */
    float mean[3];      /* of channels in 0..1; default: ImageNet's */
    float std[3];       /* the same */
    int64_t max_pixels; /* larger images are bad ones; default 178956970 */
    double max_bad;     /* fraction of unreadable files to tolerate, rounded up;
                           default 0.001 */
    bool upright;       /* turn images as their EXIF tag says; torchvision and
                           Pillow do not */
    enum ddp_interpolation interpolation; /* of all that is resized; default
                                             bilinear */
    /* With RANDOM and SHIFT only.  The steps after the crop are torchvision's
     * transforms of the same names on 8-bit images, in this order. */
    float max_area;      /* of the random crop; default 1 */
    double ratio[2];     /* width / height of the random crop: least, most;
                            default 3/4, 4/3 */
    float vertical_flip; /* probability */
    float jitter[4];     /* brightness, contrast, saturation: factors are drawn
                            from max(0, 1 - x) .. 1 + x; hue, up to 0.5 turns:
                            from -x .. x; in random order */
    float jitter_share;  /* probability of jitter; default 1 */
    float grayscale;     /* probability */
    float blur;          /* probability of a Gaussian blur of 23 x 23 pixels
                            whose deviation is drawn from 0.1 .. 2 pixels */
    struct ddp_policy policy; /* before jitter; maps use `interpolation` if it
                                 is bicubic, else bilinear */
    enum ddp_erase erase_fill;
    int erase_count; /* the most erased boxes, which share that area; how many
                        there are is drawn; 1 to 8, default 1 */
};

/* Fill in the defaults. */
#define ddp_image_options_init(o) ddp_image_options_init_sized(o, sizeof(*(o)))
void ddp_image_options_init_sized(struct ddp_image_options *o, size_t size);

/* Where folders and files of data may be: also below s3://BUCKET/FOLDER,
 * http:// or https://, in a build with libcurl.  A server is listed when it is
 * first opened, and a file that has changed since is an error.  Who asks S3 is
 * found as by AWS's tools: environment, profile, role, nobody. */
struct ddp_storage_config {
    size_t struct_size;
    double timeout; /* seconds to try for, while a server does not answer;
                       default 300 */
    int requests;   /* at a time, at most; default 256, enough for 5120 images
                       per second at 50 ms each.  64 at first, one more when a
                       worker waits; eight times as many images are begun
                       before they are needed */
    const char *cache_dir; /* folder for copies of S3's objects, which several
                              processes may share; created; NULL: none */
    int64_t cache_size; /* bytes in it, before the oldest go; default 50 GiB */
};

/* Fill in the defaults. */
#define ddp_storage_config_init(c)                                             \
    ddp_storage_config_init_sized(c, sizeof(*(c)))
void ddp_storage_config_init_sized(struct ddp_storage_config *c, size_t size);

/* For the process, before data sets are opened.
 * Errors   DDP_EINVAL; DDP_EIO: there is no cache_dir, nor can it be created.
 */
int ddp_storage_configure(const struct ddp_storage_config *c);

/* What the process has asked servers for. */
struct ddp_storage_stats {
    int64_t requests, retries;        /* retries are requests too */
    int64_t bytes;                    /* received */
    int64_t cache_hits, cache_misses; /* reads that the folder of copies had,
                                         and had not */
};
void ddp_storage_stats(struct ddp_storage_stats *s);

/* Memory for decoded images, of all data sets of image files of the process
 * together; default 0: none.  The first images that fit stay, until their data
 * set is freed.  Samples are the same with and without.  To be called before
 * samples are read.  Errors: DDP_EINVAL. */
int ddp_image_cache_configure(int64_t bytes);

/* The same in a folder, of so many bytes at most, which is made when missing
 * and is kept for the next epoch and the next run, and for other processes.  An
 * image that was not used for the longest time makes room for another.  Each
 * has a checksum, and is decoded again when its file has another size or time
 * of change, or its object another ETag.  Where the disk is full, no more are
 * kept.  NULL: none.
 * Errors   DDP_EINVAL; DDP_EIO: the folder cannot be made. */
int ddp_image_cache_folder(const char *dir, int64_t bytes);

/* How often an image was there and was not, and what memory has now or a folder
 * has got from this process. */
struct ddp_image_cache_stats {
    int64_t hits, misses;  /* reads */
    int64_t images, bytes; /* in it */
};
void ddp_image_cache_stats(struct ddp_image_cache_stats *s);

/* A part of a data set as its publisher divided it. */
enum ddp_split { DDP_TRAIN, DDP_VAL, DDP_TEST };

/* A table with a header line; label names the column of classes, the other
 * columns are numbers.  Classes are numbered in the order of their names. */
ddp_dataset_t *ddp_dataset_csv(const char *path, const char *label);

/* One folder per class with images in it, at any depth; classes by name, two or
 * more. */
ddp_dataset_t *ddp_dataset_folder(const char *dir,
                                  const struct ddp_image_options *o);

/* ImageNet as Kaggle has it: LOC_synset_mapping.txt, LOC_train_solution.csv,
 * LOC_val_solution.csv, ILSVRC/Data/CLS-LOC.  For training, the class folders
 * are used when they are there (the CSV lists only images with boxes). */
ddp_dataset_t *ddp_dataset_imagenet(const char *dir, enum ddp_split split,
                                    const struct ddp_image_options *o);

/* CIFAR-10's binary files: data_batch_1..5.bin, test_batch.bin. */
ddp_dataset_t *ddp_dataset_cifar10(const char *dir, enum ddp_split split,
                                   const struct ddp_image_options *o);

/* CIFAR-100's binary files: train.bin, test.bin, fine_label_names.txt; the 100
 * fine classes. */
ddp_dataset_t *ddp_dataset_cifar100(const char *dir, enum ddp_split split,
                                    const struct ddp_image_options *o);

/* MNIST, or another data set in its files: train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, those of t10k, or the same with .gz where the build
 * has zlib; in dir, dir/raw or dir/MNIST/raw.  Ten classes, "0" to "9"; gray
 * becomes red, green and blue. */
ddp_dataset_t *ddp_dataset_mnist(const char *dir, enum ddp_split split,
                                 const struct ddp_image_options *o);

/* Images listed in a CSV file with a header line.  The first column has their
 * paths, relative to the folder of the list.  With one more column, `label` or
 * `class`, that is the class, numbered in the order of the names, and after it
 * `weight` may be the factor of the image's loss, such as 0.1 for a class that
 * is a guess and 0 for none.  In place of it `labels` has several classes of an
 * image, separated by semicolons, or none: there are as many numbers of a
 * target as classes, 1 for those that it has, for DDP_BINARY_CROSS_ENTROPY or
 * DDP_FOCAL.  With other columns, these are numbers: the targets
 * (ddp_dataset_target_len() of them), for regression with DDP_MSE or a loss of
 * the program's.
 * Errors   DDP_EDATA with path:line. */
ddp_dataset_t *ddp_dataset_list(const char *csv,
                                const struct ddp_image_options *o);

/* Images in tar files without an index, in WebDataset's layout: a sample is the
 * files whose paths are the same up to the first dot of the name, such as
 * 000017.jpg and 000017.cls.  shards: a tar file, tar files by ranges in braces
 * ("train-{000..099}.tar"), or a text file with one in each line, relative to
 * its folder; here or on a server, in one folder or below it.
 *
 * The class is the number in .cls, or "label" of .json; the image the first
 * file whose name says that it is one.  classes.txt in the folder may have the
 * names of the classes, one in each line; else they are numbers up to the
 * largest.  Opening reads the headers of all files; from a server, that
 * is all of their bytes.  The order is that of ddp_dataset_tars().
 * Errors   DDP_EDATA: a damaged tar file, a sample without a class. */
ddp_dataset_t *ddp_dataset_webdataset(const char *shards,
                                      const struct ddp_image_options *o);

/* Images that ddp_dataset_pack() wrote: tar files with an index.  Each epoch
 * has its own order of them, in which samples are mixed within windows of
 * 16384.  One whose checksum is wrong is bad. */
ddp_dataset_t *ddp_dataset_tars(const char *dir,
                                const struct ddp_image_options *o);

/* Options of ddp_dataset_pack(). */
struct ddp_pack_options {
    size_t struct_size;
    int64_t shard_samples; /* in each tar file; default 1000 */
    int threads;           /* that write; default 1 */
    uint64_t seed;         /* of the order that samples are written in */
    ddp_count_f on_count;  /* may be NULL */
    void *arg;             /* of on_count */
    int resize;  /* images whose short side has more pixels than this are
                    resized to it and become JPEG files of the RGB colours as
                    they are stored, without EXIF; default 0: files are copied
                    as they are */
    int quality; /* of these JPEG files, libjpeg's 1 to 100; default 90 */
    enum ddp_interpolation interpolation; /* that resizes; default DDP_BILINEAR,
                                             antialiased as in training */
};

/* Fill in the defaults. */
#define ddp_pack_options_init(o) ddp_pack_options_init_sized(o, sizeof(*(o)))
void ddp_pack_options_init_sized(struct ddp_pack_options *o, size_t size);

/* Write a data set of image files into the folder dir, as tar files in
 * WebDataset's layout ("00000012.jpg", and its class in "00000012.cls"), with
 * an index, checksums and the names of classes.  dir must not exist; it appears
 * when all of it is on disk.  The bytes do not depend on the number of threads.
 * o: NULL: the defaults.
 * Errors   DDP_EINVAL: dir exists, or the data are no files; DDP_EIO: it cannot
 *          be written, or the build lacks libarchive; DDP_EDATA: a file cannot
 *          be read. */
int ddp_dataset_pack(ddp_dataset_t *d, const char *dir,
                     const struct ddp_pack_options *o);

/* Write the files of a data set into the folder dir, which must not exist, with
 * a folder for each class, as they are: also those of tar files.  on_count may
 * be NULL.
 * Errors   DDP_EINVAL: dir exists, or the data are no files; DDP_EIO: it cannot
 *          be written; DDP_EDATA: a file cannot be read. */
int ddp_dataset_unpack(ddp_dataset_t *d, const char *dir, ddp_count_f on_count,
                       void *arg);

/* n images by their paths, without classes: to be answered, not trained on.
 * A folder stands for the images in it, at any depth, in the order of their
 * paths.  A file is looked at when it is read: one that cannot be is bad. */
ddp_dataset_t *ddp_dataset_images(const char *const *path, int64_t n,
                                  const struct ddp_image_options *o);

/* Whichever of the image data sets dir holds: imagenet, a CIFAR-10 or -100, an
 * MNIST, or folders, packed or not: dir/train; the first of dir/val, dir/valid,
 * dir/validation and dir/test; dir/test.  If dir has none of these, its own
 * folders are the classes of DDP_TRAIN, and there is no other split.  Nor is
 * there in a list (NAME.csv) or in tar files (NAME.tar, also with ranges in
 * braces, or NAME.txt, which lists them): these are for DDP_TRAIN. */
ddp_dataset_t *ddp_dataset_open(const char *dir, enum ddp_split split,
                                const struct ddp_image_options *o);

/* Where the data set is that a Data.toml (of DataSets.jl) has under a name: its
 * folder or address, for ddp_dataset_open().  "name#folder" is a folder in it.
 * config: the file; NULL: the first that has the name among those of the search
 * path DDP_DATASETS_PATH (or JULIA_DATASETS_PATH), and without these Data.toml
 * in the current folder.  docs/data.md has path and keys; region, endpoint and
 * profile of S3 then hold for the process. Errors   DDP_EIO: the file cannot be
 * read; DDP_EDATA: what is wrong in it, or which names it has; DDP_EINVAL. */
int ddp_dataset_find(const char *config, const char *name, char *where,
                     size_t size);

/* Find and open it. */
ddp_dataset_t *ddp_dataset_named(const char *config, const char *name,
                                 enum ddp_split split,
                                 const struct ddp_image_options *o);

/* The splits that the images of dir are divided into, as bits: 1 << DDP_TRAIN
 * and so on.  0: they are not, and all of them are DDP_TRAIN. */
unsigned ddp_dataset_splits(const char *dir);

/* A part of a data set whose samples are to be divided for training and
 * validation: DDP_VAL has the fraction `val` of each class, rounded, and at
 * least one sample of each class that has two; DDP_TRAIN the others.  Where
 * classes are only known by reading (a callback), it is the fraction of all
 * samples.  Which ones depends on the seed and on the samples and their
 * classes: open the same data twice, with other image options, for both parts.
 * Takes d. Errors   NULL: val is not above 0 and below 1; DDP_TEST; no class
 * has two samples. */
ddp_dataset_t *ddp_dataset_part(ddp_dataset_t *d, enum ddp_split part,
                                double val, uint64_t seed);

/* Part number `part` (from 0) of `parts` that follow each other, have all
 * samples, and differ by one at most; a part may be empty.  Takes d.
 *
 * For loops of a program's own, such as
 *     ddp_dataset_shard(d, ddp_rank(ddp), ddp_rank_count(ddp)):
 * a trainer divides the whole data set among the ranks by itself.
 * Errors   DDP_EINVAL: there is no such part. */
ddp_dataset_t *ddp_dataset_shard(ddp_dataset_t *d, int part, int parts);

/* The n samples with these numbers, in this order; one may occur several times.
 * Takes d; index is copied.
 * Errors   NULL: a number that is none of a sample; n < 1. */
ddp_dataset_t *ddp_dataset_subset(ddp_dataset_t *d, const int64_t *index,
                                  int64_t n);

/* The samples of n data sets, one after the other.  They must have the same
 * shapes, classes (ddp_dataset_set_classes()) and image options.  Takes them,
 * also after a failure. */
ddp_dataset_t *ddp_dataset_concat(ddp_dataset_t *const *d, int n);

/* Samples of class i have class to[i], from 0 to classes - 1, and are left out
 * if to[i] is negative; to has an element for each class of d.  name: of the
 * new classes, copied; NULL: those of the first class that became it.  Takes d.
 * Errors   NULL: to[i] is too large, nothing is left, or samples are to be left
 *          out whose classes are known only by reading them (a callback). */
ddp_dataset_t *ddp_dataset_map(ddp_dataset_t *d, const int32_t *to, int classes,
                               const char *const *name);

/* The side that all images in dir have, which ddp_dataset_open() keeps unless
 * asked otherwise: 32 for CIFAR's files, 28 for MNIST's; 0: they are photos. */
int ddp_dataset_native_size(const char *dir);

/* One sample as a callback gives it.  The callee fills x and label or target.
 *
 * The gradient of a step is the sum of weight times each sample's gradient,
 * divided by the sum of norms: with both left alone, the mean over samples. */
struct ddp_sample {
    void *x;       /* room for one sample of the source's shape and type */
    int32_t label; /* class, for cross entropy */
    float *target; /* room for target_len floats, for MSE and custom losses */
    float weight;  /* factor of this sample's loss; 1 before the call */
    float norm;    /* weight in the normalising sum; negative (the preset): same
                      as weight */
};

/* Samples from a callback.  get may be called from several threads at once; it
 * returns 0, DDP_EDATA (or a positive number) for a bad sample, or another
 * negative code, which ends the run;
 * key is a random number that depends on (seed, epoch, index) alone. */
struct ddp_source {
    int64_t count;          /* of samples */
    struct ddp_shape shape; /* of one of them */
    enum ddp_dtype type;    /* DDP_F32 or DDP_U8 */
    int classes;            /* 0: targets, not classes */
    int target_len;         /* numbers of a target; 0: classes */
    int (*get)(void *arg, int64_t index, uint64_t key, struct ddp_sample *s);
    void *arg; /* not owned */
};
ddp_dataset_t *ddp_dataset_callback(const struct ddp_source *src);

/* Samples that come one after the other, until there are no more: from a pipe,
 * a socket, a simulation.  They can be trained on by one process, and by one
 * trainer at a time; parts of them, and evaluations, need data of a known
 * length.
 *
 * An epoch ends when the stream does, and the next one begins with its first
 * sample again; in an epoch without any, the run ends.  A run has `steps` steps
 * of struct ddp_train_config, or without it `epochs` epochs, then with a
 * constant learning rate (or DDP_PLATEAU), because others need the length of
 * the run. With steps, a schedule sees these as `epochs` epochs of the same
 * length. Weights do not depend on the number of workers, nor on when samples
 * arrive. */
struct ddp_stream {
    size_t struct_size;
    struct ddp_shape shape; /* of one sample */
    enum ddp_dtype type;    /* DDP_F32 or DDP_U8 */
    int classes;            /* 0: targets, not classes */
    int target_len;         /* numbers of a target; 0: classes */
    /* Write the next sample, number `index` of an epoch, or return
     * DDP_STREAM_END.  May wait as long as it needs to: it is called by the
     * thread that trains, while workers compute the steps before.  key is as in
     * struct ddp_source.  A negative code ends the run: skip a sample that
     * cannot be read, and write the next one, if the run can do without it.
     * index is one more than in the last call, or 0 with a new epoch.  A run
     * that resumes asks for all samples of its epoch again, and skips those
     * that were used before. */
    int (*next)(void *arg, int64_t epoch, int64_t index, uint64_t key,
                struct ddp_sample *s);
    void *arg;  /* not owned */
    int window; /* of DDP_SHUFFLE: the next sample is drawn from so many, which
                   are kept in memory; 0 (default): samples keep their order */
};
enum { DDP_STREAM_END = 1 };

/* Fill in the defaults: DDP_F32, and no window. */
#define ddp_stream_init(s) ddp_stream_init_sized(s, sizeof(*(s)))
void ddp_stream_init_sized(struct ddp_stream *s, size_t size);

/* Errors   DDP_EINVAL: what is missing. */
ddp_dataset_t *ddp_dataset_stream(const struct ddp_stream *s);

/* Samples in the program's memory, which must stay as they are until the data
 * set is freed. */
struct ddp_arrays {
    size_t struct_size;
    int64_t count;
    struct ddp_shape shape; /* of one sample */
    enum ddp_dtype type;    /* DDP_F32 or DDP_U8 */
    const void *x;          /* (count, h, w, c) */
    int classes;
    const int32_t *label; /* of each sample, 0 to classes - 1; NULL: targets */
    int target_len;
    const float *target; /* (count, target_len); NULL: labels */
    const float *weight; /* of each sample, the factor of its loss, such as 0.1
                            for labels that are guessed; NULL: 1 */
};

/* Fill in the defaults: no samples, DDP_F32. */
#define ddp_arrays_init(a) ddp_arrays_init_sized(a, sizeof(*(a)))
void ddp_arrays_init_sized(struct ddp_arrays *a, size_t size);

/* Errors   DDP_EINVAL: what is missing, or which label is out of range. */
ddp_dataset_t *ddp_dataset_arrays(const struct ddp_arrays *a);

/* After the trainers that use it. */
void ddp_dataset_free(ddp_dataset_t *d);

/* How many samples there are; and classes, 0 if they have targets. */
int64_t ddp_dataset_count(const ddp_dataset_t *d);
int ddp_dataset_classes(const ddp_dataset_t *d);
/* Numbers that a sample has as its target; 0: it has a class.  With classes,
 * as many as these: a sample may have several. */
int ddp_dataset_target_len(const ddp_dataset_t *d);
struct ddp_shape ddp_dataset_shape(const ddp_dataset_t *d);
/* Short side of images before the centre crop, with the default resolved; 0: no
 * images. */
int ddp_dataset_resize(const ddp_dataset_t *d);
const char *ddp_dataset_class_name(const ddp_dataset_t *d, int label);

/* How many samples each class has, into count[ddp_dataset_classes(d)], without
 * reading them.
 * Errors   DDP_EINVAL: the data have no classes, or samples have to be read to
 *          know theirs. */
int ddp_dataset_class_counts(const ddp_dataset_t *d, int64_t *count);

/* Number the classes as name[n] has them, such as those of the training data:
 * by their names, so that a split that lacks some, or has them in another
 * order, is evaluated rightly.  Before the data are used.
 * Errors   DDP_EDATA: a class that is not among them, or twice. */
int ddp_dataset_set_classes(ddp_dataset_t *d, int n, const char *const *name);

/* One line: "ImageNet train, 1281167 images of 1000 classes (folders)". */
const char *ddp_dataset_describe(const ddp_dataset_t *d);

/* The path of a sample until the thread's next call, or NULL. */
const char *ddp_dataset_path(const ddp_dataset_t *d, int64_t index);

/* Decode sample index as training would with this key; x holds the source's
 * shape, U8 for images.  For checks and tests. */
int ddp_dataset_get(ddp_dataset_t *d, int64_t index, uint64_t key, void *x,
                    int32_t *label);

/* Bad samples met so far: how many, and the first ones by path and reason. */
enum { DDP_BAD_SAMPLES = 1000 }; /* so many of them */
struct ddp_bad_sample {
    const char *path, *why; /* owned by the data set */
};
int64_t ddp_dataset_bad_count(const ddp_dataset_t *d);
/* How many reads of files failed by a fault of the storage (EIO, ESTALE, ...)
 * and were tried again, for up to 7 s each; after that the run ends with
 * DDP_EIO. */
int64_t ddp_dataset_retries(const ddp_dataset_t *d);
/* How many of the samples max_bad tolerates: see struct ddp_image_options. */
int64_t ddp_dataset_bad_limit(const ddp_dataset_t *d, double max_bad);
int ddp_dataset_bad(const ddp_dataset_t *d, int64_t i,
                    struct ddp_bad_sample *bad);

/* Initialise the first layer, a convolution, so that its outputs on samples of
 * d are uncorrelated and of variance 1: its kernels are the eigenvectors of the
 * second moments of all patches of its size of so many samples, with their
 * augmentation, the largest first, by the root of eigenvalue + eps.  Outputs
 * come in pairs of opposite signs, for an activation to follow; there may be
 * two for each value of a patch.  The same data give the same bits.  Source:
 * Jordan 2024, arXiv:2404.00498; eps there: 5e-4.
 * Errors   DDP_ESHAPE: the first layer with weights is no convolution of the
 *          data's channels, or has too many outputs, or patches of more than
 *          1024 values; DDP_EDATA: no sample can be read.
 */
int ddp_chain_whiten(ddp_chain_t *c, ddp_dataset_t *d, int64_t samples,
                     double eps);

/* ---- training ----------------------------------------------------------- */

/* What training makes small: the mean over samples of this. */
enum ddp_loss_kind {
    DDP_LOGIT_CROSS_ENTROPY, /* torch.nn.CrossEntropyLoss.  The target is a
                                class; or target_len values, the sample's share
                                of each class (soft targets) */
    DDP_MSE,                 /* mean over a sample's values of (x - target)^2 */
    DDP_CUSTOM_LOSS,         /* what a ddp_loss_f of the program computes */
    DDP_BINARY_CROSS_ENTROPY, /* torch.nn.BCEWithLogitsLoss: each class for
                                 itself, so that a sample may have several;
                                 mean over classes.  Targets as above */
    DDP_FOCAL, /* torchvision.ops.sigmoid_focal_loss: the same, where classes
                  that are nearly right count less; mean over classes */
};

/* The loss of n samples of len values: returns the sum over samples of
 * weight[i] times the loss, and writes its gradient to dx unless NULL.
 * target is int32_t[n] or float[n][target_len], of classes that are mixed
 * float[n][classes]. */
typedef double (*ddp_loss_f)(const float *x, const void *target,
                             const float *weight, int n, int len, float *dx,
                             void *arg);

/* Rules by which gradients change weights. */
enum ddp_optimizer_kind {
    DDP_SGD,           /* w -= lr g */
    DDP_MOMENTUM,      /* PyTorch: v = m v + g; w -= lr v */
    DDP_MOMENTUM_FLUX, /* Flux: v = m v + lr g; w -= v */
    DDP_NESTEROV,      /* PyTorch's */
    DDP_ADAM,          /* PyTorch's, as are the next two */
    DDP_ADAMW,         /* Adam, with decay apart from the gradient */
    DDP_RMSPROP,       /* g by the root of its mean square */
    DDP_AMSGRAD,       /* Adam that divides by the largest mean square so far */
    DDP_NADAM,         /* PyTorch's, with its momentum_decay of 0.004 */
    DDP_RADAM,         /* PyTorch's */
    DDP_ADABELIEF,     /* timm's, without rectification */
    DDP_LION,          /* its paper's */
    DDP_ADAGRAD,       /* PyTorch's */
    DDP_ADADELTA,      /* PyTorch's; beta2 is its rho */
    DDP_LAMB, /* timm's: Adam, its step as long as the norm of the whole
                 parameter says, where that decays */
    DDP_LARS, /* timm's: momentum, the same, with a trust_coeff of 0.001 */
    DDP_RMSPROP_TF, /* timm's RMSpropTF: the mean square begins at 1, eps is
                       added below the root, momentum is that of Flux */
    DDP_NADAMW,     /* timm's NAdamW: AdamW, one step of its momentum ahead */
    DDP_ADAMP,      /* timm's AdamP: AdamW, without the part of the step that
                       makes weights longer where gradients never do */
    DDP_CUSTOM_OPTIMIZER = 1000 /* the function in `update` */
};

/* The most states that an optimizer of the program has. */
enum { DDP_UPDATE_STATES = 3 };

/* An update of one parameter, whole: of a weight, a bias or the like, not of
 * running statistics. */
struct ddp_update {
    const struct ddp_optimizer *optimizer; /* with lr and momentum as the
                                              schedule has them now */
    float lr;                              /* that of the parameter's group */
    float weight_decay; /* likewise; 0: the parameter does not decay */
    int64_t updates;    /* made of the weights, this one included */
    size_t len;         /* elements of g, w and each state */
    const float *g;     /* the mean gradient, clipped, without decay */
    float *w;           /* the parameter */
    float *state[DDP_UPDATE_STATES]; /* as many as the optimizer has, in the
                                        order that checkpoints keep them; 0 at
                                        first */
};

/* Change u->w and u->state.  Called on a worker's thread, for several
 * parameters at once; what it does must follow from u alone, for all ranks and
 * runs that resume call it. */
typedef void (*ddp_update_f)(const struct ddp_update *u, void *arg);

/* An optimizer; made by ddp_adam() and its kin, then changed. */
struct ddp_optimizer {
    enum ddp_optimizer_kind kind; /* its rule */
    float lr;           /* the learning rate, times that of the schedule */
    float momentum;     /* of momentum, Nesterov and, if not 0, RMSProp */
    float beta1, beta2; /* of Adam and its kin; beta2 also of RMSProp's and
                           AdaDelta's square means */
    float eps;          /* added to what Adam and its kin divide by */
    float weight_decay; /* decoupled in AdamW, NAdamW, AdaBelief and Lion */
    bool decay_all;     /* norms and biases too */
    float clip_norm;    /* scale gradients to this global norm; 0: no */
    float clip_value;   /* then limit each value of a gradient to -clip_value ..
                           clip_value, before decay is added; 0: no */
    float clip_unit;    /* before that, limit the norm of the gradient of each
                           output, a row of a weight or a whole vector, to this
                           share of the norm of its weights: adaptive clipping
                           (AGC), of all but the last layer; 0: no */
    int lookahead;      /* after so many updates, again and again, weights go
                           half the way back to where they then were: Lookahead;
                           0: no */
    ddp_update_f update; /* DDP_CUSTOM_OPTIMIZER */
    void *update_arg;    /* of update; not owned */
    int update_states;   /* vectors that it keeps for each parameter, 0 to
                            DDP_UPDATE_STATES */
};

/* Fields of struct ddp_optimizer that not all kinds use. */
enum ddp_optimizer_use {
    DDP_USES_MOMENTUM = 1,
    DDP_USES_BETA1 = 2,
    DDP_USES_BETA2 = 4,
    DDP_USES_EPS = 8,
};

/* A kind of optimizer. */
struct ddp_optimizer_info {
    const char *name; /* "adamw" */
    unsigned uses;    /* enum ddp_optimizer_use; other bits may be set */
    double lr;        /* a usual learning rate for a batch of 256 */
    struct ddp_optimizer defaults; /* PyTorch's, and lr */
};

/* What a kind of optimizer is; NULL: there is no such kind.  Kinds are numbered
 * from 0, but for the custom one. */
const struct ddp_optimizer_info *
ddp_optimizer_info(enum ddp_optimizer_kind kind);

/* An optimizer with the defaults of its kind, which the caller may change;
 * those of other kinds are ddp_optimizer_info(kind)->defaults. */
struct ddp_optimizer ddp_sgd(float lr);
struct ddp_optimizer ddp_momentum(float lr, float momentum);
struct ddp_optimizer ddp_nesterov(float lr, float momentum);
struct ddp_optimizer ddp_adam(float lr);
struct ddp_optimizer ddp_adamw(float lr, float weight_decay);
struct ddp_optimizer ddp_rmsprop(float lr);

/* How the learning rate changes in the course of a run. */
enum ddp_schedule_kind {
    DDP_CONSTANT,  /* it does not */
    DDP_STEPPED,   /* times gamma every `every` epochs */
    DDP_COSINE,    /* to final_factor at the end */
    DDP_LINEAR,    /* to final_factor at the end */
    DDP_ONE_CYCLE, /* PyTorch's OneCycleLR: half a wave up over warmup, then
                      half a wave down; momentum the other way */
    DDP_CUSTOM_SCHEDULE, /* as a function of the program says */
    DDP_MULTISTEP,       /* times gamma at each of milestones */
    DDP_EXPONENTIAL,     /* times gamma in the course of every epoch */
    DDP_POLYNOMIAL, /* to final_factor at the end, as the power of what is left
                       of the run */
    DDP_RESTARTS,   /* cosine to final_factor every `every` epochs, again and
                       again: SGDR */
    DDP_PLATEAU,    /* times gamma when evaluations no longer improve, as
                       PyTorch's ReduceLROnPlateau */
};
enum { DDP_MILESTONES = 16 };

/* The factor of the learning rate at each step. */
struct ddp_schedule {
    enum ddp_schedule_kind kind; /* after the warm-up */
    double warmup; /* epochs of linear rise from warmup_factor; one-cycle: of
                      the first half, which is not linear */
    double warmup_factor; /* of the learning rate, at the first step */
    double every, gamma;  /* epochs, factor: of DDP_STEPPED, and kinds that
name them */
    double final_factor;  /* of cosine, linear, one-cycle,
polynomial, restarts; plateau: the least factor */
    double max_momentum, base_momentum; /* of one-cycle, at the lowest and the
        highest rate: momentum, or beta1 of Adam; both 0: the optimizer's */
    /* DDP_CUSTOM_SCHEDULE: the factor of lr at this time. */
    double (*fn)(int64_t step, double epoch, double epochs, void *arg);
    void *arg;
    double milestones[DDP_MILESTONES]; /* rising epochs, ended by 0 */
    double power;                      /* of DDP_POLYNOMIAL */
    double stretch;     /* DDP_RESTARTS: what a cycle is longer than the one
                           before it */
    int patience;       /* DDP_PLATEAU: evaluations in a row without an
                           improvement that are tolerated; and */
    int cooldown;       /* those after a reduction that do not count */
    double threshold;   /* an improvement is more than this share of the best;
                           of the measure by which ddp_trainer_best() goes */
    bool warmup_steady; /* the warm-up keeps warmup_factor */
    bool warmup_prefix; /* stepped, multistep, exponential, restarts: epochs
                           count from the end of the warm-up */
    bool warmup_inside; /* cosine, linear, polynomial: they span the whole run,
                           of which the warm-up hides the beginning */
    /* Noise, as timm has it: in each epoch from noise_from on, before noise_to,
     * the factor is multiplied by 1 + x, where x is drawn from a normal
     * distribution until it is between -noise_limit and noise_limit.  With
     * equal epochs, as by default, there is none; nor in a custom
     * schedule. */
    double noise_from, noise_to;
    double noise_limit, noise_deviation; /* default 0.67 and 1 */
    uint64_t noise_seed;
};

/* Fill in the defaults of a kind for a run of so many epochs: no warm-up, and
 * if there is one from 0.01; one-cycle 0.3 of the run from 0.04, and down to
 * 4e-6, with momentum from 0.95 to 0.85 and back; others to 0; stepped times
 * 0.1 every 30 epochs; multistep the same at 1/3 and 2/3 of the run;
 * exponential times 0.1 every 30 epochs; polynomial of power 1; restarts every
 * 10 epochs; plateau times 0.1 after more than 10 evaluations, threshold 1e-4.
 * ddp_train_config_resolve() has the epochs of a run by steps. */
void ddp_schedule_init(struct ddp_schedule *s, enum ddp_schedule_kind kind,
                       double epochs);

/* The factor of the learning rate at `epoch` (fractional) of `epochs`.  Of
 * DDP_PLATEAU this is the warm-up: a trainer multiplies it by what evaluations
 * have come to. */
double ddp_schedule_factor(const struct ddp_schedule *s, int64_t step,
                           double epoch, double epochs);

/* Momentum, or beta1 of Adam, at that time; 0: the schedule leaves it to the
 * optimizer.  One without momentum has none to change. */
double ddp_schedule_momentum(const struct ddp_schedule *s, int64_t step,
                             double epoch, double epochs);

/* Means over the samples of a step, an epoch or an evaluation. */
struct ddp_metrics {
    int64_t samples;          /* that were counted */
    double loss;              /* mean over the divisor */
    double top1, top5, top10; /* shares in 0..1; 0 without classes */
    bool skipped; /* a step that was not applied: see ddp_trainer_skips() */
};

/* Parts of a step that tasks belong to: merges add up the gradients of lanes,
 * and sums of their squares; updates change the weights. */
enum ddp_step_part {
    DDP_PART_INPUT,
    DDP_PART_FORWARD,
    DDP_PART_BACKWARD,
    DDP_PART_MERGE,
    DDP_PART_UPDATE,
    DDP_STEP_PARTS
};

/* State of a run, given to the callback after every step. */
struct ddp_progress {
    int64_t step, steps;   /* done, of the whole run; 0: not known yet */
    int64_t epoch, epochs; /* the one that the step is in, from 0; of the run */
    double epoch_share;    /* of that epoch, after the step, up to 1; 0 as
                              long as a stream does not end */
    struct ddp_metrics now;        /* of this step */
    struct ddp_metrics epoch_mean; /* of the steps that were applied */
    int64_t skipped;               /* steps of the run that were not */
    const char *why;               /* this one was not; NULL: it was */
    double lr;                     /* the learning rate of this step */
    double seconds;                /* since the start of training */
    double step_seconds;           /* since the end of the step before */
    double samples_per_s;          /* smoothed, start-up left out */
    double data_share;    /* of the workers' time that input took, 0..1 */
    double eta_s;         /* seconds to the end of the run, at that speed; 0:
                             not known yet */
    double gradient_norm; /* of all gradients of this step, before clipping */
    double loss_scale;    /* for the next step: see struct ddp_skips */
    size_t memory_peak;   /* most main memory that the process has used */
    const double *busy;   /* by worker: the share of the step's time that its
                             tasks took, which count where they end; until the
                             call returns */
    int workers;          /* see ddp_worker_name() */
    /* Seconds of all workers together in tasks of each part. */
    double part_seconds[DDP_STEP_PARTS];
};

/* Of an epoch's samples: shuffled by the seed, or as the data have them. */
enum ddp_order { DDP_SHUFFLE, DDP_IN_ORDER };

/* When ddp_trainer_train() writes checkpoints, and which of them it keeps.  In
 * addition, it writes one at the end of the run and one after every evaluation
 * that improves on the best so far, which it keeps until a better one. */
struct ddp_checkpoint_config {
    const char *dir;     /* made when missing; NULL: no checkpoints */
    int64_t steps;       /* one after every so many steps; 0: none */
    int64_t epochs;      /* ... epochs */
    double seconds;      /* ... and whenever so much time has gone by */
    int keep;            /* how many of the newest are kept; default 3 */
    int64_t keep_epochs; /* those after every so many epochs are never
                            deleted */
};

/* What an evaluation does for more accuracy, at twice the work: outputs are
 * the mean over each sample and its mirror image, left and right swapped. */
enum ddp_tta { DDP_TTA_NONE, DDP_TTA_FLIP };

/* Trains a chain on data: the state of a run. */
typedef struct ddp_trainer ddp_trainer_t;

/* An evaluation by a trainer, for those who record it. */
struct ddp_evaluation {
    int64_t step;  /* steps of the run that were done */
    bool averages; /* of the averages of the weights, not of the weights */
    struct ddp_metrics result; /* over all samples that could be read */
    double seconds;            /* it took */
};

/* Who records runs: a file, a plot, a terminal.  Each function is called on the
 * thread that called the trainer, and may be NULL; it cannot stop the run. With
 * several ranks, each calls the sinks that it has. */
struct ddp_sink {
    /* ddp_trainer_train() begins, after ddp_trainer_steps() steps. */
    void (*on_run)(const ddp_trainer_t *t, void *arg);
    /* After every step, before the configuration's on_step. */
    void (*on_step)(const struct ddp_progress *p, void *arg);
    /* ddp_trainer_evaluate() or ddp_trainer_evaluate_ema() has succeeded. */
    void (*on_eval)(const struct ddp_evaluation *e, void *arg);
    /* The checkpoint of that step is on the disk. */
    void (*on_checkpoint)(int64_t step, void *arg);
    /* ddp_trainer_train() returns rc; ddp_errmsg() says why if it failed. */
    void (*on_end)(int rc, void *arg);
    void *arg;
};

/* Programs that can read what a log writes. */
enum ddp_log_kind {
    DDP_LOG_TENSORBOARD,
    DDP_LOG_WANDB,
    DDP_LOG_MLFLOW,
    DDP_LOG_KINDS
};

/* "tensorboard", ...; NULL after the last. */
const char *ddp_log_name(enum ddp_log_kind kind);

/* A sink that writes files for such a program: epoch, loss/train,
 * acc/top1_train, lr, gradient_norm, ... of every step; loss/val, acc/top1_val,
 * acc/top5_val of evaluations, and loss/ema, ... of those of averages.
 * Accuracies are shares in 0..1. */
typedef struct ddp_log ddp_log_t;

/* Of a run whose files are in the folder dir, which the first event makes if it
 * is missing.  If the run was resumed, the files that are there go on, without
 * steps that are made again:
 *   DDP_LOG_TENSORBOARD   in a new file, which says from which step on earlier
 *                         values no longer hold
 *   DDP_LOG_WANDB         in the newest offline run of Weights & Biases there,
 *                         which "wandb sync" uploads
 *   DDP_LOG_MLFLOW        in the newest run of a file store of MLflow, whose
 *                         names have letters, digits and "_-. :/" alone */
ddp_log_t *ddp_log_new(enum ddp_log_kind kind, const char *dir);
/* Flushes and closes the files.  The trainer must have been freed. */
void ddp_log_free(ddp_log_t *l);

/* The sink, not owned; all zeros, after a message, if l is NULL. */
struct ddp_sink ddp_log_sink(ddp_log_t *l);

/* Before the first event: a setting of the run for the page of hyperparameters,
 * as a number if all of value is one, else as text, in which bytes that are not
 * UTF-8 become question marks.
 * Errors   DDP_EINVAL: the name is not UTF-8. */
int ddp_log_set(ddp_log_t *l, const char *name, const char *value);

/* What else programs can show about a run. */
enum ddp_log_fact {
    DDP_LOG_NAME,     /* of the run */
    DDP_LOG_COMMAND,  /* that began it */
    DDP_LOG_REVISION, /* of its source: git's name of a commit */
    DDP_LOG_FACTS
};

/* Before the first event: such a fact, for the programs that show it, as text
 * of a setting. */
int ddp_log_describe(ddp_log_t *l, enum ddp_log_fact fact, const char *text);

/* A value of the program's own, such as "weight_norm".
 * Errors   DDP_EINVAL: the tag is not UTF-8; DDP_EIO as below. */
int ddp_log_scalar(ddp_log_t *l, const char *tag, int64_t step, double value);

/* How values are distributed that the program has, such as the weights of
 * ddp_chain_get() or the gradients of ddp_trainer_get_gradient(): 64 bins from
 * the least to the largest, for TensorBoard and Weights & Biases.  Values that
 * are not finite are left out.  Errors as ddp_log_scalar(). */
int ddp_log_histogram(ddp_log_t *l, const char *tag, int64_t step,
                      const float *values, size_t len);

/* A picture, (h, w, c) with c 1, gray, or 3, such as those of
 * ddp_trainer_batch(), for TensorBoard, as a JPEG file of quality 95; other
 * programs have none.
 * Errors   DDP_EINVAL: another c, a side of more than 65500 pixels; as
 *          ddp_log_scalar(). */
int ddp_log_image(ddp_log_t *l, const char *tag, int64_t step,
                  struct ddp_shape s, const uint8_t *pixels);

/* The operations of a chain for input of this shape, with their layers, for
 * TensorBoard's page of graphs; other programs have none.
 * Errors   DDP_ESHAPE: in does not fit the chain; as ddp_log_scalar(). */
int ddp_log_graph(ddp_log_t *l, int64_t step, ddp_chain_t *c,
                  struct ddp_shape in);

/* 0, or why nothing is written any more: the run continues without it.
 * Errors   DDP_EIO: the folder or a file cannot be written. */
int ddp_log_status(const ddp_log_t *l);

/* Parameters that a trainer treats in a way of their own; see `groups`. */
struct ddp_param_group {
    const char *match;  /* a shell pattern of names, such as "*.bias"; one of
                           layers, "layer1" or "features.[0-3]", stands for all
                           parameters in them */
    float lr;           /* times the learning rate; 0: frozen, see below;
                           negative: as the groups before say, else 1 */
    float weight_decay; /* of all of them, norms and biases too; negative: as
                           the groups before say, else the optimizer's */
};

/* How a trainer trains. */
struct ddp_train_config {
    size_t struct_size;
    enum ddp_loss_kind loss; /* default: cross entropy */
    float label_smoothing;   /* the share that all classes get together */
    ddp_loss_f loss_fn;      /* DDP_CUSTOM_LOSS */
    void *loss_arg;          /* of loss_fn; not owned */
    struct ddp_optimizer optimizer; /* default: none */
    struct ddp_schedule schedule;   /* default: DDP_CONSTANT */
    int sub_batch;  /* samples that go through the chain together;
                       default 32 */
    int batch;      /* samples of a step, of all devices; 0: lanes * sub_batch,
                       with 8 lanes */
    int lanes;      /* 0: 8, or the sub-batches of a step if fewer */
    int64_t epochs; /* default 1 */
    int64_t steps;  /* stop after so many; 0: by epochs */
    enum ddp_dtype dtype; /* of activations: DDP_F32, DDP_BF16, DDP_F16 */
    uint64_t seed;        /* of weights, order, augmentation and dropout */
    enum ddp_order order; /* of samples; default: shuffled */
    bool keep_weights;    /* initialise nothing: weights go on from an earlier
                             trainer or ddp_chain_init().  What ddp_chain_set()
                             or ddp_chain_load() set since then is always kept,
                             and only the rest initialised */
    int run_ahead; /* steps submitted before the first is done; default 2 */
    struct ddp_checkpoint_config checkpoint; /* default: none */
    int max_nan_steps; /* steps in a row that may be skipped; default 10; see
                          ddp_trainer_skips() */
    enum ddp_tta tta;  /* of evaluations */
    double ema_decay;  /* keep averages of the weights, see below; 0: no */
    /* Called on the caller's thread; not 0 stops with DDP_ESTOPPED. */
    int (*on_step)(const struct ddp_progress *p, void *arg);
    int (*on_epoch)(const struct ddp_progress *p, void *arg);
    /* Asked now and then during ddp_trainer_evaluate(), in the same way. */
    int (*stop)(void *arg);
    void *arg;
    int checkpoint_failures; /* checkpoints in a row that cannot be written end
                                the run with DDP_EIO if they are so many; 0
                                (default): only that at its end does */
    bool drop_last; /* leave out the last step of an epoch if it has fewer
                       samples than batch; shuffled, each epoch leaves out
                       others */
    const ddp_dataset_t *eval_data; /* what the program evaluates on, for
                                       checkpoints to recognise; not owned, and
                                       must outlive the trainer.  NULL: none */
    const struct ddp_sink *sinks;   /* who records the runs; the trainer copies
                                       the list */
    int sink_count;
    /* Files, or NULL, not copied: what the tasks of trace_steps steps (0: 1)
     * did, when and where, as Chrome's trace events, which Perfetto reads; and
     * the tasks of the first of these steps as a graph for Graphviz.  They are
     * written once, when the steps are done, which waits for those under way; a
     * failure ends training with DDP_EIO. */
    const char *trace, *graph;
    int64_t trace_first; /* steps of this process before them */
    int64_t trace_steps;
    ddp_count_f on_eval_count; /* of ddp_trainer_evaluate(), with arg */
    bool shard_optimizer;      /* of each part of the weights one rank keeps the
                                  optimizer's state and makes the update (ZeRO-1):
                                  less memory, the same weights and checkpoints. An
                                  error that ends a run writes no checkpoint first */
    float target_threshold; /* DDP_BINARY_CROSS_ENTROPY: shares above it, after
                               smoothing, count as 1 and others as 0; 0
                               (default): shares count as they are */
    float focal_gamma, focal_alpha; /* DDP_FOCAL; default 2 and 0.25; alpha < 0:
                                       no weights */
    /* Sub-batches whose samples are mixed in pairs, with the targets: classes
     * become shares, and the largest is the right answer.  Drawn by seed, epoch
     * and number of the sub-batch.  The last of an odd number remains. */
    double mixup, cutmix;   /* alphas of the Beta distribution that shares are
                               drawn from, or areas; 0 (default): none */
    double mix_prob;        /* of a sub-batch to be mixed; default 1 */
    double mix_switch_prob; /* with both, of cutmix; default 0.5 */
    int64_t mix_off_epoch;  /* from this epoch on none are mixed; 0 (default):
                               never */
    /* Of several groups that match a parameter the last one holds, for a rate
     * and a decay each.  Frozen parameters keep their values: their gradients
     * are not computed where a whole layer is frozen, nor those of what only
     * frozen layers need.  Batch norm all of whose parameters are frozen uses
     * its running statistics, as in evaluation, and these stay.
     * Not copied: both must outlive the trainer. */
    const struct ddp_param_group *groups;
    int group_count;
    float layer_decay; /* the rate of each layer is so many times that of the
                          layer after it, the last one's being lr; a layer is a
                          child of the chain, or of a numbered list in it, with
                          the norms that follow; 0 (default): 1 */
    bool ema_warmup;   /* averages begin faster: after n steps decay is at most
                          1 - (1 + n)^(-2/3), as in timm's ModelEmaV3 */
    int64_t patience;  /* the run ends, as if it were over, after so many
                          evaluations in a row that are not the best so far; 0
                          (default): it does not */
    /* Called after every every_steps steps, as on_epoch, and before it if both
     * are due: no other step is under way. */
    int (*on_steps)(const struct ddp_progress *p, void *arg);
    int64_t every_steps;
    /* With several ranks each has data of its own, of any length, and takes its
     * own batches of them, so a step is of as many batches as there are ranks.
     * An epoch lasts until all ranks have seen theirs; one that has no more
     * takes part without samples.  Gradients are summed over the samples of all
     * ranks and divided by their number.  With the same data on as many ranks,
     * the weights are the same to the last bit; with another number of ranks
     * they are not, and a checkpoint is one of as many ranks.  Evaluations are
     * of data that all ranks have. */
    bool own_data;
    enum ddp_dtype wire; /* of gradients between ranks: DDP_F32, or DDP_BF16 for
                            half the bytes.  Then each sum of the tree over
                            lanes is rounded to it, with one rank, too: weights
                            are others than with DDP_F32, and again the same for
                            any number of ranks */
    bool keep_gradients; /* ddp_trainer_get_gradient() also has those of the
                            last step that was made as a whole, while no other
                            step is under way: in on_epoch and on_steps, and
                            after ddp_trainer_step() with m.  Their memory is
                            not used for anything else then */
    /* DDP_LOGIT_CROSS_ENTROPY: the weight of each class, one for each output;
     * the loss of a step is the weighted mean.  As in PyTorch, samples whose
     * classes are mixed into shares count equally in that mean, and smoothed
     * targets have the weights of all classes.  Evaluations have none.  Not
     * copied: it must outlive the trainer. */
    const float *class_weights;
    int class_weight_count; /* 0 (default): all are 1 */
    int repeats; /* an epoch shows the first 1/repeats of its order, each sample
                    so many times in a row, augmented in other ways: repeated
                    augmentation.  It has as many samples as without.  Sample,
                    epoch, seed and number of the repetition decide it; 0
                    (default): 1 */
    bool sync_bn; /* batch norm has the statistics of all samples of a step,
                     those of other ranks too, as if the step were one
                     sub-batch (PyTorch's SyncBatchNorm); default: those of a
                     sub-batch.  Each sub-batch of a step is a lane then, and
                     the activations of all of them are in memory */
    /* DDP_BINARY_CROSS_ENTROPY: what the positive part of each class counts,
     * one for each output, as PyTorch's pos_weight.  Evaluations have none. Not
     * copied: it must outlive the trainer. */
    const float *pos_weight;
    int pos_weight_count; /* 0 (default): all are 1 */
    /* Distillation: a step also runs the teacher on its samples, as evaluation
     * does, and a sample's loss is (1 - w) times the one above, plus
     * w T^2 KL(softmax(teacher / T) || softmax(chain / T)), where w is
     * distill_weight and T distill_temperature (Hinton et al., 2015).  Both
     * give as many outputs, and data have classes.  The teacher's weights stay
     * as they are; it must outlive the trainer.  NULL (default): none */
    ddp_chain_t *teacher;
    double distill_weight;      /* default 0.5 */
    double distill_temperature; /* default 1 */
};

/* Fill in the defaults.  Of the optimizer there is none (its lr is -1): a
 * trainer without one computes gradients, but makes no steps. */
#define ddp_train_config_init(c) ddp_train_config_init_sized(c, sizeof(*(c)))
void ddp_train_config_init_sized(struct ddp_train_config *c, size_t size);

/* A trainer of chain on data.  Not owned: all three must outlive it. */
ddp_trainer_t *ddp_trainer_new(ddp_t *ddp, ddp_chain_t *chain,
                               ddp_dataset_t *data,
                               const struct ddp_train_config *cfg);
void ddp_trainer_free(ddp_trainer_t *t);

/* The configuration that the trainer uses: the given one, with what was left to
 * the library (batch, lanes, epochs of a run by steps, ...) resolved. */
const struct ddp_train_config *ddp_trainer_config(const ddp_trainer_t *t);

/* The same before there is a trainer, for what depends on it, such as a
 * learning rate scaled by the batch. */
int ddp_train_config_resolve(struct ddp_train_config *c, const ddp_t *ddp,
                             const ddp_dataset_t *data);

/* Steps of an epoch: every sample once, the last step may have fewer (see
 * drop_last).  Of a stream 0: unknown. */
int64_t ddp_trainer_epoch_steps(const ddp_trainer_t *t);

/* The first sub-batch of a step as the network gets it: read again, augmented
 * and mixed.  x has room for sub_batch samples of the data's shape and type,
 * label for as many classes: of mixed samples the one with the largest share,
 * -1 of one that could not be read or has targets.  Returns how many samples
 * there are; 0: this rank has none in that step. */
int ddp_trainer_batch(ddp_trainer_t *t, int64_t step, void *x, int32_t *label);

/* Train to the end of the run.  DDP_EDIVERGED also if more than max_nan_steps,
 * or all steps, were skipped at its end. */
int ddp_trainer_train(ddp_trainer_t *t);

/* One step.  With m, wait for it and fill m; without, return once it is
 * submitted: its error then comes from a later call.  A step that fails changes
 * no weight and is not counted, nor are those after it: the next call computes
 * it again.  Where that is not so, every later call returns DDP_ETORN, or the
 * error again. */
int ddp_trainer_step(ddp_trainer_t *t, struct ddp_metrics *m);

/* A step in two halves, for what a program does in between: an all-reduce of
 * its own, noise, clipping.  Both together do what ddp_trainer_step() does, to
 * the same bits.
 *
 * ddp_trainer_gradients() computes the gradients of the next step: merged,
 * divided, and by parameter in the order of elements of ddp_chain_get().  They
 * can be read and replaced until ddp_trainer_update() or the next step.  To set
 * what was read changes no bit.
 *
 * ddp_trainer_update() applies them with the run's optimizer, clip_norm and
 * learning rate.  A step that is not finite is skipped: see
 * ddp_trainer_skips().  A program with a custom optimizer calls ddp_chain_set()
 * instead; running statistics then remain as they are, unless the update is
 * made with gradients of 0.
 *
 * Errors   DDP_EINVAL: no ddp_trainer_gradients() since the last update or
 *          step; a name that has no gradient; DDP_ESHAPE: another length;
 *          DDP_EDIVERGED: the loss is not finite, or too many steps in a row
 *          were skipped. */
int ddp_trainer_gradients(ddp_trainer_t *t, struct ddp_metrics *m);
int ddp_trainer_get_gradient(ddp_trainer_t *t, const char *name, float *out,
                             size_t len);
int ddp_trainer_set_gradient(ddp_trainer_t *t, const char *name,
                             const float *in, size_t len);
int ddp_trainer_update(ddp_trainer_t *t);

/* A step with gradients that the program computes, for example with pullbacks:
 * summed over ranks, divided by the sum of their divisors, and applied as by
 * ddp_trainer_update().  Every rank calls it.  fill is called for each
 * parameter that has a gradient, which is 0 before and in the order of elements
 * of ddp_chain_get(); not 0 fails the call on all ranks.  With divisor 0 a rank
 * takes no part, and fill may be NULL.  Running statistics remain as they are.
 *
 * So gradients summed over n samples of a rank, with divisor n, give the mean
 * over all ranks' samples; and means of equal numbers with divisor 1 as well.
 *
 * Returns 1, or 0 when no rank takes part: then there is no step.
 * Errors   DDP_EINVAL, DDP_EPEER, DDP_EDIVERGED as ddp_trainer_update(), what
 *          fill returned (> 0: DDP_ESTOPPED). */
typedef int (*ddp_gradient_f)(const char *name, float *gradient, size_t len,
                              void *arg);
int ddp_trainer_apply(ddp_trainer_t *t, ddp_gradient_f fill, void *arg,
                      double divisor);

/* Have all ranks continue as the root would: its weights, optimizer state,
 * averages, and place in the run.  Every rank calls it, between steps. Trainers
 * do so by themselves, and need this only if a program has changed the weights
 * of one, or has not made the same steps on all.
 * Errors   DDP_EPEER; DDP_EINVAL: there is no such rank. */
int ddp_trainer_sync(ddp_trainer_t *t, int root);

/* Wait for all submitted steps. */
int ddp_trainer_wait(ddp_trainer_t *t);

/* A step whose loss, gradients or batch norm statistics are not all finite is
 * not applied: no weight, no statistic, no state of the optimizer changes.
 * More than max_nan_steps in a row end training with DDP_EDIVERGED.
 *
 * With DDP_F16 the gradients are computed times loss_scale, for small ones to
 * be kept.  It starts at 2^16, is halved by every step that is skipped and
 * doubled by 2000 others in a row.  While the loss is finite and the scale
 * above 1, such a step does not count for max_nan_steps.
 */
struct ddp_skips {
    int64_t steps;    /* skipped so far */
    int64_t in_a_row; /* of these, since the last one that was applied */
    int64_t last;     /* the number of the last one, from 0; -1: none */
    char why[256];    /* what was not finite there: the first parameter in the
                         order of computation, and the worker that saw it */
    double loss_scale;
};
int ddp_trainer_skips(const ddp_trainer_t *t, struct ddp_skips *s);

/* Loss and top-k on a data set, every sample once.  Samples that cannot be read
 * are not in the means: ddp_dataset_bad() names them.  Checkpoints remember the
 * last one, and the best: the highest top1, without classes the lowest loss. */
int ddp_trainer_evaluate(ddp_trainer_t *t, ddp_dataset_t *data,
                         struct ddp_metrics *m);

/* The best evaluation of the run, also one before a checkpoint that was loaded;
 * its seconds are 0.  Returns 1, or 0 if there was none. */
int ddp_trainer_best(const ddp_trainer_t *t, struct ddp_evaluation *e);

/* With ema_decay, after every step that is applied each parameter's average e
 * moves towards the weight w: e = decay e + (1 - decay) w, running statistics
 * too.  It begins as w is at the first step, or at the first of these calls.
 * Checkpoints have the averages; which evaluation is the best, those of the
 * weights decide.
 *
 * Evaluate with the averages; copy one out or in, as ddp_chain_get() and _set()
 * do; save all as ddp_chain_save() does. */
int ddp_trainer_evaluate_ema(ddp_trainer_t *t, ddp_dataset_t *data,
                             struct ddp_metrics *m);
int ddp_trainer_ema_get(ddp_trainer_t *t, const char *name, float *out,
                        size_t len);
int ddp_trainer_ema_set(ddp_trainer_t *t, const char *name, const float *in,
                        size_t len);
int ddp_trainer_ema_save(ddp_trainer_t *t, const char *path,
                         const struct ddp_save_options *o);

/* The chain's output for one sample. */
struct ddp_prediction {
    int64_t index;       /* of the sample in the data */
    int32_t label;       /* the data's class of it; -1: none */
    bool bad;            /* it could not be read: output means nothing */
    int len;             /* numbers of output */
    const float *output; /* of the chain; until the callback returns */
};
typedef int (*ddp_prediction_f)(const struct ddp_prediction *p, void *arg);

/* Options of ddp_chain_evaluate(). */
struct ddp_evaluate_config {
    size_t struct_size;
    int sub_batch;        /* default 32 */
    int lanes;            /* 0 (default): 8, or the sub-batches if fewer */
    enum ddp_dtype dtype; /* of activations */
    enum ddp_tta tta;     /* default: none */
    /* Called on the caller's thread, in the order of the data; not 0 stops
     * with DDP_ESTOPPED. */
    ddp_prediction_f on_sample;
    void *arg;
    /* As in struct ddp_train_config. */
    enum ddp_loss_kind loss;
    float label_smoothing;
    ddp_loss_f loss_fn;
    void *loss_arg;
    ddp_count_f on_count; /* with arg */
    float target_threshold, focal_gamma, focal_alpha;
};

/* Fill in the defaults. */
#define ddp_evaluate_config_init(c)                                            \
    ddp_evaluate_config_init_sized(c, sizeof(*(c)))
void ddp_evaluate_config_init_sized(struct ddp_evaluate_config *c, size_t size);

/* The same without a trainer, and the answers one by one.  Data without classes
 * and targets, as those of ddp_dataset_images(), are answered only.  m may be
 * NULL.
 * Errors   DDP_EINVAL: the loss needs values and the data have classes. */
int ddp_chain_evaluate(ddp_t *ddp, ddp_chain_t *chain, ddp_dataset_t *data,
                       const struct ddp_evaluate_config *cfg,
                       struct ddp_metrics *m);

/* Steps done and submitted, those before a checkpoint that was loaded among
 * them. */
int64_t ddp_trainer_steps(const ddp_trainer_t *t);

/* Where the time of the steps so far went. */
struct ddp_stats {
    int64_t steps, tasks;
    double wall_s;     /* from the first submission to the last end */
    double exec_s;     /* in kernels, summed over workers */
    double gpu_s;      /* of that, on GPUs, from end to end of their tasks */
    double data_s;     /* of that, reading and decoding input */
    double sched_s;    /* in the runtime: submission, scheduling, release */
    double submit_s;   /* of that, submission, by the caller's thread */
    size_t peak_bytes; /* of task buffers */
    double flops;      /* of all steps, by the layers' own count */
};
int ddp_trainer_stats(ddp_trainer_t *t, struct ddp_stats *s);

/* What a step needs of the memory of each GPU, or without GPUs of the
 * machine's, as planned when the trainer was made: the most that its parts hold
 * at the same time, on this rank.  If it does not fit, fewer
 * sub-batches are computed at a time; if not even one fits into a GPU,
 * gradients and the optimizer's state go to main memory between their uses.
 * Both take longer, and the weights are the same.  If that does not fit either,
 * there is no trainer (DDP_ENOMEM). */
struct ddp_memory_plan {
    double
        have; /* bytes that there are: of the GPU; of the machine, the control
                 group or STARPU_LIMIT_CPU_MEM, whichever has the least */
    double weights, gradients, state, activations, input, scratch; /* bytes */
    int in_flight;  /* sub-batches that are computed at a time, or with sync_bn
                       are in memory */
    int wanted;     /* and with enough memory */
    double copies;  /* bytes, of weights as kernels read them: in the type of
                       activations, packed, with the factors of batch norms;
                       with those of an evaluation since the first one */
    double evicted; /* bytes of gradients and state that a GPU has no room for:
                       they wait in main memory for the tasks that use them */
};
int ddp_trainer_memory(const ddp_trainer_t *t, struct ddp_memory_plan *p);

/* An operation of a training step. */
struct ddp_operation {
    const char *name;   /* "conv_fwd" */
    const char *type;   /* of what it reads first, if that are activations */
    const char *shapes; /* "56x56x64 56x56x256 by 1x1/1" */
    int samples;        /* that it works on; 1 if on parameters */
    double flops;       /* a multiply-add is 2; 0 for all that has few */
    double bytes;       /* read and written, each operand once */
    double read;        /* of them, those that are read */
};

/* From now on plans take an operation to last so long on a CPU worker, and
 * simulations on any device: as ddp-bench calibrate measured it, for example.
 * The words of `o` are those of DDP_PROFILE; its flops, bytes and read have
 * no effect.  The operation "task", of one sample and with empty words, is what
 * the runtime needs for each task.  For all contexts, from any one thread. */
int ddp_operation_set_time(const struct ddp_operation *o, double seconds);

/* A kernel is taken to last
 *
 *     launch_s + operations / flops + bytes of its buffers / bytes_per_s. */
struct ddp_device_speed {
    double launch_s;    /* before a kernel begins to compute */
    double flops;       /* operations a second of convolutions and dense layers;
                           other kernels are limited by their memory */
    double bytes_per_s; /* of its memory */
};

/* What such a GPU reaches in large products and long copies, with activations
 * of this type, and DDP_TF32.  1: measured ones, known by its name; 0: what is
 * usual of what its properties promise. */
int ddp_gpu_speed(const struct ddp_gpu_info *gpu, enum ddp_dtype type,
                  struct ddp_device_speed *speed);

/* How long a step is expected to take, as this rank would need without the
 * others and without reading images: by the times that are set, on GPUs by
 * their speed. */
struct ddp_time_plan {
    double seconds;          /* of a step */
    int operations, unknown; /* those of a step; of these without a time, for
                                which that of a usual core is taken */
};
int ddp_trainer_time(const ddp_trainer_t *t, struct ddp_time_plan *p);

/* Call fn for each operation that a GPU runs for a sub-batch of `samples`, in
 * order, and then for each of the update.  Neither a GPU nor a context is
 * needed.  Input of at most four channels counts as images, one byte a value.
 * The columns operation, samples, type and shapes of DDP_PROFILE have the same
 * words. */
int ddp_chain_operations(ddp_chain_t *c, struct ddp_shape in,
                         enum ddp_dtype type, int samples,
                         const struct ddp_optimizer *o,
                         int (*fn)(const struct ddp_operation *, void *arg),
                         void *arg);

/* ---- checkpoints -------------------------------------------------------- */
/* A checkpoint is a folder DIR/step-000000001200 with all that a run needs to
 * resume as if it had not stopped, also in the middle of an epoch:
 * model.safetensors (for ddp_chain_load() and PyTorch), the averages as
 * ema.safetensors (also), optim.safetensors, trainer.json, and MANIFEST.json
 * with the sizes and CRCs of the others.  DIR/latest and DIR/best are links to
 * two of them.
 *
 * A separate thread writes it from a copy; the steps wait only for the copy.
 * It appears under its name when all of it is on disk: whenever the process or
 * the machine dies, a checkpoint is complete or does not exist, and those
 * before it are intact.  One run, and one process at a time, writes to DIR.
 *
 * A write that fails is tried again when the next checkpoint is due; existing
 * ones are kept.  ddp_trainer_checkpoint_failures() counts them, and too many
 * in a row, or one at the end of the run, end ddp_trainer_train() with DDP_EIO.
 * When something else ends it with whole weights, such as bad input, a
 * checkpoint of the steps before is written first, and the message says so.
 */

/* Write a checkpoint of all steps submitted so far.  Called from a callback of
 * ddp_trainer_train() it is written after the steps that are under way;
 * otherwise at once, and it is on disk when this returns.
 *
 * Errors   DDP_EINVAL: no checkpoint.dir; DDP_EIO; that of a failed step. */
int ddp_trainer_checkpoint(ddp_trainer_t *t);

/* Checkpoints that could not be written so far: see checkpoint_failures in
 * struct ddp_train_config. */
struct ddp_checkpoint_failures {
    int64_t count;    /* of all */
    int64_t in_a_row; /* of these, since the last one that was written */
    int64_t step;     /* the steps that the last one had */
    char why[1024];   /* what went wrong there */
};
int ddp_trainer_checkpoint_failures(const ddp_trainer_t *t,
                                    struct ddp_checkpoint_failures *f);

/* A checkpoint, and where its run was. */
struct ddp_checkpoint {
    char path[512];                /* its folder */
    int64_t step;                  /* steps done */
    struct ddp_metrics epoch_mean; /* of the steps of its last epoch */
    int64_t evaluated; /* the step of the last evaluation; 0: none */
    struct ddp_metrics evaluation;
    int64_t best;                       /* the step of the best one; 0: none */
    struct ddp_metrics best_evaluation; /* its result */
    int64_t ema_evaluated; /* that of the last one with averages; 0: none */
    struct ddp_metrics ema_evaluation; /* its result */
    int skipped;        /* newer checkpoints that could not be used */
    char why[512];      /* what is wrong with the newest of these */
    char notice[640];   /* other devices, instructions or versions wrote it than
                           those here, so that bits may differ from an
                           uninterrupted run; "": the same */
    char changed[512];  /* the names of the settings that differ, separated by
                           commas: "batch,optimizer.lr"; "" if to allow them
                           would not do.  After DDP_EINVAL too */
    char changes[1024]; /* those that differ and were allowed to, with both
                           values: the bits are those of a new run */
};

/* Resume from the newest checkpoint in dir that is whole, or from the
 * checkpoint dir; NULL: the trainer's checkpoint.dir.  Before the first step.
 * c may be NULL.  Returns 1, or 0 when dir holds none, or
 * Errors   DDP_EINVAL: it is of a run with other settings, which are named;
 *          DDP_EDATA: none of those there is whole; DDP_EIO.  The trainer is
 *          then as it was. */
int ddp_trainer_resume(ddp_trainer_t *t, const char *dir,
                       struct ddp_checkpoint *c);

/* Options of ddp_trainer_resume_with(). */
struct ddp_resume_options {
    size_t struct_size;
    const char *changed; /* settings that may differ from the checkpoint's, by
                            the names in messages, separated by commas:
                            "schedule.steps,optimizer.lr"; a name such as
                            "data" or "optimizer" stands for all that begin
                            with it.  NULL (default): none */
};

/* Fill in the defaults. */
#define ddp_resume_options_init(o)                                             \
    ddp_resume_options_init_sized(o, sizeof(*(o)))
void ddp_resume_options_init_sized(struct ddp_resume_options *o, size_t size);

/* The same for a run that continues with other settings, knowingly: more
 * epochs, another learning rate, ...  The checkpoints that follow list all such
 * changes in trainer.json.  Where an epoch gets another number of steps, the
 * steps done are renumbered, so that the same share of the run is behind it;
 * then checkpoints go to another folder.
 * Errors   DDP_EINVAL also for a name that is no setting, or of one that can
 *          never change (the network, the kind of optimizer, the classes). */
int ddp_trainer_resume_with(ddp_trainer_t *t, const char *dir,
                            const struct ddp_resume_options *o,
                            struct ddp_checkpoint *c);

/* ---- the parts ---------------------------------------------------------- */

/* A chain prepared for forward passes on samples of one shape, to be called
 * often: graph, plans and memory are made once.
 *
 * Mode     evaluation: running statistics, no dropout.  The weights are those
 *          that the chain has when a request is submitted.
 * Requests A request runs on one device, and several run side by side.  Each
 *          has memory for a batch, from the start until ddp_compiled_free().
 *          With a batch of 1, CPU workers that are idle share the work of a
 *          request; its bits do not depend on how many do.
 * Threads  submit, wait and run may be called from several threads at once.
 *          No thread may change the chain's weights (train, set, load) while
 *          another submits.
 * Order    ddp_compiled_free(), then ddp_chain_free() and ddp_finish().
 */
typedef struct ddp_compiled ddp_compiled_t;

/* Options of ddp_compiled_new(). */
struct ddp_compiled_options {
    size_t struct_size;
    enum ddp_dtype type;  /* of the samples: DDP_F32, or DDP_U8 as they are,
                             0..255, in up to 4 channels */
    int requests;         /* that can be in flight; 0 (default): twice the
                             workers */
    enum ddp_dtype dtype; /* of the activations: DDP_F32 (default), DDP_BF16,
                             DDP_F16; the output is F32 */
};

/* Fill in the defaults. */
#define ddp_compiled_options_init(o)                                           \
    ddp_compiled_options_init_sized(o, sizeof(*(o)))
void ddp_compiled_options_init_sized(struct ddp_compiled_options *o,
                                     size_t size);

/* A request has 1 to batch samples of shape.  Not owned: ddp and chain. */
ddp_compiled_t *ddp_compiled_new(ddp_t *ddp, ddp_chain_t *chain,
                                 struct ddp_shape shape, int batch,
                                 const struct ddp_compiled_options *o);
/* Waits for the requests in flight. */
void ddp_compiled_free(ddp_compiled_t *c);

/* Of one sample's output. */
struct ddp_shape ddp_compiled_shape(const ddp_compiled_t *c);

/* Submit a request of n samples and return; y gets n outputs, F32.  x and y are
 * the library's until ddp_compiled_wait() returns, to be called once for each
 * request, by any thread.
 * Errors   DDP_EBUSY: all requests are in flight; DDP_EINVAL. ddp_compiled_wait
 *          returns that of the request, which leaves others as they are. */
int ddp_compiled_submit(ddp_compiled_t *c, const void *x, int n, float *y,
                        int64_t *request);
int ddp_compiled_wait(ddp_compiled_t *c, int64_t request);

/* Both; where all requests are in flight, wait until one is done. */
int ddp_compiled_run(ddp_compiled_t *c, const void *x, int n, float *y);

/* Run the chain forward on n samples, in requests of sub_batch (0: 32).  What
 * that compiles is cached in the chain, so the next call with the same shape,
 * type and sub_batch is fast.
 *
 * Shapes   x n samples of shape, type F32 (or U8 as it is, 0..255); y n times
 *          the chain's output, F32.
 */
int ddp_chain_forward(ddp_t *ddp, ddp_chain_t *chain, const void *x,
                      enum ddp_dtype type, struct ddp_shape shape, int n,
                      int sub_batch, float *y);

/* A forward pass that remembers what the backward pass needs. */
typedef struct ddp_pullback ddp_pullback_t;

/* Forward in training mode, kept for one or several pulls.  y may be NULL. */
ddp_pullback_t *ddp_pullback_new(ddp_t *ddp, ddp_chain_t *chain, const float *x,
                                 struct ddp_shape shape, int n, int sub_batch,
                                 float *y);

/* The same on other samples, as many and of the same shape, with the weights
 * that the chain has now: prepared once, called often.  Different pullbacks may
 * be used from several threads at once. */
int ddp_pullback_forward(ddp_pullback_t *p, const float *x, float *y);

/* Given dL/dy, compute dL/dx (unless NULL) and the gradients of all
 * parameters, summed over samples, for ddp_pullback_get_gradient(). */
int ddp_pullback_backward(ddp_pullback_t *p, const float *dy, float *dx);

/* The same two passes without waiting: submit one and return.  The arrays are
 * the library's until ddp_pullback_wait() returns, once for each pass.  A
 * pullback has one pass in flight, several pullbacks of a chain have several.
 * Errors   DDP_EBUSY: a pass is in flight already, which every other call but
 *          ddp_pullback_free() returns as well.  ddp_pullback_wait() returns
 *          the error of the pass; DDP_EINVAL: none is in flight. */
int ddp_pullback_submit_forward(ddp_pullback_t *p, const float *x, float *y);
int ddp_pullback_submit_backward(ddp_pullback_t *p, const float *dy, float *dx);
int ddp_pullback_wait(ddp_pullback_t *p);

/* The gradient of a parameter after a backward pass, in the order of elements
 * of ddp_chain_get(). Errors   DDP_EINVAL: there was no such pass, or the name
 * has no gradient; DDP_ESHAPE: another length. */
int ddp_pullback_get_gradient(ddp_pullback_t *p, const char *name, float *out,
                              size_t len);
/* Waits for the pass in flight. */
void ddp_pullback_free(ddp_pullback_t *p);

/* ---- simulation --------------------------------------------------------- */
/* Training on simulated devices.  A build against StarPU's SimGrid flavour,
 * which the program ddp-predict uses, runs the same task graph, scheduler and
 * transfers in simulated time on a machine that StarPU reads from files.
 * Kernels compute nothing there, and take as long as their device's speed says.
 *
 * Errors   DDP_ENODEV: a build that does not simulate. */

/* Set which kind of device trains and the speed of each, before ddp_init(). */
int ddp_simulation_set_speed(enum ddp_device kind,
                             const struct ddp_device_speed *speed);

/* Of GPUs of different speeds: this one, counted from 0, takes so many times as
 * long for each kernel as the speed says.  Before ddp_init(). */
int ddp_simulation_set_slowness(int gpu, double times);

/* Stop a GPU, counted from 0, once: its next task takes so many seconds more,
 * which the scheduler does not know.  Also while tasks run. */
int ddp_simulation_stall(int gpu, double seconds);

/* The network between nodes, as seen from one of them. */
struct ddp_network_speed {
    double bytes_per_s; /* each way, at the same time */
    double latency_s;   /* until the last byte of a message has arrived */
    double message_s; /* what the host takes to send one and receive another */
    /* Of a copy between a GPU and main memory, each way, at the same time. */
    double copy_bytes_per_s, copy_latency_s;
};

/* Train on so many equal nodes, each with the lanes and samples of the
 * configuration.  One of them is simulated.  An exchange of gradients, of which
 * a node sends b bytes in m messages, takes as long as the longer of
 * b / bytes_per_s and m message_s, and two latencies; one follows the other.
 * Gradients of a GPU are copied in parts, the first before the exchange and the
 * last one back after it.  Before ddp_init(). */
int ddp_simulation_set_nodes(int nodes, const struct ddp_network_speed *speed);

/* CPU workers are on so many NUMA nodes, the first of them on the first one and
 * so on, with equal numbers.  It is counted what they read from other nodes; b
 * bytes of it take b / far_bytes_per_s longer than those of the own node, or 0
 * if that is 0.  Nodes: from 1 (nothing is counted) to 32; before ddp_init().
 */
int ddp_simulation_set_numa(int nodes, double far_bytes_per_s);

/* What the simulated machine has done since the process started. */
struct ddp_simulation {
    double now_s;      /* simulated time */
    double busy_s;     /* in kernels, summed over devices that train */
    size_t peak_bytes; /* the most memory that any GPU held at a time */
    int64_t lanes;     /* lanes run, summed over steps */
    int64_t
        split_lanes; /* of these, lanes whose tasks ran on several devices */
    int unknown;     /* different operations without a time, though others were
                        given one */
    /* With NUMA nodes: bytes that CPU workers have read; of these, bytes that a
     * worker of another node wrote last (what none has written is spread over
     * the nodes); of these, bytes that no worker of the node has read since, so
     * that copies on each node would leave only them. */
    double read_bytes, remote_bytes, once_bytes;
};
int ddp_simulation_read(struct ddp_simulation *p);

#ifdef __cplusplus
}
#endif
#endif
