# apps/imagenet/local.mk - the program imagenet: networks on images, a file for
# each command and for what several of them need
# SPDX-License-Identifier: LGPL-2.1-or-later

bin_PROGRAMS += bin/imagenet
bin_imagenet_SOURCES = \
    %D%/answer.c \
    %D%/checkpoint.c \
    %D%/classes.c \
    %D%/convert.c \
    %D%/data.c \
    %D%/eval.c \
    %D%/export.c \
    %D%/imagenet.h \
    %D%/infer.c \
    %D%/inspect.c \
    %D%/jpeg.c \
    %D%/jpeg.h \
    %D%/main.c \
    %D%/names.c \
    %D%/options.c \
    %D%/picture.c \
    %D%/picture.h \
    %D%/plan.c \
    %D%/progress.c \
    %D%/progress.h \
    %D%/setup.c \
    %D%/synth.c \
    %D%/train.c \
    %D%/weights.c
bin_imagenet_CPPFLAGS = $(APPS_CPPFLAGS)
bin_imagenet_LDADD = $(APPS_COMMON) libddp.la $(JPEG_LIBS) $(JANSSON_LIBS)
