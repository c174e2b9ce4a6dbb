# lib/weights/local.mk - files of weights: safetensors, and conversion between them
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/convert.c \
    %D%/metadata.c \
    %D%/safetensors.c \
    %D%/safetensors.h \
    %D%/safetensors_header.c \
    %D%/safetensors_header.h \
    %D%/safetensors_index.c \
    %D%/safetensors_index.h \
    %D%/safetensors_write.c \
    %D%/safetensors_write.h \
    %D%/weights.c \
    %D%/weights.h
