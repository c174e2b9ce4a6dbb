# examples/local.mk - programs of a page, which are installed as source;
# tests/app_examples.sh and tests/app_loops.sh build and run them
# SPDX-License-Identifier: LGPL-2.1-or-later

examplesdir = $(docdir)/examples
dist_examples_DATA = \
    apps/iris/iris.c \
    apps/iris/iris.csv \
    %D%/README.md \
    %D%/callback.c \
    %D%/dagger.c \
    %D%/ddp.py \
    %D%/distill.c \
    %D%/finetune.c \
    %D%/flowers.c \
    %D%/gradient.c \
    %D%/iris.py \
    %D%/layer.c \
    %D%/loop.c \
    %D%/loss.c \
    %D%/mnist.c \
    %D%/optimizer.c \
    %D%/pullback.c \
    %D%/raii.cc \
    %D%/serve.c \
    %D%/sink.c \
    %D%/square.c \
    %D%/stream.c
