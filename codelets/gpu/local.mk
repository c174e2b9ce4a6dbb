# codelets/gpu/local.mk - bodies of kernels that GPUs of any vendor can run
# SPDX-License-Identifier: LGPL-2.1-or-later

# What kernels do, for nvcc and a C compiler.
GPU_BODIES = \
    %D%/after.h \
    %D%/arith.h \
    %D%/columns.h \
    %D%/elementwise.h \
    %D%/kernels.h \
    %D%/losses.h \
    %D%/norm.h \
    %D%/norm_step.h \
    %D%/pooling.h \
    %D%/rules.h \
    %D%/updates.h
