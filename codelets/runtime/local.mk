# codelets/runtime/local.mk - StarPU: contexts, tasks, buffers, the scheduling policy, devices
# SPDX-License-Identifier: LGPL-2.1-or-later

# The devices of a build against another StarPU are other ones.
libddp_core_la_SOURCES += \
    %D%/device_cpu.c \
    %D%/device_list.c \
    %D%/device_list.h \
    %D%/device_rows.h

CODELETS_SOURCES += \
    %D%/ahead.c \
    %D%/ahead.h \
    %D%/alarm.c \
    %D%/alarm.h \
    %D%/borrowed.c \
    %D%/borrowed.h \
    %D%/buffer.c \
    %D%/buffer.h \
    %D%/claims.c \
    %D%/claims.h \
    %D%/context.c \
    %D%/context.h \
    %D%/copies.c \
    %D%/copies.h \
    %D%/cost.c \
    %D%/cost.h \
    %D%/describe.c \
    %D%/describe.h \
    %D%/devices.c \
    %D%/devices.h \
    %D%/direct.c \
    %D%/direct.h \
    %D%/env_names.c \
    %D%/env_names.h \
    %D%/extents.c \
    %D%/extents.h \
    %D%/gpu_speed.c \
    %D%/gpu_speed.h \
    %D%/hello.c \
    %D%/hello.h \
    %D%/helpers.c \
    %D%/helpers.h \
    %D%/launch.c \
    %D%/launch.h \
    %D%/lock.c \
    %D%/lock.h \
    %D%/lost.c \
    %D%/lost.h \
    %D%/lost_report.c \
    %D%/missing.c \
    %D%/missing.h \
    %D%/net.c \
    %D%/net.h \
    %D%/nodes.c \
    %D%/nodes.h \
    %D%/peers.c \
    %D%/peers.h \
    %D%/owners.c \
    %D%/owners.h \
    %D%/place.c \
    %D%/place.h \
    %D%/profile.c \
    %D%/profile.h \
    %D%/rest.c \
    %D%/rest.h \
    %D%/scheduler.c \
    %D%/scheduler.h \
    %D%/scheduler_names.c \
    %D%/scheduler_names.h \
    %D%/rates.c \
    %D%/rates.h \
    %D%/share.c \
    %D%/share.h \
    %D%/starpu_env.c \
    %D%/starpu_env.h \
    %D%/starpu_home.c \
    %D%/starpu_home.h \
    %D%/status.c \
    %D%/status.h \
    %D%/task.c \
    %D%/task.h \
    %D%/task_group.c \
    %D%/task_group.h \
    %D%/task_queue.h \
    %D%/task_run.c \
    %D%/task_run.h \
    %D%/threads.c \
    %D%/threads.h \
    %D%/topology.c \
    %D%/topology.h \
    %D%/trace.c \
    %D%/trace.h \
    %D%/trace_write.c \
    %D%/trace_write.h \
    %D%/undo.c \
    %D%/undo.h
