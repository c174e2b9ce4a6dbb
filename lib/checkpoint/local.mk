# lib/checkpoint/local.mk - the state of a run on disk, and back
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/checkpoint.c \
    %D%/checkpoint.h \
    %D%/read.c \
    %D%/state.c \
    %D%/write.c
