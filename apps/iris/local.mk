# apps/iris/local.mk - the smallest whole program and what it learns from, which
# are also installed as an example
# SPDX-License-Identifier: LGPL-2.1-or-later

bin_PROGRAMS += bin/ddp-iris
bin_ddp_iris_SOURCES = \
    %D%/iris.c
bin_ddp_iris_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_iris_LDADD = libddp.la

dist_examples_DATA += %D%/iris.c %D%/iris.csv
