# codelets/local.mk - what a device does: the border, and a folder per device
# SPDX-License-Identifier: LGPL-2.1-or-later

CODELETS_SOURCES += \
    %D%/device.h \
    %D%/ops.c \
    %D%/ops.h \
    %D%/ops_backend.h \
    %D%/ops_loss.c \
    %D%/ops_loss.h \
    %D%/ops_norm.c \
    %D%/ops_norm.h \
    %D%/ops_optim.c \
    %D%/ops_optim.h \
    %D%/ops_table.c \
    %D%/ops_table.h \
    %D%/ops_times.c \
    %D%/ops_times.h \
    %D%/wire.h

libddp_core_la_SOURCES += $(CODELETS_SOURCES)

include %D%/runtime/local.mk
include %D%/ref/local.mk
include %D%/cpu/local.mk
include %D%/gpu/local.mk
include %D%/cuda/kernels.mk
include %D%/cuda/local.mk
include %D%/mpi/local.mk
include %D%/sim/local.mk
