# apps/local.mk - programs on ddp.h only
#
# A program apps/x needs the name for itself in the build tree, so its sources
# lie flat beside it (x.c, x_train.c, ...), never in a folder apps/x/.

# What the programs share.
APP_SHARED = \
    %D%/app.c \
    %D%/app.h \
    %D%/jpeg.c \
    %D%/jpeg.h \
    %D%/opt.c \
    %D%/opt.h \
    %D%/opt_help.c \
    %D%/opt_rows.h \
    %D%/opt_value.c \
    %D%/peak.c \
    %D%/peak.h \
    %D%/progress.c \
    %D%/progress.h \
    %D%/synth.c \
    %D%/synth.h

noinst_PROGRAMS += %D%/bench
%C%_bench_SOURCES = \
    %D%/bench.c \
    %D%/bench.h \
    %D%/bench_load.c \
    %D%/bench_train.c \
    %D%/roof.c \
    %D%/roof.h \
    $(APP_SHARED)
%C%_bench_LDADD = libddp.la $(JPEG_LIBS)

noinst_PROGRAMS += %D%/imagenet
%C%_imagenet_SOURCES = \
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
    %D%/interrupt.c \
    %D%/interrupt.h \
    $(APP_SHARED)
%C%_imagenet_LDADD = libddp.la $(JPEG_LIBS) $(JANSSON_LIBS)

noinst_PROGRAMS += %D%/iris
%C%_iris_SOURCES = \
    %D%/iris.c
%C%_iris_LDADD = libddp.la

# The driver, and what it runs: see codelets/sim/.
if HAVE_SIMGRID
noinst_PROGRAMS += %D%/predict %D%/predict_step
%C%_predict_SOURCES = \
    %D%/interrupt.c \
    %D%/interrupt.h \
    %D%/predict.c \
    %D%/predict.h \
    %D%/predict_machine.c \
    %D%/predict_options.c \
    $(APP_SHARED)
%C%_predict_LDADD = libddp_core.la $(JPEG_LIBS) $(JANSSON_LIBS)
%C%_predict_step_SOURCES = \
    %D%/predict.h \
    %D%/predict_options.c \
    %D%/predict_step.c \
    $(APP_SHARED)
%C%_predict_step_CPPFLAGS = $(libddp_sim_la_CPPFLAGS)
%C%_predict_step_LDADD = libddp_sim.la $(JPEG_LIBS)
endif

EXTRA_DIST += %D%/iris.csv
