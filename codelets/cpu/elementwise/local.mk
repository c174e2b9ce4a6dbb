# codelets/cpu/elementwise/local.mk - activations, sums and what else is done value by value
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/act.c \
    %D%/act.h \
    %D%/act_units.c \
    %D%/act_units.h \
    %D%/act_v16.h \
    %D%/concat.c \
    %D%/copy_v16.c \
    %D%/copy_v16.h \
    %D%/dropout.c \
    %D%/mask.c \
    %D%/mask.h \
    %D%/scale.c \
    %D%/scale_v16.c \
    %D%/scale_v16.h
