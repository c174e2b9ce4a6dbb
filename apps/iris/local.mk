# apps/iris/local.mk - the smallest whole program; examples/local.mk installs it too
# SPDX-License-Identifier: LGPL-2.1-or-later

bin_PROGRAMS += bin/ddp-iris
bin_ddp_iris_SOURCES = \
    %D%/iris.c
bin_ddp_iris_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_iris_LDADD = libddp.la
