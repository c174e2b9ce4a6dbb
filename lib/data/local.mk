# lib/data/local.mk - data sets: where samples come from, and in which order
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/callback.c \
    %D%/cifar.c \
    %D%/csv.c \
    %D%/data.h \
    %D%/dataset.c \
    %D%/files.c \
    %D%/image_folder.c \
    %D%/imagenet.c \
    %D%/open.c \
    %D%/order.c
