/* ops_table.h - the operations and their operands
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
#ifndef DDP_OPS_TABLE_H
#define DDP_OPS_TABLE_H

#include "ddp_layer.h"

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
/* y = w * act(bn(x)), with the statistics of BN_STAT: what the convolution reads
 * is normalised on its way */
#define DDP__NORM_CONV_FWD_OPERANDS(O, op)                                     \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)             \
    O(op, BN, PARAM, READ) O(op, STAT, F32, READ)
#define DDP__NORM_CONV_BWD_W_OPERANDS(O, op)                                   \
    O(op, X, ACT, READ) O(op, DY, ACT, READ) O(op, G, GRAD, COLLECT)           \
    O(op, BN, PARAM, READ) O(op, STAT, F32, READ)
/* dx and g of BN_BWD, of that norm: the gradient of what the convolution reads is
 * in no memory */
#define DDP__NORM_CONV_BWD_X_OPERANDS(O, op)                                   \
    O(op, DY, ACT, READ) O(op, W, PARAM, READ) O(op, DX, ACT, WRITE)           \
    O(op, X, ACT, READ) O(op, BN, PARAM, READ) O(op, STAT, F32, READ)          \
    O(op, BN_G, GRAD, COLLECT)
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
/* stat of BN_FWD alone */
#define DDP__BN_STAT_OPERANDS(O, op)                                           \
    O(op, X, ACT, READ) O(op, STAT, F32, WRITE)
#define DDP__BN_EVAL_OPERANDS(O, op)                                           \
    O(op, X, ACT, READ) O(op, W, PARAM, READ) O(op, Y, ACT, WRITE)             \
    O(op, R, ACT, READ | OPTIONAL)
/* dx = dy scale / sqrt(var + eps), of BN_EVAL without act and r */
#define DDP__BN_EVAL_BWD_OPERANDS(O, op)                                       \
    O(op, DY, ACT, READ) O(op, W, PARAM, READ) O(op, DX, ACT, WRITE)
/* slope is the mask if there is one, else y, or with call.bn.from_x x */
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
    X(NORM_CONV_FWD, norm_conv_fwd, DDP__IS_CONV | DDP__IS_FWD)                \
    X(NORM_CONV_BWD_W, norm_conv_bwd_w, DDP__IS_CONV | DDP__IS_BWD_W)          \
    X(NORM_CONV_BWD_X, norm_conv_bwd_x, DDP__IS_CONV | DDP__IS_BWD_X)          \
    X(DENSE_FWD, dense_fwd, DDP__IS_DENSE | DDP__IS_FWD)                       \
    X(DENSE_BWD_X, dense_bwd_x, DDP__IS_DENSE | DDP__IS_BWD_X)                 \
    X(DENSE_BWD_W, dense_bwd_w, DDP__IS_DENSE | DDP__IS_BWD_W)                 \
    X(BN_FWD, bn_fwd, 0)                                                       \
    X(BN_STAT, bn_stat, 0)                                                     \
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
extern const struct ddp__signature ddp__host_signature[DDP__HOST_COUNT];

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

#endif
