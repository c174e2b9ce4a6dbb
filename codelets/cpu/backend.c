/* backend.c - the table of CPU workers: libddp's loops and oneDNN's
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include <stdio.h>

#include "backend.h"
#include "base/error.h"
#include "cpu.h"
#include "store.h"
#include "thread.h"
#ifdef HAVE_ONEDNN
#include "cpu/conv/conv.h"
#include "cpu/conv/kept.h"
#include "cpu/conv/norm_conv.h"
#include "cpu/conv/plan.h"
#include "cpu/onednn/onednn_library.h"
#include "cpu/wino/wino_kind.h"
#include "isa.h"
#endif

/* bf16 pays where the processor multiplies it; else it is emulated. */
static bool fast_bf16(void)
{
#if defined(HAVE_ONEDNN) && defined(DDP__X86)
    return ddp__dnn_bf16();
#else
    return false;
#endif
}

static int cpu_init(const struct ddp__machine *m)
{
    ddp__store_init(m);
    return 0;
}

static bool cpu_computes(enum ddp_dtype type)
{
    return type == DDP_BF16 && fast_bf16();
}

static void cpu_fini(void)
{
    ddp__scratch_free();
}

/* The clone of a loop that this processor runs (DDP__CLONES). */
static const char *clone_name(void)
{
#if DDP__CLONED
    if (__builtin_cpu_supports("x86-64-v4"))
        return "AVX-512";
    if (__builtin_cpu_supports("x86-64-v3"))
        return "AVX2";
#endif
    return "as compiled";
}

/* With all that selects kernels: results of other ones may differ in the last
 * bits. */
static const char *cpu_describe(void)
{
    static char text[96];

#ifdef HAVE_ONEDNN
    const char *bf16 = ddp__i16_here() ? ", bf16 as integers" : ", bf16";

    snprintf(text, sizeof(text), "%s %s, loops %s%s%s", ddp__dnn_version(),
             ddp__dnn_isa(), clone_name(), fast_bf16() ? bf16 : "",
             ddp__wino_off() ? ", no Winograd" : "");
#else
    snprintf(text, sizeof(text), "plain C, loops %s", clone_name());
#endif
    return text;
}

static int cpu_prepare(const struct ddp__call *c, void **plan)
{
    int rc = ddp__call_one_type(c, DDP__TYPES(F32) | DDP__TYPES(BF16));

    (void)plan;
    if (rc < 0)
        return rc;
    if (ddp__op_is(c->op, DDP__IS_INPUT) &&
        c->buf[DDP__INPUT_U8_X].shape.c != c->buf[DDP__INPUT_U8_Y].shape.c)
        return ddp__fail(DDP_ENODEV, "input with channels added");
    if (c->op == DDP__OP_LOSS && c->loss.kind == DDP_CUSTOM_LOSS)
        return ddp__fail(DDP_ENODEV, "a custom loss");
    if (c->op == DDP__OP_OPTIM && c->optim.o.kind == DDP_CUSTOM_OPTIMIZER)
        return ddp__fail(DDP_ENODEV, "a custom optimizer");
#ifdef HAVE_ONEDNN
    if (ddp__op_is(c->op, DDP__IS_CONV | DDP__IS_DENSE))
        return ddp__cpu_conv_prepare(c, plan);
#endif
    return 0;
}

const struct ddp__backend ddp__cpu = {
    .name = "cpu",
    .init = cpu_init,
    .fini = cpu_fini,
    .describe = cpu_describe,
    .computes = cpu_computes,
    .prepare = cpu_prepare,
#ifdef HAVE_ONEDNN
    .release = ddp__cpu_conv_release,
    .slices = ddp__avx512_here,
    .normalises = ddp__cpu_conv_normalises,
    .kept = ddp__cpu_conv_kept,
    .common = ddp__cpu_conv_common,
    .share = ddp__cpu_conv_share,
    .room = ddp__cpu_conv_room,
#endif
    .kernel =
        {
            [DDP__OP_INPUT_U8] = ddp__cpu_input_u8,
            [DDP__OP_INPUT_F32] = ddp__cpu_input_f32,
#ifdef HAVE_ONEDNN
            [DDP__OP_CONV_FWD] = ddp__cpu_conv_run,
            [DDP__OP_CONV_BWD_X] = ddp__cpu_conv_run,
            [DDP__OP_CONV_BWD_W] = ddp__cpu_conv_run,
            [DDP__OP_CONV_NORM] = ddp__cpu_conv_norm,
            [DDP__OP_NORM_CONV_FWD] = ddp__cpu_norm_conv_fwd,
            [DDP__OP_NORM_CONV_BWD_W] = ddp__cpu_norm_conv_bwd_w,
            [DDP__OP_NORM_CONV_BWD_X] = ddp__cpu_norm_conv_bwd_x,
            [DDP__OP_DENSE_FWD] = ddp__cpu_conv_run,
            [DDP__OP_DENSE_BWD_X] = ddp__cpu_conv_run,
            [DDP__OP_DENSE_BWD_W] = ddp__cpu_conv_run,
#endif
            [DDP__OP_BN_FWD] = ddp__cpu_bn_fwd,
            [DDP__OP_BN_STAT] = ddp__cpu_bn_stat,
            [DDP__OP_BN_EVAL] = ddp__cpu_bn_eval,
            [DDP__OP_BN_EVAL_BWD] = ddp__cpu_bn_eval_bwd,
            [DDP__OP_BN_BWD] = ddp__cpu_bn_bwd,
            [DDP__OP_BN_GATED_BWD] = ddp__cpu_bn_gated_bwd,
            [DDP__OP_BN_SUM] = ddp__cpu_bn_sum,
            [DDP__OP_BN_SYNC] = ddp__cpu_bn_sync,
            [DDP__OP_BN_SUM_BWD] = ddp__cpu_bn_sum_bwd,
            [DDP__OP_BN_SYNC_BWD] = ddp__cpu_bn_sync_bwd,
            [DDP__OP_ACT_FWD] = ddp__cpu_act_fwd,
            [DDP__OP_ACT_BWD] = ddp__cpu_act_bwd,
            [DDP__OP_ADD] = ddp__cpu_add,
            [DDP__OP_ACC] = ddp__cpu_acc,
            [DDP__OP_MAX_POOL_FWD] = ddp__cpu_max_pool_fwd,
            [DDP__OP_MAX_POOL_BWD] = ddp__cpu_max_pool_bwd,
            [DDP__OP_MEAN_POOL_FWD] = ddp__cpu_mean_pool_fwd,
            [DDP__OP_MEAN_POOL_BWD] = ddp__cpu_mean_pool_bwd,
            [DDP__OP_CONCAT] = ddp__cpu_concat,
            [DDP__OP_SPLIT] = ddp__cpu_split,
            [DDP__OP_SCALE_FWD] = ddp__cpu_scale_fwd,
            [DDP__OP_SCALE_BWD] = ddp__cpu_scale_bwd,
            [DDP__OP_DROPOUT] = ddp__cpu_dropout,
            [DDP__OP_LOSS] = ddp__cpu_loss,
            [DDP__OP_MERGE] = ddp__cpu_merge,
            [DDP__OP_MERGE_STATS] = ddp__cpu_merge_stats,
            [DDP__OP_SQNORM] = ddp__cpu_sqnorm,
            [DDP__OP_OPTIM] = ddp__cpu_optim,
            [DDP__OP_EMA] = ddp__cpu_ema,
        },
};
