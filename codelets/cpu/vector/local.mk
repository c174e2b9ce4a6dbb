# codelets/cpu/vector/local.mk - values in vectors of AVX-512, and functions of them
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += \
    %D%/turn16.h \
    %D%/unit_v16.h \
    %D%/v16.h \
    %D%/vec16.h \
    %D%/vec8.h \
    %D%/vmath.h
