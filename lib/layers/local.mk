# lib/layers/local.mk - one kind of layer a file: its shape, parameters, forward, backward
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/act.c \
    %D%/act.h \
    %D%/aux.c \
    %D%/batch_norm.c \
    %D%/batch_norm.h \
    %D%/chain.c \
    %D%/channel_scale.c \
    %D%/conv.c \
    %D%/defaults.h \
    %D%/dense.c \
    %D%/dropout.c \
    %D%/flatten.c \
    %D%/parallel.c \
    %D%/pool.c \
    %D%/skip.c
