# SPDX-License-Identifier: LGPL-2.1-or-later
# apps/local.mk - the programs, on ddp.h only; built in bin/

# Nothing of lib/ but the installed headers, and nothing of codelets/.
APPS_CPPFLAGS = -I$(top_srcdir)/apps -I$(top_srcdir)/lib $(JPEG_CFLAGS) \
    $(JANSSON_CFLAGS)

include %D%/common/local.mk
include %D%/bench/local.mk
include %D%/imagenet/local.mk

bin_PROGRAMS += bin/ddp-iris
bin_ddp_iris_SOURCES = \
    %D%/iris.c
bin_ddp_iris_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_iris_LDADD = libddp.la

# The driver, and what it runs: see codelets/sim/.
if HAVE_SIMGRID
bin_PROGRAMS += bin/ddp-predict
pkglibexec_PROGRAMS += bin/ddp-predict-step
bin_ddp_predict_SOURCES = \
    %D%/predict.c \
    %D%/predict.h \
    %D%/predict_machine.c \
    %D%/predict_options.c
bin_ddp_predict_CPPFLAGS = $(APPS_CPPFLAGS) \
    -DHELPER_DIR='"$(pkglibexecdir)"'
bin_ddp_predict_LDADD = $(APPS_COMMON) libddp.la $(JPEG_LIBS) $(JANSSON_LIBS)
bin_ddp_predict_step_SOURCES = \
    %D%/predict.h \
    %D%/predict_options.c \
    %D%/predict_step.c
bin_ddp_predict_step_CPPFLAGS = -I$(top_srcdir)/apps $(libddp_sim_la_CPPFLAGS)
bin_ddp_predict_step_LDADD = $(APPS_COMMON) libddp_sim.la $(JPEG_LIBS)
endif

# What the smallest program is, and what it learns from.
dist_examples_DATA += %D%/iris.c %D%/iris.csv
