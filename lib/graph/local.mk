# lib/graph/local.mk - a chain as a list of operations on values, cut into segments
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/build.c \
    %D%/graph.h \
    %D%/inspect.c \
    %D%/inspect.h \
    %D%/layer.c \
    %D%/node.c \
    %D%/pad.c \
    %D%/params.c \
    %D%/segment.c
