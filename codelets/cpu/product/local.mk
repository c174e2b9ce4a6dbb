# codelets/cpu/product/local.mk - convolutions and dense layers as products of matrices
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/dense.c \
    %D%/dense.h \
    %D%/dense_panel.c \
    %D%/dense_panel.h \
    %D%/dense_wgrad.c \
    %D%/dense_wgrad.h \
    %D%/gemm.c \
    %D%/gemm.h \
    %D%/gemm_block.c \
    %D%/gemm_block.h \
    %D%/gemm_finish.h \
    %D%/gemm_sum.h \
    %D%/gemm_t.c \
    %D%/gemm_t.h \
    %D%/gemm_v8.c \
    %D%/gemm_v8.h \
    %D%/i16_round.c \
    %D%/i16_round.h \
    %D%/i16_unit.h \
    %D%/patch.c \
    %D%/patch.h \
    %D%/patch_copy.c \
    %D%/patch_copy.h \
    %D%/patch_run.c \
    %D%/patch_run.h \
    %D%/pixels.c \
    %D%/pixels.h \
    %D%/pointwise.c \
    %D%/pointwise_block.c \
    %D%/pointwise_block.h \
    %D%/skinny.c \
    %D%/skinny.h \
    %D%/skinny_blocks.c \
    %D%/skinny_blocks.h \
    %D%/skinny_lanes.c \
    %D%/skinny_lanes.h \
    %D%/skinny_loops.h \
    %D%/skinny_product.h \
    %D%/skinny_v16.c \
    %D%/skinny_v16.h \
    %D%/skinny_v8.c \
    %D%/skinny_v8.h \
    %D%/skinny_wgrad.c \
    %D%/skinny_wgrad.h \
    %D%/taps.c \
    %D%/taps.h \
    %D%/taps_pairs.c \
    %D%/taps_pairs.h \
    %D%/taps_tile.c \
    %D%/taps_tile.h \
    %D%/taps_wgrad.c \
    %D%/taps_wgrad.h \
    %D%/thin.c \
    %D%/thin.h \
    %D%/thin_tile.c \
    %D%/thin_tile.h \
    %D%/wgrad.c \
    %D%/wgrad_panel.c \
    %D%/wgrad_panel.h \
    %D%/wgrad_thin.c
endif
