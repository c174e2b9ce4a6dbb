# lib/train/local.mk - training, evaluation and inference on data sets
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/evaluate.c \
    %D%/infer.c \
    %D%/loader.c \
    %D%/loader.h \
    %D%/memory.c \
    %D%/optim.c \
    %D%/schedule.c \
    %D%/train.c \
    %D%/trainer.c \
    %D%/trainer.h
