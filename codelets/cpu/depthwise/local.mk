# codelets/cpu/depthwise/local.mk - depthwise convolutions of CPU workers
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/depthwise.c \
    %D%/depthwise.h \
    %D%/depthwise_infer.c \
    %D%/depthwise_norm.c \
    %D%/depthwise_norm.h \
    %D%/depthwise_reader.h \
    %D%/depthwise_row.h \
    %D%/depthwise_train.c \
    %D%/depthwise_train.h \
    %D%/depthwise_v16.c \
    %D%/depthwise_v16.h \
    %D%/depthwise_wgrad.c \
    %D%/depthwise_wgrad_band.c \
    %D%/depthwise_wgrad_band.h \
    %D%/depthwise_wgrad_rows.c
endif
