# lib/local.mk - what a training step is, a folder for each subject
# SPDX-License-Identifier: LGPL-2.1-or-later

include_HEADERS += %D%/ddp.h

include %D%/base/local.mk
include %D%/image/local.mk
include %D%/data/local.mk
include %D%/graph/local.mk
include %D%/layers/local.mk
include %D%/models/local.mk
include %D%/weights/local.mk

LIB_SOURCES += \
    %D%/checkpoint.c \
    %D%/checkpoint.h \
    %D%/checkpoint_read.c \
    %D%/checkpoint_state.c \
    %D%/checkpoint_write.c \
    %D%/context.c \
    %D%/context.h \
    %D%/ema.c \
    %D%/engine.c \
    %D%/engine.h \
    %D%/evaluate.c \
    %D%/guard.c \
    %D%/infer.c \
    %D%/internal.h \
    %D%/loader.c \
    %D%/loader.h \
    %D%/memory.c \
    %D%/optim.c \
    %D%/result.c \
    %D%/schedule.c \
    %D%/scheduler.c \
    %D%/scheduler.h \
    %D%/scheduler_names.c \
    %D%/step.c \
    %D%/task_queue.h \
    %D%/train.c \
    %D%/trainer.c \
    %D%/trainer.h

libddp_core_la_SOURCES += $(LIB_SOURCES)

# The format's own description, onnx.proto, becomes C by protoc-c; a copy, since
# the names of what it writes follow from the file's.
if HAVE_ONNX
libddp_core_la_SOURCES += \
    %D%/onnx.c \
    %D%/onnx_export.h \
    %D%/onnx_model.c \
    %D%/onnx_model.h \
    %D%/onnx_ops.c
nodist_libddp_core_la_SOURCES = %D%/onnx.pb-c.c %D%/onnx.pb-c.h
DDP_CPPFLAGS += -I$(builddir)/%D%
CLEANFILES += %D%/onnx.proto %D%/onnx.pb-c.c %D%/onnx.pb-c.h
else
libddp_core_la_SOURCES += %D%/onnx_none.c
endif

%D%/onnx.pb-c.c: $(ONNX_PROTO)
	$(AM_V_GEN)$(MKDIR_P) %D% && cp $(ONNX_PROTO) %D%/onnx.proto && \
	    $(PROTOC_C) -I%D% --c_out=%D% %D%/onnx.proto
%D%/onnx.pb-c.h: %D%/onnx.pb-c.c
%D%/onnx.lo %D%/onnx_model.lo %D%/onnx_ops.lo: %D%/onnx.pb-c.h
