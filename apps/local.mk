# SPDX-License-Identifier: LGPL-2.1-or-later
# apps/local.mk - the programs, on ddp.h only; built in bin/

# Nothing of lib/ but the installed headers, and nothing of codelets/.
APPS_CPPFLAGS = -I$(top_srcdir)/apps -I$(top_srcdir)/lib $(JPEG_CFLAGS) \
    $(JANSSON_CFLAGS)

include %D%/common/local.mk

# What some of the programs use.
APP_SHARED = \
    %D%/jpeg.c \
    %D%/jpeg.h \
    %D%/peak.c \
    %D%/peak.h \
    %D%/progress.c \
    %D%/progress.h \
    %D%/synth.c \
    %D%/synth.h

bin_PROGRAMS += bin/ddp-bench
bin_ddp_bench_SOURCES = \
    %D%/bench.c \
    %D%/bench.h \
    %D%/bench_load.c \
    %D%/bench_train.c \
    %D%/roof.c \
    %D%/roof.h \
    $(APP_SHARED)
bin_ddp_bench_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_bench_LDADD = $(APPS_COMMON) libddp.la $(JPEG_LIBS)

bin_PROGRAMS += bin/imagenet
bin_imagenet_SOURCES = \
    %D%/imagenet.c \
    %D%/imagenet.h \
    %D%/imagenet_answer.c \
    %D%/imagenet_checkpoint.c \
    %D%/imagenet_classes.c \
    %D%/imagenet_convert.c \
    %D%/imagenet_data.c \
    %D%/imagenet_eval.c \
    %D%/imagenet_export.c \
    %D%/imagenet_infer.c \
    %D%/imagenet_inspect.c \
    %D%/imagenet_names.c \
    %D%/imagenet_options.c \
    %D%/imagenet_plan.c \
    %D%/imagenet_setup.c \
    %D%/imagenet_synth.c \
    %D%/imagenet_train.c \
    %D%/imagenet_weights.c \
    $(APP_SHARED)
bin_imagenet_CPPFLAGS = $(APPS_CPPFLAGS)
bin_imagenet_LDADD = $(APPS_COMMON) libddp.la $(JPEG_LIBS) $(JANSSON_LIBS)

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
    %D%/predict_options.c \
    $(APP_SHARED)
bin_ddp_predict_CPPFLAGS = $(APPS_CPPFLAGS) \
    -DHELPER_DIR='"$(pkglibexecdir)"'
bin_ddp_predict_LDADD = $(APPS_COMMON) libddp.la $(JPEG_LIBS) $(JANSSON_LIBS)
bin_ddp_predict_step_SOURCES = \
    %D%/predict.h \
    %D%/predict_options.c \
    %D%/predict_step.c \
    $(APP_SHARED)
bin_ddp_predict_step_CPPFLAGS = -I$(top_srcdir)/apps $(libddp_sim_la_CPPFLAGS)
bin_ddp_predict_step_LDADD = $(APPS_COMMON) libddp_sim.la $(JPEG_LIBS)
endif

# What the smallest program is, and what it learns from.
dist_examples_DATA += %D%/iris.c %D%/iris.csv
