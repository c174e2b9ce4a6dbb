/* ops.h - the operations a device may run: the border of lib/ and codelets/
 *
 * Letters   n samples, h w c height, width and channels of an activation
 *           (n, h, w, c), channels last; kh kw a kernel; o output channels;
 *           g groups.  Weights are (o, kh, kw, c / g), all f32.
 * Names     x y in and out; dx dy their gradients; w a layer's block of
 *           parameters; g the gradient of that block, a sum over samples.
 * Blocks    conv: weight, then bias[o].  dense: weight (o, c), bias[o].
 *           bn: scale[c], shift[c], mean[c], var[c] (the last two running).
 * Types     activations f32 or bf16, as the view says; everything else as
 *           written here.
 * g         is written, or added to when the task says accumulate.
 */
#ifndef DDP_OPS_H
#define DDP_OPS_H

#include <starpu.h>

#include "ddp.h"

/* X (ID, name): buffers in order; [..] is optional and last. */
#define DDP__OPS(X)                                                            \
    X(INPUT_U8, input_u8)           /* x u8, y: y = (x / 255 - mean) / std */  \
    X(INPUT_F32, input_f32)         /* x f32, y: a copy in y's type */         \
    X(CONV_FWD, conv_fwd)           /* x, w, y */                              \
    X(CONV_BWD_X, conv_bwd_x)       /* dy, w, dx */                            \
    X(CONV_BWD_W, conv_bwd_w)       /* x, dy, g */                             \
    X(DENSE_FWD, dense_fwd)         /* x, w, y */                              \
    X(DENSE_BWD_X, dense_bwd_x)     /* dy, w, dx */                            \
    X(DENSE_BWD_W, dense_bwd_w)     /* x, dy, g */                             \
    X(BN_FWD, bn_fwd)               /* x, w, y, stat [, r] */                  \
    X(BN_EVAL, bn_eval)             /* x, w, y [, r] */                        \
    X(BN_BWD, bn_bwd)               /* x, y, dy, w, stat, g, dx [, dr] */      \
    X(ACT_FWD, act_fwd)             /* x, y */                                 \
    X(ACT_BWD, act_bwd)             /* s, dy, dx: s is x or y, see below */    \
    X(ADD, add)                     /* a, b, y: y = act(a + b) */              \
    X(ACC, acc)                     /* dst, src: dst += src */                 \
    X(MAX_POOL_FWD, max_pool_fwd)   /* x, y, index */                          \
    X(MAX_POOL_BWD, max_pool_bwd)   /* dy, index, dx */                        \
    X(MEAN_POOL_FWD, mean_pool_fwd) /* x, y */                                 \
    X(MEAN_POOL_BWD, mean_pool_bwd) /* dy, dx */                               \
    X(CONCAT, concat)               /* x, y: y[..., at + i] = x[..., i] */     \
    X(SPLIT, split)                 /* dy, dx: dx[..., i] = dy[..., at + i] */ \
    X(SCALE_FWD, scale_fwd)         /* x, s, y: y = x s, s one per (n, c) */   \
    X(SCALE_BWD, scale_bwd)         /* x, s, dy, dx, ds */                     \
    X(DROPOUT, dropout)             /* x, ids i64, y: also of gradients */     \
    X(LOSS, loss)               /* x, target, weight[cap + 1], stats [, dx]:   \
                                   weight[cap] is the share of the divisor */  \
    X(MERGE, merge)             /* dst, src: f32, dst += src */                \
    X(MERGE_STATS, merge_stats) /* dst, src: f64, dst += src */                \
    X(SQNORM, sqnorm) /* g, stats, norm: norm (+)= |g / divisor|^2 */          \
    X(OPTIM, optim)   /* g, w, stats [, state] [, norm]; Adam's                \
                         state is all of m, then all of v;                     \
                                   RMSProp's v, then its momentum */           \
    X(HOST, host)     /* any: a function of lib/, on a CPU */                  \
    X(USER, user)     /* any: a kernel of the program's own */

enum ddp__op {
#define X(id, name) DDP__OP_##id,
    DDP__OPS(X)
#undef X
        DDP__OP_COUNT
};

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
    DDP__STATS
};

/* In evaluation: the label of a sample that counts, as wrong, without loss. */
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
    enum ddp_act act; /* forward only, one with ddp__act_from_y() */
};

struct ddp__pool {
    int kh, kw, sh, sw, top, left; /* windows may hang over all edges */
    bool count_pad;    /* mean: divide by the window's pixels inside the padded
                          image (as PyTorch); else by those inside the image */
    int bottom, right; /* padding there, for count_pad */
    bool adaptive;     /* window of output i of O on I pixels:
                          floor(i I / O) .. ceil((i + 1) I / O) */
};

/* A run of parameters treated alike by OPTIM and SQNORM. */
struct ddp__span {
    size_t begin, len; /* elements, within the bucket */
    bool decay;
    bool running; /* w = (1 - momentum) w + momentum g / count */
    float momentum;
};

struct ddp__loss {
    enum ddp_loss_kind kind;
    float smoothing;
    ddp_loss_f fn; /* DDP_OWN_LOSS */
    void *arg;
};

struct ddp__optim {
    struct ddp_optimizer o;
    int spans;
    const struct ddp__span *span; /* not owned */
};

struct ddp__task;
struct ddp__backend;

/* One operation at one place of a graph: constant while steps run. */
struct ddp__call {
    enum ddp__op op;
    int cap; /* most samples it will see */
    int buffers;
    struct ddp__view buf[DDP_MAX_BUFFERS];
    union {
        struct {
            float mean[4], std[4];
        } input;
        struct ddp__conv conv;
        struct {
            bool bias;
            enum ddp_act act;
        } dense;
        struct {
            float eps;
            enum ddp_act act; /* of bn(x) + r; one with ddp__act_from_y() */
            bool residual;
        } bn;
        enum ddp_act act; /* ACT_FWD, ACT_BWD, ADD */
        struct ddp__pool pool;
        int at; /* CONCAT, SPLIT: first channel */
        struct {
            float p;
            bool whole_sample; /* stochastic depth */
            uint32_t layer;    /* key of the mask, with seed and sample id */
        } dropout;
        struct ddp__loss loss;
        struct ddp__optim optim;
        struct {
            int (*fn)(const struct ddp__task *t, void *arg);
            void *arg;
        } host;
        struct {
            const struct ddp_kernel *kernel;
            const void *arg;
        } user;
    };
    const struct ddp__backend *backend; /* that made plan; NULL: none did */
    void *plan;                         /* owned, freed by backend->release */
};

/* One run of a call: what the kernel gets. */
struct ddp__task {
    const struct ddp__call *call;
    int n;           /* samples of this sub-batch, 1..cap */
    bool accumulate; /* g, stats, norm: add; else write */
    uint64_t seed;   /* DROPOUT: of this run and epoch; HOST: as it likes */
    float lr;        /* OPTIM */
    int64_t t;       /* OPTIM: updates made, this one included */
    /* Set by the runtime: */
    void *data[DDP_MAX_BUFFERS]; /* of each view, offset added */
    uint64_t id[DDP_MAX_BUFFERS], version[DDP_MAX_BUFFERS]; /* of the handle:
        equal (id, version, view) means equal contents, so that a backend may
        keep what it derived from weights */
};

/* A kernel returns 0, or what ddp__fail() returned. */
typedef int (*ddp__kernel_f)(const struct ddp__task *t);

/* A device: one folder of codelets/ fills one of these.  One that leaves
 * kernel[op] NULL never gets that op. */
struct ddp__backend {
    const char *name;
    int (*init)(void); /* after starpu_init(): per-worker state */
    void (*fini)(void);
    const char *(*describe)(void); /* "oneDNN 2.6.3, bf16" */
    /* Make what a call needs before its first task (primitives, scratch).
     * NULL: nothing.  DDP_ENODEV: this call goes to the next backend. */
    int (*prepare)(struct ddp__call *c);
    void (*release)(struct ddp__call *c);
    bool bf16; /* can work in bf16 (asked after init) */
    ddp__kernel_f kernel[DDP__OP_COUNT];
};

/* Samples times elements, or elements, of buffer i. */
static inline size_t ddp__len(const struct ddp__task *t, int i)
{
    const struct ddp__view *v = &t->call->buf[i];

    return (size_t)(v->per_sample ? t->n : 1) * (size_t)v->shape.h *
           (size_t)v->shape.w * (size_t)v->shape.c;
}

static inline size_t ddp__dtype_size(enum ddp_dtype type)
{
    static const size_t size[] = {[DDP_F32] = 4, [DDP_BF16] = 2, [DDP_U8] = 1,
                                  [DDP_I32] = 4, [DDP_I64] = 8,  [DDP_F64] = 8};

    return size[type];
}

/* Store a message for ddp_errmsg() and return code. */
int ddp__fail(int code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* How often that was called by this thread: whether a function of the program's
 * that failed has left a message. */
unsigned ddp__failures(void);

/* bf16 is the upper half of an f32; rounding is to nearest even. */
static inline float ddp__from_bf16(uint16_t b)
{
    union {
        uint32_t u;
        float f;
    } v = {(uint32_t)b << 16};

    return v.f;
}

static inline uint16_t ddp__to_bf16(float f)
{
    union {
        float f;
        uint32_t u;
    } v = {f};

    if ((v.u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)((v.u >> 16) | 0x40); /* a NaN stays one */
    return (uint16_t)((v.u + 0x7fff + ((v.u >> 16) & 1)) >> 16);
}

#endif
