# lib/engine/local.mk - a graph run in lanes, step after step: gradients, their reduction, updates
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/collective.c \
    %D%/comm.c \
    %D%/comm.h \
    %D%/comm_room.c \
    %D%/comm_room.h \
    %D%/early.c \
    %D%/early.h \
    %D%/ema.c \
    %D%/ema.h \
    %D%/engine.c \
    %D%/engine.h \
    %D%/exchange.c \
    %D%/exchange.h \
    %D%/footprint.c \
    %D%/footprint.h \
    %D%/gpu_memory.c \
    %D%/gpu_memory.h \
    %D%/lane_buffers.c \
    %D%/lane_buffers.h \
    %D%/lanes.c \
    %D%/lanes.h \
    %D%/loss_scaler.c \
    %D%/loss_scaler.h \
    %D%/optim.c \
    %D%/parts.c \
    %D%/parts.h \
    %D%/ranks.c \
    %D%/ranks.h \
    %D%/reduce.c \
    %D%/reduce.h \
    %D%/replay.c \
    %D%/replay.h \
    %D%/result.c \
    %D%/result.h \
    %D%/shard.c \
    %D%/shard.h \
    %D%/slices.c \
    %D%/slices.h \
    %D%/stage.c \
    %D%/stage.h \
    %D%/step.c \
    %D%/step.h \
    %D%/step_calls.c \
    %D%/step_calls.h \
    %D%/total.c \
    %D%/total.h \
    %D%/update.c \
    %D%/update.h \
    %D%/vector.c \
    %D%/vector.h
