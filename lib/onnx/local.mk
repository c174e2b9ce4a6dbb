# lib/onnx/local.mk - export of a chain as an ONNX model
# SPDX-License-Identifier: LGPL-2.1-or-later


# The format's own description, onnx.proto, becomes C by protoc-c; a copy, since
# the names of what it writes follow from the file's.
if HAVE_ONNX
libddp_core_la_SOURCES += \
    %D%/export.c \
    %D%/export.h \
    %D%/model.c \
    %D%/model.h \
    %D%/ops.c \
    %D%/ops.h
nodist_libddp_core_la_SOURCES = %D%/onnx.pb-c.c %D%/onnx.pb-c.h
DDP_CPPFLAGS += -I$(builddir)/lib
CLEANFILES += %D%/onnx.proto %D%/onnx.pb-c.c %D%/onnx.pb-c.h
else
libddp_core_la_SOURCES += %D%/none.c
endif

%D%/onnx.pb-c.c: $(ONNX_PROTO)
	$(AM_V_GEN)$(MKDIR_P) %D% && cp $(ONNX_PROTO) %D%/onnx.proto && \
	    $(PROTOC_C) -I%D% --c_out=%D% %D%/onnx.proto
%D%/onnx.pb-c.h: %D%/onnx.pb-c.c
%D%/export.lo %D%/model.lo %D%/ops.lo: %D%/onnx.pb-c.h
