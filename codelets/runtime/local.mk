# codelets/runtime/local.mk - StarPU: contexts, tasks, buffers, the scheduling policy, devices
# SPDX-License-Identifier: LGPL-2.1-or-later

CODELETS_SOURCES += \
    %D%/buffer.c \
    %D%/buffer.h \
    %D%/codelets.h \
    %D%/context.c \
    %D%/context.h \
    %D%/cost.c \
    %D%/devices.c \
    %D%/flow.c \
    %D%/internal.h \
    %D%/scheduler.c \
    %D%/scheduler.h \
    %D%/scheduler_names.c \
    %D%/task.c \
    %D%/task.h \
    %D%/task_queue.h
