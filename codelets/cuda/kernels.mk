# codelets/cuda/kernels.mk - kernels of our own, in lists: the module of the
# SPDX-License-Identifier: LGPL-2.1-or-later
# backend is made of all of them, a test of what needs no CUDA

# What fills in and launches kernels.  Needs no header of CUDA.
CUDA_TASKS = \
    %D%/act.c \
    %D%/bn_kernels.c \
    %D%/bn_kernels.h \
    %D%/dropout.c \
    %D%/input.c \
    %D%/join.c \
    %D%/launch.h \
    %D%/loss.c \
    %D%/optim.c \
    %D%/pool.c \
    %D%/prepare.c \
    %D%/prepare.h \
    %D%/rows.c \
    %D%/rows.h \
    %D%/tasks.h

# The kernels.
CUDA_KERNELS = \
    %D%/columns.cu \
    %D%/elementwise.cu \
    %D%/kernel.h \
    %D%/launch.c \
    %D%/losses.cu \
    %D%/norm.cu \
    %D%/pooling.cu \
    %D%/updates.cu

EXTRA_DIST += $(CUDA_KERNELS)
