# SPDX-License-Identifier: LGPL-2.1-or-later
# apps/local.mk - the programs, on ddp.h only; built in bin/

# Nothing of lib/ but the installed headers, and nothing of codelets/.
APPS_CPPFLAGS = -I$(top_srcdir)/apps -I$(top_srcdir)/lib $(JPEG_CFLAGS) \
    $(JANSSON_CFLAGS)

include %D%/common/local.mk
include %D%/bench/local.mk
include %D%/imagenet/local.mk
include %D%/predict/local.mk

bin_PROGRAMS += bin/ddp-iris
bin_ddp_iris_SOURCES = \
    %D%/iris.c
bin_ddp_iris_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_iris_LDADD = libddp.la

# What the smallest program is, and what it learns from.
dist_examples_DATA += %D%/iris.c %D%/iris.csv
