/* ops.c - the table of operations, and what follows from it
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

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
#undef O

int ddp__op_operand(enum ddp__op op, enum ddp__use use)
{
    const struct ddp__signature *s = &ddp__signature[op];

    for (int i = 0; i < s->operands; i++)
        if (s->operand[i].use & use)
            return i;
    return -1;
}

enum ddp_access ddp__op_access(enum ddp__op op, int i, bool first)
{
    unsigned use = ddp__signature[op].operand[i].use;

    if (use & DDP__COLLECT)
        return first ? DDP_WRITE : DDP_UPDATE;
    if (!(use & DDP__WRITE))
        return DDP_READ;
    return use & DDP__READ ? DDP_UPDATE : DDP_WRITE;
}

/* Convolutions and dense layers have the same operands. */
#define SAME(pass, name)                                                       \
    _Static_assert((int)DDP__CONV_##pass##_##name ==                           \
                       (int)DDP__DENSE_##pass##_##name,                        \
                   "operands of " #pass)
SAME(FWD, X);
SAME(FWD, W);
SAME(FWD, Y);
SAME(BWD_X, DX);
SAME(BWD_X, W);
SAME(BWD_X, DY);
SAME(BWD_W, X);
SAME(BWD_W, G);
SAME(BWD_W, DY);

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
