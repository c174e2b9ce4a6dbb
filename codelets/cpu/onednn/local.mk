# codelets/cpu/onednn/local.mk - what the other folders need of oneDNN
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/onednn.c \
    %D%/onednn.h \
    %D%/onednn_blocks.c \
    %D%/onednn_blocks.h \
    %D%/onednn_execute.c \
    %D%/onednn_execute.h \
    %D%/onednn_library.c \
    %D%/onednn_library.h \
    %D%/onednn_md.c \
    %D%/onednn_md.h \
    %D%/onednn_pd.c \
    %D%/onednn_pd.h \
    %D%/onednn_room.c \
    %D%/onednn_room.h \
    %D%/onednn_wrong.c \
    %D%/onednn_wrong.h
endif
