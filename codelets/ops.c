/* ops.c - the table of operations, and what follows from it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "ops.h"

/* The words of the rows. */
enum {
    READ = DDP__READ,
    WRITE = DDP__WRITE,
    UPDATE = DDP__UPDATE,
    COLLECT = DDP__COLLECT,
    OPTIONAL = DDP__OPTIONAL,
    WATCHED = DDP__WATCHED,
    TRAINED = DDP__TRAINED
};

#define O(op, name, kind, use) {#name, DDP__KIND_##kind, use},
#define X(id, name, traits)                                                    \
    [DDP__OP_##id] = {                                                         \
        #name, traits, DDP__##id##_BUFFERS, {DDP__##id##_OPERANDS(O, id)}},
const struct ddp__signature ddp__signature[DDP__OP_COUNT] = {DDP__OPS(X)};
#undef X

#define X(id)                                                                  \
    [DDP__HOST_##id] = {"host " #id,                                           \
                        DDP__IS_HOST,                                          \
                        DDP__##id##_BUFFERS,                                   \
                        {DDP__##id##_OPERANDS(O, id)}},
static const struct ddp__signature host_signature[DDP__HOST_COUNT] = {
    DDP__HOSTS(X)};
#undef X
#undef O

/* Kernels of these operations share functions that know where operands are. */
#define SAME(a, b, name)                                                       \
    _Static_assert((int)DDP__##a##_##name == (int)DDP__##b##_##name,           \
                   #a " and " #b " have " #name " at one place")
SAME(INPUT_U8, INPUT_F32, X);
SAME(INPUT_U8, INPUT_F32, Y);
SAME(CONV_FWD, DENSE_FWD, X);
SAME(CONV_FWD, DENSE_FWD, W);
SAME(CONV_FWD, DENSE_FWD, Y);
SAME(CONV_FWD, CONV_NORM, X);
SAME(CONV_FWD, CONV_NORM, W);
SAME(CONV_FWD, CONV_NORM, Y);
SAME(CONV_BWD_X, DENSE_BWD_X, DX);
SAME(CONV_BWD_X, DENSE_BWD_X, W);
SAME(CONV_BWD_X, DENSE_BWD_X, DY);
SAME(CONV_BWD_W, DENSE_BWD_W, X);
SAME(CONV_BWD_W, DENSE_BWD_W, G);
SAME(CONV_BWD_W, DENSE_BWD_W, DY);
SAME(BN_FWD, BN_BWD, X);
SAME(BN_FWD, BN_EVAL, X);
SAME(BN_FWD, BN_EVAL, W);
SAME(BN_FWD, BN_EVAL, Y);
SAME(BN_FWD, BN_SUM, X);
SAME(BN_FWD, BN_SYNC, X);
SAME(BN_FWD, BN_SYNC, W);
SAME(BN_FWD, BN_SYNC, Y);
SAME(BN_FWD, BN_SYNC, STAT);
SAME(BN_FWD, BN_SYNC, R);
SAME(BN_FWD, BN_SYNC, MASK);
SAME(BN_BWD, BN_GATED_BWD, X);
SAME(BN_BWD, BN_GATED_BWD, DY);
SAME(BN_BWD, BN_GATED_BWD, W);
SAME(BN_BWD, BN_GATED_BWD, STAT);
SAME(BN_BWD, BN_GATED_BWD, G);
SAME(BN_BWD, BN_GATED_BWD, DX);
SAME(BN_BWD, BN_SUM_BWD, X);
SAME(BN_BWD, BN_SUM_BWD, SLOPE);
SAME(BN_BWD, BN_SUM_BWD, DY);
SAME(BN_BWD, BN_SUM_BWD, W);
SAME(BN_BWD, BN_SUM_BWD, STAT);
SAME(BN_BWD, BN_SUM_BWD, G);
SAME(BN_BWD, BN_SUM_BWD, DR);
SAME(BN_BWD, BN_SYNC_BWD, X);
SAME(BN_BWD, BN_SYNC_BWD, SLOPE);
SAME(BN_BWD, BN_SYNC_BWD, DY);
SAME(BN_BWD, BN_SYNC_BWD, W);
SAME(BN_BWD, BN_SYNC_BWD, STAT);
SAME(BN_BWD, BN_SYNC_BWD, DX);
SAME(BN_BWD, BN_SYNC_BWD, DR);
_Static_assert((int)DDP__BN_EVAL_BWD_DY == (int)DDP__BN_EVAL_X &&
                   (int)DDP__BN_EVAL_BWD_W == (int)DDP__BN_EVAL_W &&
                   (int)DDP__BN_EVAL_BWD_DX == (int)DDP__BN_EVAL_Y,
               "BN_EVAL_BWD has dy and dx where BN_EVAL has x and y");
SAME(MAX_POOL_FWD, MEAN_POOL_FWD, X);
SAME(MAX_POOL_FWD, MEAN_POOL_FWD, Y);
SAME(MERGE, MERGE_STATS, DST);
SAME(MERGE, MERGE_STATS, SRC);
#undef SAME

int ddp__op_operand(enum ddp__op op, enum ddp__use use)
{
    const struct ddp__signature *s = &ddp__signature[op];

    for (int i = 0; i < s->operands; i++)
        if (s->operand[i].use & use)
            return i;
    return -1;
}

const struct ddp__signature *ddp__call_signature(const struct ddp__call *c)
{
    return c->op == DDP__OP_HOST ? &host_signature[c->host.host]
                                 : &ddp__signature[c->op];
}

enum ddp_access ddp__call_access(const struct ddp__call *c, int i, bool first)
{
    unsigned use = ddp__call_signature(c)->operand[i].use;

    if (use & DDP__COLLECT)
        return first ? DDP_WRITE : DDP_UPDATE;
    if (!(use & DDP__WRITE))
        return DDP_READ;
    return use & DDP__READ ? DDP_UPDATE : DDP_WRITE;
}

/* ---- words --------------------------------------------------------------- */

void ddp__call_describe(const struct ddp__call *c, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < c->buffers && used < size; i++) {
        const struct ddp_shape *s = &c->buf[i].shape;

        if (c->buf[i].per_sample && s->c > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%dx%dx%d",
                                     used ? " " : "", s->h, s->w, s->c);
    }
    if (!used && c->buffers > 0)
        snprintf(text, size, "%d", c->buf[0].shape.c);
    if (ddp__op_is(c->op, DDP__IS_CONV) && used < size)
        used += (size_t)snprintf(text + used, size - used, " by %dx%d/%d",
                                 c->conv.kh, c->conv.kw, c->conv.sh);
    if (c->sum && used < size)
        used += (size_t)snprintf(text + used, size - used, ", added");
    if (ddp__op_is(c->op, DDP__IS_CONV) && c->conv.groups > 1 && used < size)
        snprintf(text + used, size - used, ", %d groups", c->conv.groups);
}

const char *ddp__call_type(const struct ddp__call *c)
{
    static const char *const name[] = {
        [DDP_F32] = "f32", [DDP_BF16] = "bf16", [DDP_F16] = "f16"};
    enum ddp_dtype type = c->buf[0].type;

    return type < sizeof(name) / sizeof(name[0]) && name[type] ? name[type]
                                                               : "";
}

/* ---- types --------------------------------------------------------------- */

/* Of what types an operand may be. */
static const unsigned types_of[DDP__OPERAND_KINDS] = {
    [DDP__KIND_ACT] = DDP__TYPES(F32) | DDP__TYPES(BF16) | DDP__TYPES(F16),
    [DDP__KIND_SLOPE] =
        DDP__TYPES(F32) | DDP__TYPES(BF16) | DDP__TYPES(F16) | DDP__TYPES(U8),
    [DDP__KIND_LOGIT] = DDP__TYPES(F32) | DDP__TYPES(BF16) | DDP__TYPES(F16),
    [DDP__KIND_SAMPLE] = DDP__TYPES(U8) | DDP__TYPES(F32),
    [DDP__KIND_INDEX] = DDP__TYPES(U8) | DDP__TYPES(I32),
    [DDP__KIND_IDS] = DDP__TYPES(I32) | DDP__TYPES(I64),
    [DDP__KIND_TARGET] = DDP__TYPES(I32) | DDP__TYPES(F32),
    [DDP__KIND_PARAM] = DDP__TYPES(F32),
    [DDP__KIND_GRAD] = DDP__TYPES(F32),
    [DDP__KIND_U8] = DDP__TYPES(U8),
    [DDP__KIND_F32] = DDP__TYPES(F32),
    [DDP__KIND_F64] = DDP__TYPES(F64),
};

int ddp__call_check(const struct ddp__call *c)
{
    const struct ddp__signature *s = ddp__call_signature(c);

    for (int i = 0; i < s->operands; i++) {
        const struct ddp__operand *o = &s->operand[i];

        if (!ddp__call_has(c, i) && !(o->use & DDP__OPTIONAL))
            return ddp__fail(DDP_EINVAL, "%s: operand %s is missing", s->name,
                             o->name);
        if (ddp__call_has(c, i) && !(types_of[o->kind] >> c->buf[i].type & 1))
            return ddp__fail(DDP_EINVAL,
                             "%s: operand %s has a type that the "
                             "operation does not take",
                             s->name, o->name);
    }
    return 0;
}

int ddp__call_one_type(const struct ddp__call *c, unsigned types)
{
    const struct ddp__signature *s = &ddp__signature[c->op];
    int first = -1;

    for (int i = 0; i < s->operands; i++) {
        enum ddp__operand_kind kind = s->operand[i].kind;
        enum ddp_dtype type = c->buf[i].type;
        bool shared = kind == DDP__KIND_ACT ||
                      (kind == DDP__KIND_SLOPE && type != DDP_U8);

        if (!ddp__call_has(c, i) || !(shared || kind == DDP__KIND_LOGIT))
            continue;
        if (!(types >> type & 1) ||
            (shared && first >= 0 && type != c->buf[first].type))
            return ddp__fail(DDP_ENODEV,
                             "%s: activations of several types, or of one that "
                             "this device does not compute in",
                             s->name);
        if (shared && first < 0)
            first = i;
    }
    return 0;
}

/* ---- convolutions and dense layers --------------------------------------- */

struct ddp__xwy ddp__op_xwy(enum ddp__op op)
{
    if (ddp__op_is(op, DDP__IS_BWD_X))
        return (struct ddp__xwy){DDP__CONV_BWD_X_DX, DDP__CONV_BWD_X_W,
                                 DDP__CONV_BWD_X_DY};
    if (ddp__op_is(op, DDP__IS_BWD_W))
        return (struct ddp__xwy){DDP__CONV_BWD_W_X, DDP__CONV_BWD_W_G,
                                 DDP__CONV_BWD_W_DY};
    return (struct ddp__xwy){DDP__CONV_FWD_X, DDP__CONV_FWD_W, DDP__CONV_FWD_Y};
}

struct ddp__bn_spread ddp__bn_spread(const struct ddp__call *c, float stat)
{
    struct ddp__bn_spread s = {.var = stat, .inv = stat};

    if (c->bn.inverse)
        s.var = fmax(0, 1 / (s.inv * s.inv) - c->bn.eps);
    else
        s.inv = 1 / sqrt(s.var + c->bn.eps);
    return s;
}

void ddp__bn_moments(const double *sum, size_t channels, size_t i, float *stat)
{
    double m = sum[2 * channels], mean = sum[i] / m;
    double var = sum[channels + i] / m - mean * mean;

    stat[i] = (float)mean;
    stat[channels + i] = (float)(var > 0 || var != var ? var : 0);
}
