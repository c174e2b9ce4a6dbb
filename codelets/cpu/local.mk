# codelets/cpu/local.mk - CPU workers: our own loops, and oneDNN where it is
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/act.c \
    %D%/act.h \
    %D%/act_v16.h \
    %D%/backend.c \
    %D%/backend.h \
    %D%/bn.c \
    %D%/bn.h \
    %D%/bn_bwd.c \
    %D%/bn_bwd_loops.c \
    %D%/bn_bwd_loops.h \
    %D%/cpu.h \
    %D%/dropout.c \
    %D%/input.c \
    %D%/join.c \
    %D%/loss.c \
    %D%/mask.c \
    %D%/mask.h \
    %D%/optim.c \
    %D%/pool.c \
    %D%/pool.h \
    %D%/pool_bwd.c \
    %D%/pool_bwd_v16.c \
    %D%/pool_bwd_v16.h \
    %D%/pool_unit.h \
    %D%/pool_v16.c \
    %D%/pool_v16.h \
    %D%/rules.c \
    %D%/rules.h \
    %D%/rules_layerwise.c \
    %D%/store.c \
    %D%/store.h \
    %D%/thread.c \
    %D%/thread.h \
    %D%/vmath.h

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/amx.c \
    %D%/amx.h \
    %D%/amx_fill.c \
    %D%/amx_fill.h \
    %D%/amx_run.h \
    %D%/conv.c \
    %D%/conv.h \
    %D%/conv_norm.c \
    %D%/depthwise.c \
    %D%/depthwise.h \
    %D%/depthwise_infer.c \
    %D%/depthwise_wgrad.c \
    %D%/depthwise_wgrad.h \
    %D%/infer.c \
    %D%/infer.h \
    %D%/kept.c \
    %D%/kept.h \
    %D%/onednn.c \
    %D%/onednn.h \
    %D%/onednn_pd.c \
    %D%/onednn_pd.h \
    %D%/onednn_room.c \
    %D%/onednn_room.h \
    %D%/pack.c \
    %D%/pack.h \
    %D%/patch.c \
    %D%/patch.h \
    %D%/plan.c \
    %D%/plan.h \
    %D%/pointwise.c \
    %D%/rows.c \
    %D%/rows.h \
    %D%/shared_pack.c \
    %D%/shared_pack.h \
    %D%/skinny.c \
    %D%/skinny.h \
    %D%/turn16.h \
    %D%/wgrad.c \
    %D%/wgrad.h \
    %D%/wgrad_panel.c \
    %D%/wgrad_panel.h \
    %D%/wino.c \
    %D%/wino.h \
    %D%/wino_gemm.c \
    %D%/wino_gemm.h \
    %D%/wino_round.c \
    %D%/wino_round.h \
    %D%/wino_tile.c \
    %D%/wino_tile.h \
    %D%/wino_unit.h \
    %D%/wino_v16.h \
    %D%/wino_weight.c \
    %D%/wino_weight.h
endif
