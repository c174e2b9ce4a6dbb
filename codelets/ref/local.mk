# codelets/ref/local.mk - every op in plain C
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/act.c \
    %D%/act.h \
    %D%/backend.c \
    %D%/backend.h \
    %D%/bn.c \
    %D%/conv.c \
    %D%/dense.c \
    %D%/dropout.c \
    %D%/input.c \
    %D%/join.c \
    %D%/loss.c \
    %D%/merge.c \
    %D%/norm_conv.c \
    %D%/optim.c \
    %D%/optim_rule.c \
    %D%/optim_rule.h \
    %D%/pool.c \
    %D%/ref.h
