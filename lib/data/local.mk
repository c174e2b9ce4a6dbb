# lib/data/local.mk - data sets: where samples come from, and in which order
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/arrays.c \
    %D%/callback.c \
    %D%/cifar.c \
    %D%/cifar.h \
    %D%/class_names.c \
    %D%/class_names.h \
    %D%/classes.c \
    %D%/concat.c \
    %D%/csv.c \
    %D%/dataset.c \
    %D%/dataset.h \
    %D%/files.c \
    %D%/files.h \
    %D%/gunzip.c \
    %D%/gunzip.h \
    %D%/identity.c \
    %D%/identity.h \
    %D%/image_folder.c \
    %D%/image_folder.h \
    %D%/imagenet.c \
    %D%/list.c \
    %D%/map.c \
    %D%/mnist.c \
    %D%/mnist.h \
    %D%/named.c \
    %D%/open.c \
    %D%/order.c \
    %D%/order.h \
    %D%/pack.c \
    %D%/part.c \
    %D%/pixels.c \
    %D%/pixels.h \
    %D%/shards.c \
    %D%/shards.h \
    %D%/stream.c \
    %D%/stream.h \
    %D%/subset.c \
    %D%/subset.h \
    %D%/tar_index.c \
    %D%/tar_index.h \
    %D%/tar_scan.c \
    %D%/tar_scan.h \
    %D%/tars.c \
    %D%/tars.h \
    %D%/unpack.c \
    %D%/webdataset.c
