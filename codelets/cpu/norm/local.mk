# codelets/cpu/norm/local.mk - batch normalisation of CPU workers
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/bn.c \
    %D%/bn.h \
    %D%/bn_bwd.c \
    %D%/bn_bwd.h \
    %D%/bn_bwd_channels.c \
    %D%/bn_bwd_channels.h \
    %D%/bn_bwd_loops.c \
    %D%/bn_bwd_loops.h \
    %D%/bn_bwd_pass.c \
    %D%/bn_bwd_pass.h \
    %D%/bn_clamp.c \
    %D%/bn_clamp.h \
    %D%/bn_clamp_v16.c \
    %D%/bn_clamp_v16.h \
    %D%/bn_gate.c \
    %D%/bn_gate.h \
    %D%/bn_line_v16.c \
    %D%/bn_line_v16.h \
    %D%/bn_loops.c \
    %D%/bn_loops.h \
    %D%/bn_silu_set.c \
    %D%/bn_silu_set.h \
    %D%/bn_silu_sum_v16.c \
    %D%/bn_silu_sum_v16.h \
    %D%/bn_silu_unit.h \
    %D%/bn_silu_v16.c \
    %D%/bn_silu_v16.h \
    %D%/bn_stat.c \
    %D%/bn_stat.h \
    %D%/bn_sum_v16.c \
    %D%/bn_sum_v16.h \
    %D%/bn_v16.h
