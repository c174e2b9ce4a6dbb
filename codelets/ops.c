/* ops.c - what a call has by its operation
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "ops.h"

const struct ddp__signature *ddp__call_signature(const struct ddp__call *c)
{
    return c->op == DDP__OP_HOST ? &ddp__host_signature[c->host.host]
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

static void move_operand(const struct ddp__task *from, int i,
                         struct ddp__call *c, struct ddp__task *t, int to)
{
    c->buf[to] = from->call->buf[i];
    t->data[to] = from->data[i];
}

struct ddp__task ddp__norm_of_conv(const struct ddp__task *t, void *dy,
                                   struct ddp__call *c)
{
    const struct ddp__conv *k = &t->call->conv;
    struct ddp__task norm = {.call = c, .n = t->n, .accumulate = t->accumulate};

    *c = (struct ddp__call){
        .op = DDP__OP_BN_BWD,
        .cap = t->call->cap,
        .buffers = DDP__BN_BWD_DX + 1,
        .bn = {.eps = k->eps, .act = k->norm_act, .from_x = true}};
    move_operand(t, DDP__NORM_CONV_BWD_X_X, c, &norm, DDP__BN_BWD_X);
    move_operand(t, DDP__NORM_CONV_BWD_X_X, c, &norm, DDP__BN_BWD_SLOPE);
    move_operand(t, DDP__NORM_CONV_BWD_X_DX, c, &norm, DDP__BN_BWD_DY);
    move_operand(t, DDP__NORM_CONV_BWD_X_BN, c, &norm, DDP__BN_BWD_W);
    move_operand(t, DDP__NORM_CONV_BWD_X_STAT, c, &norm, DDP__BN_BWD_STAT);
    move_operand(t, DDP__NORM_CONV_BWD_X_BN_G, c, &norm, DDP__BN_BWD_G);
    move_operand(t, DDP__NORM_CONV_BWD_X_DX, c, &norm, DDP__BN_BWD_DX);
    c->buf[DDP__BN_BWD_DY].type = DDP_F32;
    norm.data[DDP__BN_BWD_DY] = dy;
    return norm;
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

/* ---- batch norms --------------------------------------------------------- */

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
