# codelets/cpu/conv/local.mk - how a convolution or dense layer is computed: its plan
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/bias.c \
    %D%/bias.h \
    %D%/conv.c \
    %D%/conv.h \
    %D%/conv_norm.c \
    %D%/conv_norm.h \
    %D%/conv_onednn.c \
    %D%/conv_onednn.h \
    %D%/conv_weights.c \
    %D%/conv_weights.h \
    %D%/gradient.c \
    %D%/gradient.h \
    %D%/infer.c \
    %D%/infer.h \
    %D%/kept.c \
    %D%/kept.h \
    %D%/norm_conv.c \
    %D%/norm_conv.h \
    %D%/pack.c \
    %D%/pack.h \
    %D%/packed.c \
    %D%/packed.h \
    %D%/plan.c \
    %D%/plan.h \
    %D%/plan_names.c \
    %D%/plan_names.h \
    %D%/plan_shape.c \
    %D%/plan_shape.h \
    %D%/plan_variant.c \
    %D%/plan_variant.h \
    %D%/rows.c \
    %D%/rows.h \
    %D%/shape.h \
    %D%/shared_pack.c \
    %D%/shared_pack.h \
    %D%/way.c \
    %D%/way.h
endif
