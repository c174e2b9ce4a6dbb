/* ops.h - the operations a device may run: the border of lib/ and codelets/
 * SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Letters   n samples, h w c height, width and channels of an activation
 *           (n, h, w, c), channels last; kh kw a kernel; o output channels;
 *           g groups.  Weights are (o, kh, kw, c / g), all f32.
 * Names     x y in and out; dx dy their gradients; w a layer's block of
 *           parameters; g the gradient of that block, a sum over samples.
 * Blocks    conv: weight, then bias[o].  dense: weight (o, c), bias[o].
 *           bn: scale[c], shift[c], mean[c], var[c] (the last two running).
 * Types     activations f32, bf16 or f16, as the view says; everything else
 *           as written here.
 * mask      u8 (n, h, w, c / 8): bit i of byte k says y > 0 of channel 8 k + i.
 * g         is written, or added to when the task says accumulate.
 */
#ifndef DDP_OPS_H
#define DDP_OPS_H

#include "ddp_layer.h"
#include "ops_loss.h"
#include "ops_optim.h"

/* The operands of each operation, in the order of the buffers of its calls:
 *
 *     O (op, NAME, what it is: DDP__KIND_..., what is done with it: DDP__...)
 *
 * HOST and USER take any buffers. */
/* clang-format off */
/* y = (x / 255 - mean) / std; may mirror images, and add channels of zeros */
#define DDP__INPUT_U8_OPERANDS(O, op)                                          \
    O(op, X, U8, READ) O(op, Y, ACT, WRITE)
/* y = x; may do the same */
#define DDP__INPUT_F32_OPERANDS(O, op)                                         \
    O(op, X, F32, READ) O(op, Y, ACT, WRITE)
#define DDP__CONV_FWD_OPERANDS(O, op)                                          \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)
/* dx is written, or with call.sum added to */
#define DDP__CONV_BWD_X_OPERANDS(O, op)                                        \
    O(op, DY, ACT, READ) O(op, W, PARAM, READ) O(op, DX, ACT, WRITE)
#define DDP__CONV_BWD_W_OPERANDS(O, op)                                        \
    O(op, X, ACT, READ) O(op, DY, ACT, READ) O(op, G, GRAD, COLLECT)
/* y = act(bn(w * x + b)) with the running statistics; with call.sum, the
 * residual that y holds is added before act */
#define DDP__CONV_NORM_OPERANDS(O, op)                                         \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)             \
    O(op, BN, PARAM, READ)
#define DDP__DENSE_FWD_OPERANDS(O, op)                                         \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)
#define DDP__DENSE_BWD_X_OPERANDS(O, op)                                       \
    O(op, DY, ACT, READ) O(op, W, PARAM, READ) O(op, DX, ACT, WRITE)
#define DDP__DENSE_BWD_W_OPERANDS(O, op)                                       \
    O(op, X, ACT, READ) O(op, DY, ACT, READ) O(op, G, GRAD, COLLECT)
/* y = act(bn(x) + r) */
#define DDP__BN_FWD_OPERANDS(O, op)                                            \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)             \
    O(op, STAT, F32, WRITE) O(op, R, ACT, READ | OPTIONAL)                     \
    O(op, MASK, U8, WRITE | OPTIONAL)
#define DDP__BN_EVAL_OPERANDS(O, op)                                           \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)             \
    O(op, R, ACT, READ | OPTIONAL)
/* dx = dy scale / sqrt(var + eps), of BN_EVAL without act and r */
#define DDP__BN_EVAL_BWD_OPERANDS(O, op)                                       \
    O(op, DY, ACT, READ) O(op, W, PARAM, READ) O(op, DX, ACT, WRITE)
/* slope is the mask if there is one, else y */
#define DDP__BN_BWD_OPERANDS(O, op)                                            \
    O(op, X, ACT, READ) O(op, SLOPE, SLOPE, READ) O(op, DY, ACT, READ)             \
    O(op, W, PARAM, READ) O(op, STAT, F32, READ) O(op, G, GRAD, COLLECT)       \
    O(op, DX, ACT, WRITE) O(op, DR, ACT, WRITE | OPTIONAL)
/* g and dx of BN_BWD without r, where dy s + dm / (h w) is the gradient of y:
 * y was multiplied by s, which follows from the means of y, whose gradient is
 * dm.  There is one s and dm for each (n, c), and x tells the slope. */
#define DDP__BN_GATED_BWD_OPERANDS(O, op)                                      \
    O(op, X, ACT, READ) O(op, S, ACT, READ) O(op, DY, ACT, READ)               \
    O(op, W, PARAM, READ) O(op, STAT, F32, READ) O(op, G, GRAD, COLLECT)       \
    O(op, DX, ACT, WRITE) O(op, DM, ACT, READ)
/* A batch norm over the sub-batches of a step, whose sums are added in between:
 * first sum[c] of x, sum[c] of x x, and how many values these are of */
#define DDP__BN_SUM_OPERANDS(O, op)                                            \
    O(op, X, ACT, READ) O(op, SUM, F64, COLLECT)
/* as BN_FWD, with the statistics that follow from sum; stat has one more entry:
 * how many values there are */
#define DDP__BN_SYNC_OPERANDS(O, op)                                           \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)             \
    O(op, STAT, F32, WRITE) O(op, R, ACT, READ | OPTIONAL)                     \
    O(op, MASK, U8, WRITE | OPTIONAL) O(op, SUM, F64, READ)
/* g and dr of BN_BWD; dsum is sum[c] of dz, and sum[c] of dz (x - mean) */
#define DDP__BN_SUM_BWD_OPERANDS(O, op)                                        \
    O(op, X, ACT, READ) O(op, SLOPE, SLOPE, READ) O(op, DY, ACT, READ)         \
    O(op, W, PARAM, READ) O(op, STAT, F32, READ) O(op, G, GRAD, COLLECT)       \
    O(op, DSUM, F64, COLLECT) O(op, DR, ACT, WRITE | OPTIONAL)
/* dx of BN_BWD; dz is dr where that is there */
#define DDP__BN_SYNC_BWD_OPERANDS(O, op)                                       \
    O(op, X, ACT, READ) O(op, SLOPE, SLOPE, READ) O(op, DY, ACT, READ)         \
    O(op, W, PARAM, READ) O(op, STAT, F32, READ) O(op, DSUM, F64, READ)        \
    O(op, DX, ACT, WRITE) O(op, DR, ACT, READ | OPTIONAL)
#define DDP__ACT_FWD_OPERANDS(O, op)                                           \
    O(op, X, ACT, READ) O(op, Y, ACT, WRITE)
/* slope is x or y: see ddp__act_from_y() */
#define DDP__ACT_BWD_OPERANDS(O, op)                                           \
    O(op, SLOPE, ACT, READ) O(op, DY, ACT, READ) O(op, DX, ACT, WRITE)
/* y = act(a + b) */
#define DDP__ADD_OPERANDS(O, op)                                               \
    O(op, A, ACT, READ) O(op, B, ACT, READ) O(op, Y, ACT, WRITE)
/* dst += src */
#define DDP__ACC_OPERANDS(O, op)                                               \
    O(op, DST, ACT, UPDATE) O(op, SRC, ACT, READ)
#define DDP__MAX_POOL_FWD_OPERANDS(O, op)                                      \
    O(op, X, ACT, READ) O(op, Y, ACT, WRITE) O(op, INDEX, INDEX, WRITE)
#define DDP__MAX_POOL_BWD_OPERANDS(O, op)                                      \
    O(op, DY, ACT, READ) O(op, INDEX, INDEX, READ) O(op, DX, ACT, WRITE)
#define DDP__MEAN_POOL_FWD_OPERANDS(O, op)                                     \
    O(op, X, ACT, READ) O(op, Y, ACT, WRITE)
#define DDP__MEAN_POOL_BWD_OPERANDS(O, op)                                     \
    O(op, DY, ACT, READ) O(op, DX, ACT, WRITE)
/* y[..., at + i] = x[..., i] */
#define DDP__CONCAT_OPERANDS(O, op)                                            \
    O(op, X, ACT, READ) O(op, Y, ACT, COLLECT)
/* dx[..., i] = dy[..., at + i], or with call.sum that is added to dx */
#define DDP__SPLIT_OPERANDS(O, op)                                             \
    O(op, DY, ACT, READ) O(op, DX, ACT, WRITE)
/* y = x s, with one s for each (n, c) */
#define DDP__SCALE_FWD_OPERANDS(O, op)                                         \
    O(op, X, ACT, READ) O(op, S, ACT, READ) O(op, Y, ACT, WRITE)
/* with call.scaled, x is y of the forward pass: ds is 0 where s is 0; without
 * dx, BN_GATED_BWD makes that */
#define DDP__SCALE_BWD_OPERANDS(O, op)                                         \
    O(op, X, ACT, READ) O(op, S, ACT, READ) O(op, DY, ACT, READ)               \
    O(op, DX, ACT, WRITE | OPTIONAL) O(op, DS, ACT, WRITE)
/* of values, and of gradients */
#define DDP__DROPOUT_OPERANDS(O, op)                                           \
    O(op, X, ACT, READ) O(op, IDS, IDS, READ) O(op, Y, ACT, WRITE)
/* weight[cap] is the share of the divisor, and with call.loss.positives more
 * follow; dx is times scale[0] */
#define DDP__LOSS_OPERANDS(O, op)                                              \
    O(op, X, LOGIT, READ) O(op, TARGET, TARGET, READ) O(op, WEIGHT, F32, READ) \
    O(op, STATS, F64, COLLECT | WATCHED) O(op, DX, LOGIT, WRITE | OPTIONAL)    \
    O(op, SCALE, F64, READ | OPTIONAL)
/* dst += src */
#define DDP__MERGE_OPERANDS(O, op)                                             \
    O(op, DST, GRAD, UPDATE) O(op, SRC, GRAD, READ)
/* dst += src */
#define DDP__MERGE_STATS_OPERANDS(O, op)                                       \
    O(op, DST, F64, UPDATE) O(op, SRC, F64, READ)
/* norm: see enum ddp__norm */
#define DDP__SQNORM_OPERANDS(O, op)                                            \
    O(op, G, GRAD, READ) O(op, STATS, F64, READ)                               \
    O(op, NORM, F64, COLLECT | WATCHED)
/* the state of Adam is all of m, then all of v; of RMSProp v, momentum */
#define DDP__OPTIM_OPERANDS(O, op)                                             \
    O(op, G, GRAD, READ) O(op, W, PARAM, UPDATE | TRAINED)                     \
    O(op, STATS, F64, READ) O(op, STATE, F32, UPDATE | OPTIONAL)               \
    O(op, NORM, F64, READ | OPTIONAL)
/* dst += (1 - decay) (src - dst), unless stats[DIVISOR] is 0 */
#define DDP__EMA_OPERANDS(O, op)                                               \
    O(op, DST, F32, UPDATE) O(op, SRC, PARAM, READ) O(op, STATS, F64, READ)
/* dst = src, in case that what comes next is undone */
#define DDP__KEEP_OPERANDS(O, op)                                              \
    O(op, DST, F32, WRITE) O(op, SRC, PARAM, READ)
/* a function of lib/, on a CPU: see DDP__HOSTS */
#define DDP__HOST_OPERANDS(O, op)
/* a kernel of the program */
#define DDP__USER_OPERANDS(O, op)

/* Those of functions that HOST calls run. */
/* nothing runs, no data are moved: any buffers are waited for */
#define DDP__FENCE_OPERANDS(O, op)
/* samples from the loader or the program */
#define DDP__FILL_OPERANDS(O, op)                                              \
    O(op, X, SAMPLE, WRITE) O(op, IDS, IDS, WRITE)                             \
    O(op, TARGET, TARGET, WRITE | OPTIONAL)                                    \
    O(op, WEIGHT, F32, WRITE | OPTIONAL)
/* dy of a pullback, from the program */
#define DDP__SEED_OPERANDS(O, op)                                              \
    O(op, DY, LOGIT, WRITE)
/* what a chain computes, for the program; it changes no stats: the end of a
 * step, which waits for them, waits for the program too */
#define DDP__OUTPUT_OPERANDS(O, op)                                            \
    O(op, Y, LOGIT, READ) O(op, TARGET, TARGET, READ | OPTIONAL)               \
    O(op, IDS, IDS, READ | OPTIONAL) O(op, STATS, F64, UPDATE | OPTIONAL)
/* what a teacher adds to the loss of x and to its gradient */
#define DDP__TEACH_OPERANDS(O, op)                                             \
    O(op, X, LOGIT, READ) O(op, TAUGHT, LOGIT, READ) O(op, WEIGHT, F32, READ)  \
    O(op, STATS, F64, UPDATE) O(op, DX, LOGIT, UPDATE)                         \
    O(op, SCALE, F64, READ | OPTIONAL)
/* g, rounded to what ranks send */
#define DDP__ROUND_OPERANDS(O, op) O(op, G, GRAD, UPDATE)
/* what updates need before it is known whether the step is applied */
#define DDP__TERMS_OPERANDS(O, op)                                             \
    O(op, STATS, F64, READ) O(op, SCALER, F64, UPDATE)
/* whether the step is applied: see enum ddp__scaler */
#define DDP__DECIDE_OPERANDS(O, op)                                            \
    O(op, STATS, F64, READ) O(op, NORM, F64, UPDATE) O(op, SCALER, F64, UPDATE)
/* the same where ranks have looked at their slices of the gradients; the copy
 * of the statistics is for what comes late */
#define DDP__AGREE_OPERANDS(O, op)                                             \
    O(op, STATS, F64, READ) O(op, SCALER, F64, UPDATE) O(op, COPY, F64, WRITE)
/* the norm of the gradients, for reports; the end waits for the token */
#define DDP__NOTE_OPERANDS(O, op)                                              \
    O(op, NORM, F64, READ) O(op, TOKEN, F32, UPDATE)
/* the results of a step; the token orders it after the fences */
#define DDP__END_OPERANDS(O, op)                                               \
    O(op, STATS, F64, READ) O(op, SCALER, F64, READ) O(op, TOKEN, F32, READ)
/* clang-format on */

/* X (ID): functions of lib/, which the host runs. */
#define DDP__HOSTS(X)                                                          \
    X(FENCE)                                                                   \
    X(FILL)                                                                    \
    X(SEED)                                                                    \
    X(OUTPUT) X(TEACH) X(ROUND) X(TERMS) X(DECIDE) X(AGREE) X(NOTE) X(END)

enum ddp__host {
#define X(id) DDP__HOST_##id,
    DDP__HOSTS(X)
#undef X
        DDP__HOST_COUNT
};

/* X (ID, name, traits: enum ddp__trait) */
#define DDP__OPS(X)                                                            \
    X(INPUT_U8, input_u8, DDP__IS_INPUT)                                       \
    X(INPUT_F32, input_f32, DDP__IS_INPUT)                                     \
    X(CONV_FWD, conv_fwd, DDP__IS_CONV | DDP__IS_FWD)                          \
    X(CONV_BWD_X, conv_bwd_x, DDP__IS_CONV | DDP__IS_BWD_X)                    \
    X(CONV_BWD_W, conv_bwd_w, DDP__IS_CONV | DDP__IS_BWD_W)                    \
    X(CONV_NORM, conv_norm, DDP__IS_CONV | DDP__IS_FWD)                        \
    X(DENSE_FWD, dense_fwd, DDP__IS_DENSE | DDP__IS_FWD)                       \
    X(DENSE_BWD_X, dense_bwd_x, DDP__IS_DENSE | DDP__IS_BWD_X)                 \
    X(DENSE_BWD_W, dense_bwd_w, DDP__IS_DENSE | DDP__IS_BWD_W)                 \
    X(BN_FWD, bn_fwd, 0)                                                       \
    X(BN_EVAL, bn_eval, 0)                                                     \
    X(BN_EVAL_BWD, bn_eval_bwd, 0)                                             \
    X(BN_BWD, bn_bwd, 0)                                                       \
    X(BN_GATED_BWD, bn_gated_bwd, 0)                                           \
    X(BN_SUM, bn_sum, 0)                                                       \
    X(BN_SYNC, bn_sync, 0)                                                     \
    X(BN_SUM_BWD, bn_sum_bwd, 0)                                               \
    X(BN_SYNC_BWD, bn_sync_bwd, 0)                                             \
    X(ACT_FWD, act_fwd, 0)                                                     \
    X(ACT_BWD, act_bwd, 0)                                                     \
    X(ADD, add, 0)                                                             \
    X(ACC, acc, 0)                                                             \
    X(MAX_POOL_FWD, max_pool_fwd, 0)                                           \
    X(MAX_POOL_BWD, max_pool_bwd, 0)                                           \
    X(MEAN_POOL_FWD, mean_pool_fwd, 0)                                         \
    X(MEAN_POOL_BWD, mean_pool_bwd, 0)                                         \
    X(CONCAT, concat, 0)                                                       \
    X(SPLIT, split, 0)                                                         \
    X(SCALE_FWD, scale_fwd, 0)                                                 \
    X(SCALE_BWD, scale_bwd, 0)                                                 \
    X(DROPOUT, dropout, 0)                                                     \
    X(LOSS, loss, 0)                                                           \
    X(MERGE, merge, 0)                                                         \
    X(MERGE_STATS, merge_stats, DDP__IS_SMALL)                                 \
    X(SQNORM, sqnorm, 0)                                                       \
    X(OPTIM, optim, 0)                                                         \
    X(EMA, ema, 0)                                                             \
    X(KEEP, keep, 0)                                                           \
    X(HOST, host, DDP__IS_HOST)                                                \
    X(USER, user, DDP__IS_USER)

enum ddp__op {
#define X(id, name, traits) DDP__OP_##id,
    DDP__OPS(X)
#undef X
        DDP__OP_COUNT
};

/* Where an operand is in the buffers of a call: DDP__CONV_FWD_X, ...; and how
 * many a call has at most: DDP__CONV_FWD_BUFFERS. */
#define O(op, name, kind, use) DDP__##op##_##name,
#define X(id, name, traits)                                                    \
    enum { DDP__##id##_OPERANDS(O, id) DDP__##id##_BUFFERS };                  \
    _Static_assert((int)DDP__##id##_BUFFERS <= (int)DDP_MAX_BUFFERS, #name);
DDP__OPS(X)
#undef X
#define X(id) enum { DDP__##id##_OPERANDS(O, id) DDP__##id##_BUFFERS };
DDP__HOSTS(X)
#undef X
#undef O

/* What an operand is, hence of which type. */
enum ddp__operand_kind {
    DDP__KIND_ACT,    /* an activation or its gradient, all of a call of one
                         type: f32, bf16 or f16 */
    DDP__KIND_SLOPE,  /* the same, or a mask, u8 */
    DDP__KIND_LOGIT,  /* an activation of a type of its own */
    DDP__KIND_SAMPLE, /* what a program or a data set gives, u8 or f32 */
    DDP__KIND_INDEX,  /* positions in windows, u8 or i32 */
    DDP__KIND_IDS,    /* numbers of samples, i32 or i64 */
    DDP__KIND_TARGET, /* labels, i32, or values, f32 */
    DDP__KIND_PARAM,  /* parameters, f32 */
    DDP__KIND_GRAD,   /* their gradients, f32 */
    DDP__KIND_U8,     /* anything else of that type */
    DDP__KIND_F32,
    DDP__KIND_F64,
    DDP__OPERAND_KINDS
};

/* What an operation does with an operand. */
enum ddp__use {
    DDP__READ = 1,
    DDP__WRITE = 2,
    DDP__UPDATE = DDP__READ | DDP__WRITE,
    DDP__COLLECT = 4,  /* the first call writes it, later ones add to it */
    DDP__OPTIONAL = 8, /* may be absent: no value, no buffer, data NULL */
    DDP__WATCHED =
        16, /* its first entry is a sum: not finite if a term is not */
    DDP__TRAINED = 32 /* weights that a step changes */
};

/* What is special about an operation. */
enum ddp__trait {
    DDP__IS_CONV = 1, /* multiplies activations and weights */
    DDP__IS_DENSE = 2,
    DDP__IS_FWD = 4, /* which of the three passes of such a layer */
    DDP__IS_BWD_X = 8,
    DDP__IS_BWD_W = 16,
    DDP__IS_INPUT = 32, /* reads what the program gives: waits for no weights */
    DDP__IS_SMALL = 64, /* a few numbers for the host: not worth a GPU */
    DDP__IS_HOST = 128, /* runs a function of lib/ */
    DDP__IS_USER = 256  /* runs a kernel of the program */
};

struct ddp__operand {
    const char *name; /* "DY" */
    enum ddp__operand_kind kind;
    unsigned use; /* enum ddp__use */
};

struct ddp__signature {
    const char *name; /* "conv_fwd" */
    unsigned traits;  /* enum ddp__trait */
    int operands;
    struct ddp__operand operand[DDP_MAX_BUFFERS];
};
extern const struct ddp__signature ddp__signature[DDP__OP_COUNT];

static inline bool ddp__op_is(enum ddp__op op, unsigned traits)
{
    return (ddp__signature[op].traits & traits) != 0;
}

/* The operand with that use; -1: none has it. */
int ddp__op_operand(enum ddp__op op, enum ddp__use use);

/* Which operands of a convolution or dense layer are x, w and y of forward, or
 * the gradients of these. */
struct ddp__xwy {
    int x, w, y;
};
struct ddp__xwy ddp__op_xwy(enum ddp__op op);

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
    float eps; /* CONV_NORM: of the batch norm */
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

/* A kernel returns 0, or what ddp__fail() returned. */
typedef int (*ddp__kernel_f)(const struct ddp__task *t);

/* The machine, for choices that change no result. */
struct ddp__machine {
    int cores;         /* physical ones that this process may use */
    size_t l2_of_core; /* bytes of second-level cache for each; 0: unknown */
};

/* The memory of a kind of device, for one thread that is no worker.  Copies and
 * sums are made in their order, and are there after wait. */
struct ddp__space {
    int (*enter)(int device); /* the one that the calls to come are for */
    int (*copy)(void *to, const void *from, size_t size);
    int (*add)(float *to, const float *from, size_t n); /* as MERGE does */
    int (*wait)(void);
    /* Begin a copy between it and main memory, after those in the same
     * direction (out: from it); a ticket for those so far, whose memory is
     * freed once they have passed: 1; 0: not yet. */
    int (*carry)(void *to, const void *from, size_t size, bool out);
    int (*mark)(bool out, void **ticket);
    int (*passed)(void **ticket);
};

/* Kernels of a kind of device.  A backend that leaves kernel[op] NULL never
 * gets that op. */
struct ddp__backend {
    const char *name;
    /* After starpu_init(): per-worker state. */
    int (*init)(const struct ddp__machine *m);
    void (*fini)(void);
    const char *(*describe)(void); /* "oneDNN 2.6.3, bf16" */
    /* Calls that prepare will be asked for: what takes long can be made by many
     * threads now, for it to find.  What fails is left to it.  NULL: nothing
     * takes long. */
    void (*warm)(const struct ddp__call *const *c, int calls);
    /* Make what a call needs before its first task (primitives, scratch).
     * NULL: nothing.  DDP_ENODEV: this call goes to the next backend. */
    int (*prepare)(const struct ddp__call *c, void **plan);
    void (*release)(void *plan);
    /* Whether large batches of inference are faster in slices that caches can
     * hold; NULL: they are not. */
    bool (*slices)(void);
    /* Bytes of main memory that the call's kernels keep between its tasks, for
     * copies of weights; NULL: none. */
    size_t (*kept)(const struct ddp__call *c, const void *plan);
    /* Bytes of it that the processes of a host may have in common; and have the
     * call use these, zeros, from before its first task to its release.  NULL:
     * there are none. */
    size_t (*common)(const struct ddp__call *c, const void *plan);
    void (*share)(void *plan, void *memory);
    /* Bytes of main memory that a worker has for the time of the call, also if
     * it adds to a gradient; NULL: hardly any. */
    size_t (*room)(const struct ddp__call *c, const void *plan, bool adds);
    /* Calls have been prepared, and their first task comes: what they share
     * (scratch) is made.  No task is running.  NULL: nothing. */
    int (*ready)(void);
    /* The calls of a task have been made, on this worker: what they left to be
     * done for all at once.  NULL: nothing. */
    int (*settle)(void);
    size_t (*scratch)(void); /* of a worker, in bytes; NULL: none */
    /* Device memory in use by other processes that StarPU believes is free, in
     * bytes; the maximum over devices.  NULL: none. */
    size_t (*taken)(void);
    /* Page-lock host memory for DMA; NULL: no need.  After fini too. */
    int (*pin)(void *p, size_t size);
    void (*unpin)(void *p);
    /* Main memory that kernels and copies use like the device's own; NULL:
     * there is none. */
    void *(*map)(size_t size);
    void (*unmap)(void *p);
    /* Whether a device fails all calls; words: the driver's, if it does. Before
     * init too; NULL: none fails as a whole. */
    bool (*broken)(int device, char *words, size_t size);
    /* DDP_ENOMEM or DDP_EDEVICE, and the driver's words for its error. */
    int (*reason)(int error, char *words, size_t size);
    /* Sums and copies by the thread that carries messages, in its memory; NULL:
     * StarPU copies whole vectors to and from main memory. */
    const struct ddp__space *space;
    /* Whether it can work in that type, not f32 (asked after init); NULL: in
     * none. */
    bool (*computes)(enum ddp_dtype type);
    ddp__kernel_f kernel[DDP__OP_COUNT];
};

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
