# lib/train/local.mk - training, evaluation and inference on data sets
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/agree.c \
    %D%/agree.h \
    %D%/apply.c \
    %D%/averages.c \
    %D%/checkpoints.c \
    %D%/checkpoints.h \
    %D%/compiled.c \
    %D%/evaluate.c \
    %D%/evaluate.h \
    %D%/events.c \
    %D%/events.h \
    %D%/graph_def.c \
    %D%/graph_def.h \
    %D%/groups.c \
    %D%/groups.h \
    %D%/histogram.c \
    %D%/histogram.h \
    %D%/loader.c \
    %D%/loader.h \
    %D%/log.c \
    %D%/log.h \
    %D%/log_tensorboard.c \
    %D%/log_tensorboard.h \
    %D%/log_wandb.c \
    %D%/log_wandb.h \
    %D%/memory.c \
    %D%/memory.h \
    %D%/own.c \
    %D%/own.h \
    %D%/plateau.c \
    %D%/plateau.h \
    %D%/mix.c \
    %D%/mix.h \
    %D%/pullback.c \
    %D%/resume.c \
    %D%/resume.h \
    %D%/schedule.c \
    %D%/sinks.c \
    %D%/sinks.h \
    %D%/sync.c \
    %D%/tracing.c \
    %D%/tracing.h \
    %D%/train.c \
    %D%/train_config.c \
    %D%/trainer.c \
    %D%/trainer.h \
    %D%/wandb_file.c \
    %D%/wandb_file.h \
    %D%/wandb_items.c \
    %D%/wandb_items.h \
    %D%/wandb_machine.c \
    %D%/wandb_machine.h \
    %D%/wandb_run.c \
    %D%/wandb_run.h
