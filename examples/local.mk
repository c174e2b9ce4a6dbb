# examples/local.mk - programs of a page, which are installed as source;
# tests/app_loops.sh builds and runs them
# SPDX-License-Identifier: LGPL-2.1-or-later

examplesdir = $(docdir)/examples
dist_examples_DATA = \
    apps/iris/iris.c \
    apps/iris/iris.csv \
    %D%/README.md \
    %D%/flowers.c \
    %D%/square.c
