# codelets/cpu/pool/local.mk - pooling of CPU workers
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/pool.c \
    %D%/pool.h \
    %D%/pool_bwd.c \
    %D%/pool_bwd_v16.c \
    %D%/pool_bwd_v16.h \
    %D%/pool_max_v16.c \
    %D%/pool_max_v16.h \
    %D%/pool_mean_v16.c \
    %D%/pool_mean_v16.h \
    %D%/pool_unit.h
