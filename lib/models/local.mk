# lib/models/local.mk - named networks, one family a file
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/airbench.c \
    %D%/alexnet.c \
    %D%/densenet.c \
    %D%/efficientnet.c \
    %D%/googlenet.c \
    %D%/inception_v2.c \
    %D%/inception_v3.c \
    %D%/mlp.c \
    %D%/mobilenet.c \
    %D%/models.c \
    %D%/models.h \
    %D%/parts.c \
    %D%/parts.h \
    %D%/recognise.c \
    %D%/resnet.c \
    %D%/resnet9.c \
    %D%/squeezenet.c \
    %D%/vgg.c
