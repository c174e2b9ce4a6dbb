/* ops.h - the calls that a device may run: the border of lib/ and codelets/
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A call is an operation of ops_table.h at one place of a graph, a task one run
 * of it, by a kernel of a backend (ops_backend.h).
 */
#ifndef DDP_OPS_H
#define DDP_OPS_H

#include "ddp_layer.h"
#include "ops_loss.h"
#include "ops_optim.h"
#include "ops_table.h"

/* What ACT_BWD reads: activations whose derivative follows from y get y. */
static inline bool ddp__act_from_y(enum ddp_act a)
{
    return a == DDP_IDENTITY || a == DDP_RELU || a == DDP_RELU6 ||
           a == DDP_SIGMOID || a == DDP_TANH;
}

/* Entries of stats, one f64 vector per lane and step, then their sum. */
enum ddp__stat {
    DDP__STAT_LOSS,    /* sum of weight times loss */
    DDP__STAT_DIVISOR, /* sum of norms: what gradients are divided by */
    DDP__STAT_COUNT,   /* samples */
    DDP__STAT_TOP1,    /* samples whose label is among the k best; of equal */
    DDP__STAT_TOP5,    /* logits the lower class wins */
    DDP__STAT_TOP10,
    DDP__STAT_UPDATES, /* OPTIM only: updates made, this one included */
    DDP__STATS
};

/* Entries of norm, a f64 vector that SQNORM writes or adds to.  What is not
 * finite is named by its place among all parameters, from 1 (0: nothing). */
enum ddp__norm {
    DDP__NORM_SQUARES, /* |g / divisor|^2 of what is trained; NaN if any value,
                          also of running statistics, is not finite */
    DDP__NORM_TRAINED, /* the first such value that is trained */
    DDP__NORM_RUNNING, /* the last one of running statistics */
    DDP__NORMS
};

/* In evaluation: the label of a sample without class, which has no loss. */
enum { DDP__NO_LABEL = -1 };

/* One tensor of a call: rows of `shape`, one per sample.  Parameters and
 * other whole vectors are (1, 1, len) and do not grow with n. */
struct ddp__view {
    enum ddp_dtype type;
    bool per_sample;
    struct ddp_shape shape;
    size_t offset; /* bytes from the start of the handle's data */
};

struct ddp__conv {
    int kh, kw, sh, sw, dh, dw;   /* kernel, stride, dilation (1: dense) */
    int top, left, bottom, right; /* zero padding */
    int groups;
    bool bias;
    enum ddp_act act; /* forward only, one with ddp__act_from_y(); CONV_NORM:
                         DDP_SILU and DDP_HARDSWISH too */
    int in;    /* forward and bwd_w with one group: the channels of x that
                  have weights, others count as 0; 0: all have */
    float eps; /* CONV_NORM, NORM_CONV_*: of the batch norm */
    enum ddp_act norm_act; /* NORM_CONV_*: what follows that */
};

/* Filters of kh x kw without strides, dilation, groups and padding. */
static inline struct ddp__conv ddp__conv_plain(int kh, int kw)
{
    return (struct ddp__conv){
        .kh = kh, .kw = kw, .sh = 1, .sw = 1, .dh = 1, .dw = 1, .groups = 1};
}

/* Input channels of a group of weights, where x has c. */
static inline int ddp__conv_in(const struct ddp__conv *k, int c)
{
    return k->in ? k->in : c / k->groups;
}

struct ddp__pool {
    int kh, kw, sh, sw, top, left; /* windows may hang over all edges */
    bool count_pad;    /* mean: divide by the window's pixels inside the padded
                          image (as PyTorch); else by those inside the image */
    int bottom, right; /* padding there, for count_pad */
    bool adaptive;     /* window of output i of O on I pixels:
                          floor(i I / O) .. ceil((i + 1) I / O) */
};

/* A run of parameters treated equally by OPTIM and SQNORM. */
struct ddp__span {
    size_t begin, len; /* elements, within the bucket */
    size_t unit;       /* those of an output, if its gradient is clipped by the
                          norm of its weights, or AdamP needs them; else 0 */
    bool decay;
    bool running; /* w = (1 - momentum) w + momentum g / count */
    float momentum;
};

struct ddp__loss {
    enum ddp_loss_kind kind;
    float smoothing;
    ddp_loss_f fn; /* DDP_CUSTOM_LOSS */
    void *arg;
    float aux; /* of an auxiliary classifier: a factor of loss and gradient,
                  and nothing else is counted; 0: the chain's output */
    float threshold;    /* BINARY_CROSS_ENTROPY: shares above it count as 1,
                           others as 0; 0: shares count as they are */
    float gamma, alpha; /* FOCAL; alpha < 0: no weights */
    bool positives; /* BINARY_CROSS_ENTROPY: after its divisor, weight has what
                       the positive part of each class counts */
    float taught;   /* share of the loss that a teacher has: the rest is left */
};

struct ddp__optim {
    struct ddp_optimizer o;
    int spans;
    const struct ddp__span *span; /* not owned */
    size_t begin;                 /* of the bucket, among all parameters */
    float rate; /* times a step's learning rate; see engine/update.h */
    bool part;  /* the spans are not all that are trained */
    size_t cut; /* their elements, if they are cut; 0: they are whole */
};

struct ddp__task;
struct ddp__backend;

/* A step may end with a shorter sub-batch; the last step of an epoch too. */
enum { DDP__FEWER = 2 };

/* One operation at one place of a graph: constant while steps run. */
struct ddp__call {
    enum ddp__op op;
    int cap;               /* most samples it will see */
    int fewer[DDP__FEWER]; /* other numbers that it will see, as far as they
                              are known beforehand; 0: none */
    bool split;  /* workers may share it: it is alone, and somebody waits */
    bool sum;    /* CONV_BWD_X, CONV_NORM, SPLIT: added to what is there */
    int buffers; /* of HOST and USER; else the operands up to the last one */
    struct ddp__view buf[DDP_MAX_BUFFERS]; /* all 0: an absent operand */
    union {
        struct {
            float mean[4], std[4];
            bool flip;
        } input;
        struct ddp__conv conv;
        struct {
            bool bias;
            enum ddp_act act;
        } dense;
        struct {
            float eps;
            enum ddp_act act; /* of bn(x) + r; one with ddp__act_from_y(),
                                 or without r DDP_SILU or DDP_HARDSWISH */
            bool residual;
            bool mask;    /* of relu after a residual, c a multiple of 8 */
            bool inverse; /* stat has 1 / sqrt(var + eps), not var */
            bool from_x;  /* BN_BWD: slope is x */
        } bn;
        enum ddp_act act; /* ACT_FWD, ACT_BWD, ADD */
        struct ddp__pool pool;
        int at;      /* CONCAT, SPLIT: first channel */
        bool scaled; /* SCALE_BWD: x is what the forward pass wrote */
        struct {
            float p;
            bool whole_sample; /* stochastic depth */
            uint32_t layer;    /* key of the mask, with seed and sample id */
        } dropout;
        struct ddp__loss loss;
        struct ddp__optim optim;
        struct {
            double decay;
        } ema;
        struct {
            enum ddp__host host;
            int (*fn)(const struct ddp__task *t, void *arg);
            void *arg;
        } host;
        struct {
            const struct ddp_kernel *kernel;
            const void *arg;
        } user;
    };
    /* Who runs it on a kind of worker (NULL: nobody), and what it made for
     * that: owned, freed by its release. */
    struct ddp__choice {
        const struct ddp__backend *backend;
        void *plan;
    } on[DDP_DEVICE_KINDS];
};

/* What a channel's second statistic says of a batch norm. */
struct ddp__bn_spread {
    double var, inv; /* inv = 1 / sqrt(var + eps) */
};
struct ddp__bn_spread ddp__bn_spread(const struct ddp__call *c, float stat);

/* Entries of channel i of BN_SYNC's stat: the mean and the biased variance. */
void ddp__bn_moments(const double *sum, size_t channels, size_t i, float *stat);

/* The operands of a call: those of its operation, or of its host function. */
const struct ddp__signature *ddp__call_signature(const struct ddp__call *c);

/* How operand i is accessed, by the first call that touches it or a later one.
 */
enum ddp_access ddp__call_access(const struct ddp__call *c, int i, bool first);

/* One run of a call: what the kernel gets. */
struct ddp__task {
    const struct ddp__call *call;
    int n;           /* samples of this sub-batch, 1..cap */
    bool accumulate; /* g, stats, norm: add; else write */
    uint64_t seed;   /* DROPOUT: of this run and epoch; HOST: as it likes */
    float lr;        /* OPTIM; EMA: the share that w gets in e; 0: 1 - decay */
    float momentum;  /* OPTIM: or beta1, of this update; 0: the optimizer's */
    /* Set by the runtime: */
    void *plan;                   /* of this call on this kind of worker */
    void *data[DDP_MAX_BUFFERS];  /* of each view, offset added; NULL: absent */
    size_t size[DDP_MAX_BUFFERS]; /* bytes of the handle's data */
    uint64_t id[DDP_MAX_BUFFERS], version[DDP_MAX_BUFFERS]; /* of the handle:
        equal (id, version, view) means equal contents, so that a backend may
        keep what it derived from weights */
    uint64_t common[DDP_MAX_BUFFERS]; /* 0, or equal in all ranks where contents
        of the same view are */
};

static inline double ddp__ema_share(const struct ddp__task *t)
{
    return t->lr > 0 ? (double)t->lr : 1 - t->call->ema.decay;
}

/* The BN_BWD in a task of NORM_CONV_BWD_X, as a task of the call c; dy: floats,
 * the gradient of what the convolution reads. */
struct ddp__task ddp__norm_of_conv(const struct ddp__task *t, void *dy,
                                   struct ddp__call *c);

/* Whether operand i is there: any buffer of HOST and USER is. */
static inline bool ddp__call_has(const struct ddp__call *c, int i)
{
    return c->buf[i].shape.h > 0;
}

/* A set of types of activations. */
#define DDP__TYPES(type) (1U << DDP_##type)

/* Whether the activations of a call have one type, which is among `types`;
 * DDP_ENODEV. */
int ddp__call_one_type(const struct ddp__call *c, unsigned types);

/* Whether a call has the operands of its row, each of a type that it may have;
 * DDP_EINVAL. */
int ddp__call_check(const struct ddp__call *c);

/* Height, width and channels of the operands that have values per pixel, and
 * the kernel of a convolution: "56x56x64 56x56x256 by 1x1/1"; or how many
 * parameters there are. */
void ddp__call_describe(const struct ddp__call *c, char *text, size_t size);

/* The type of its first operand, if that is one of activations, else "". */
const char *ddp__call_type(const struct ddp__call *c);

/* Samples times elements, or elements, of buffer i. */
static inline size_t ddp__len(const struct ddp__task *t, int i)
{
    const struct ddp__view *v = &t->call->buf[i];

    return (size_t)(v->per_sample ? t->n : 1) * (size_t)v->shape.h *
           (size_t)v->shape.w * (size_t)v->shape.c;
}

static inline size_t ddp__dtype_size(enum ddp_dtype type)
{
    static const size_t size[] = {
        [DDP_F32] = 4, [DDP_BF16] = 2, [DDP_F16] = 2, [DDP_U8] = 1,
        [DDP_I32] = 4, [DDP_I64] = 8,  [DDP_F64] = 8};

    return size[type];
}

#endif
