# lib/checkpoint/local.mk - the state of a run on disk, and back
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/changes.c \
    %D%/changes.h \
    %D%/compare.c \
    %D%/compare.h \
    %D%/copy.c \
    %D%/copy.h \
    %D%/files.h \
    %D%/json.h \
    %D%/lock.c \
    %D%/lock.h \
    %D%/network.c \
    %D%/network.h \
    %D%/read.c \
    %D%/read.h \
    %D%/settings.c \
    %D%/settings.h \
    %D%/state.c \
    %D%/state.h \
    %D%/write.c \
    %D%/write.h \
    %D%/writer.c \
    %D%/writer.h
