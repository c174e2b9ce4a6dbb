# codelets/cpu/local.mk - CPU workers: our own loops, and oneDNN where it is
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/backend.c \
    %D%/backend.h \
    %D%/cpu.h \
    %D%/input.c \
    %D%/isa.c \
    %D%/isa.h \
    %D%/loss.c \
    %D%/loss_rules.c \
    %D%/loss_rules.h \
    %D%/optim.c \
    %D%/rules.c \
    %D%/rules.h \
    %D%/rules_layerwise.c \
    %D%/store.c \
    %D%/store.h \
    %D%/thread.c \
    %D%/thread.h

include %D%/amx/local.mk
include %D%/conv/local.mk
include %D%/depthwise/local.mk
include %D%/elementwise/local.mk
include %D%/norm/local.mk
include %D%/onednn/local.mk
include %D%/pool/local.mk
include %D%/product/local.mk
include %D%/vector/local.mk
include %D%/wino/local.mk
