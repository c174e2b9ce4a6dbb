# lib/graph/local.mk - a chain as a list of operations on values, cut into segments
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/defer.c \
    %D%/defer.h \
    %D%/fold.c \
    %D%/fold.h \
    %D%/graph.c \
    %D%/graph.h \
    %D%/inspect.c \
    %D%/layer.c \
    %D%/layer.h \
    %D%/node.c \
    %D%/node.h \
    %D%/operations.c \
    %D%/pad.c \
    %D%/pad.h \
    %D%/param_init.c \
    %D%/param_init.h \
    %D%/param_values.c \
    %D%/param_values.h \
    %D%/params.c \
    %D%/params.h \
    %D%/params_bind.c \
    %D%/params_bind.h \
    %D%/pass.c \
    %D%/pass.h \
    %D%/segment.c \
    %D%/segment.h \
    %D%/teach.c \
    %D%/teach.h \
    %D%/uses.c \
    %D%/uses.h \
    %D%/value.c \
    %D%/value.h
