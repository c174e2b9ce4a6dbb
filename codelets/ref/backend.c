/* backend.c - the table of the ref device
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"
#include "backend.h"
#include "ref.h"

static const char *describe_backend(void)
{
    return "plain C, bf16, f16";
}

static bool computes_type(enum ddp_dtype type)
{
    return type == DDP_BF16 || type == DDP_F16;
}

/* HOST and USER are the runtime's own. */
const struct ddp__backend ddp__ref = {
    .name = "ref",
    .describe = describe_backend,
    .computes = computes_type,
    .kernel =
        {
            [DDP__OP_INPUT_U8] = ddp__ref_input_u8,
            [DDP__OP_INPUT_F32] = ddp__ref_input_f32,
            [DDP__OP_CONV_FWD] = ddp__ref_conv_fwd,
            [DDP__OP_CONV_BWD_X] = ddp__ref_conv_bwd_x,
            [DDP__OP_CONV_BWD_W] = ddp__ref_conv_bwd_w,
            [DDP__OP_CONV_NORM] = ddp__ref_conv_norm,
            [DDP__OP_NORM_CONV_FWD] = ddp__ref_norm_conv_fwd,
            [DDP__OP_NORM_CONV_BWD_W] = ddp__ref_norm_conv_bwd_w,
            [DDP__OP_NORM_CONV_BWD_X] = ddp__ref_norm_conv_bwd_x,
            [DDP__OP_DENSE_FWD] = ddp__ref_dense_fwd,
            [DDP__OP_DENSE_BWD_X] = ddp__ref_dense_bwd_x,
            [DDP__OP_DENSE_BWD_W] = ddp__ref_dense_bwd_w,
            [DDP__OP_BN_FWD] = ddp__ref_bn_fwd,
            [DDP__OP_BN_STAT] = ddp__ref_bn_stat,
            [DDP__OP_BN_EVAL] = ddp__ref_bn_eval,
            [DDP__OP_BN_EVAL_BWD] = ddp__ref_bn_eval_bwd,
            [DDP__OP_BN_BWD] = ddp__ref_bn_bwd,
            [DDP__OP_BN_GATED_BWD] = ddp__ref_bn_gated_bwd,
            [DDP__OP_BN_SUM] = ddp__ref_bn_sum,
            [DDP__OP_BN_SYNC] = ddp__ref_bn_sync,
            [DDP__OP_BN_SUM_BWD] = ddp__ref_bn_sum_bwd,
            [DDP__OP_BN_SYNC_BWD] = ddp__ref_bn_sync_bwd,
            [DDP__OP_ACT_FWD] = ddp__ref_act_fwd,
            [DDP__OP_ACT_BWD] = ddp__ref_act_bwd,
            [DDP__OP_ADD] = ddp__ref_add,
            [DDP__OP_ACC] = ddp__ref_acc,
            [DDP__OP_MAX_POOL_FWD] = ddp__ref_max_pool_fwd,
            [DDP__OP_MAX_POOL_BWD] = ddp__ref_max_pool_bwd,
            [DDP__OP_MEAN_POOL_FWD] = ddp__ref_mean_pool_fwd,
            [DDP__OP_MEAN_POOL_BWD] = ddp__ref_mean_pool_bwd,
            [DDP__OP_CONCAT] = ddp__ref_concat,
            [DDP__OP_SPLIT] = ddp__ref_split,
            [DDP__OP_SCALE_FWD] = ddp__ref_scale_fwd,
            [DDP__OP_SCALE_BWD] = ddp__ref_scale_bwd,
            [DDP__OP_DROPOUT] = ddp__ref_dropout,
            [DDP__OP_LOSS] = ddp__ref_loss,
            [DDP__OP_MERGE] = ddp__ref_merge,
            [DDP__OP_MERGE_STATS] = ddp__ref_merge_stats,
            [DDP__OP_SQNORM] = ddp__ref_sqnorm,
            [DDP__OP_OPTIM] = ddp__ref_optim,
            [DDP__OP_EMA] = ddp__ref_ema,
            [DDP__OP_KEEP] = ddp__ref_keep,
        },
};
