/* ops_table.c - the operations and their operands, as tables
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "ops_table.h"

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
const struct ddp__signature ddp__host_signature[DDP__HOST_COUNT] = {
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
SAME(CONV_FWD, NORM_CONV_FWD, X);
SAME(CONV_FWD, NORM_CONV_FWD, W);
SAME(CONV_FWD, NORM_CONV_FWD, Y);
SAME(CONV_BWD_W, NORM_CONV_BWD_W, X);
SAME(CONV_BWD_W, NORM_CONV_BWD_W, G);
SAME(CONV_BWD_W, NORM_CONV_BWD_W, DY);
SAME(NORM_CONV_FWD, NORM_CONV_BWD_W, BN);
SAME(NORM_CONV_FWD, NORM_CONV_BWD_W, STAT);
SAME(CONV_BWD_X, NORM_CONV_BWD_X, DX);
SAME(CONV_BWD_X, NORM_CONV_BWD_X, W);
SAME(CONV_BWD_X, NORM_CONV_BWD_X, DY);
SAME(CONV_BWD_X, DENSE_BWD_X, DX);
SAME(CONV_BWD_X, DENSE_BWD_X, W);
SAME(CONV_BWD_X, DENSE_BWD_X, DY);
SAME(CONV_BWD_W, DENSE_BWD_W, X);
SAME(CONV_BWD_W, DENSE_BWD_W, G);
SAME(CONV_BWD_W, DENSE_BWD_W, DY);
SAME(BN_FWD, BN_BWD, X);
SAME(BN_FWD, BN_STAT, X);
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
