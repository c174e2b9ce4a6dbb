# codelets/cpu/amx/local.mk - products of bf16 on AMX tiles
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/amx.c \
    %D%/amx_fill.c \
    %D%/amx_fill.h \
    %D%/amx_pixels.c \
    %D%/amx_pixels.h \
    %D%/amx_run.h \
    %D%/amx_taps.c \
    %D%/amx_tile.h \
    %D%/amx_weight.c \
    %D%/amx_weight.h \
    %D%/amx_wgrad.c \
    %D%/amx_wgrad_panel.c \
    %D%/amx_wgrad_panel.h
endif
