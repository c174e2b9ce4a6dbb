# codelets/cpu/wino/local.mk - Winograd's convolutions of CPU workers, in all passes
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/wino.c \
    %D%/wino.h \
    %D%/wino_f37.h \
    %D%/wino_f43.h \
    %D%/wino_forward.c \
    %D%/wino_forward.h \
    %D%/wino_kind.c \
    %D%/wino_kind.h \
    %D%/wino_lanes.c \
    %D%/wino_lanes.h \
    %D%/wino_line.c \
    %D%/wino_line.h \
    %D%/wino_line_loops.h \
    %D%/wino_line_v8.c \
    %D%/wino_line_v8.h \
    %D%/wino_square.c \
    %D%/wino_square.h \
    %D%/wino_square_loops.h \
    %D%/wino_square_v8.c \
    %D%/wino_square_v8.h \
    %D%/wino_taps.h \
    %D%/wino_tile.c \
    %D%/wino_tile.h \
    %D%/wino_value.h \
    %D%/wino_weight.c \
    %D%/wino_weight.h \
    %D%/wino_weight_loops.h
endif
