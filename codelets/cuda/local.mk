# codelets/cuda/local.mk - NVIDIA GPUs, as a module that is opened at run time
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# libddp.so itself needs none of CUDA's libraries: a program starts without.
# Tests link libddp_cuda_core.la, with every symbol.

if HAVE_CUDA
# Which GPUs there are, and the module, opened.
libddp_core_la_SOURCES += \
    %D%/device.c \
    %D%/gpu.c \
    %D%/gpu.h \
    %D%/gpu_load.c \
    %D%/gpu_places.c \
    %D%/gpu_places.h

noinst_LTLIBRARIES += libddp_cuda_core.la
libddp_cuda_core_la_SOURCES = \
    $(GPU_BODIES) \
    $(CUDA_KERNELS) \
    $(CUDA_TASKS) \
    %D%/after.cu \
    %D%/backend.c \
    %D%/backend.h \
    %D%/bn.c \
    %D%/bn.h \
    %D%/bn_mask.c \
    %D%/bn_put.c \
    %D%/conv.c \
    %D%/conv.h \
    %D%/dense.c \
    %D%/dense.h \
    %D%/dnn_cache.c \
    %D%/dnn_graph.c \
    %D%/dnn_graph.h \
    %D%/dnn_plan.c \
    %D%/dnn_plan.h \
    %D%/dnn_target.c \
    %D%/dnn_tune.c \
    %D%/dnn_tune.h \
    %D%/matmul.c \
    %D%/matmul.h \
    %D%/profile.c \
    %D%/profile.h \
    %D%/space.c \
    %D%/space.h \
    %D%/variant.c \
    %D%/variant.h \
    %D%/weights.c \
    %D%/weights.h \
    %D%/worker.c \
    %D%/worker.h
libddp_cuda_core_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
libddp_cuda_core_la_LIBADD = $(CUDA_LIBS) $(STARPU_LIBS)

# What a test that calls this code links, instead of LDADD.
LDADD_CUDA = tests/libcheck.la libddp_cuda_core.la libddp_core.la $(CUDA_LIBS)

# nvcc's objects do not know what they depend on.
$(libddp_cuda_core_la_OBJECTS): %D%/kernel.h %D%/worker.h $(GPU_BODIES)

pkglib_LTLIBRARIES += ddp_cuda.la
ddp_cuda_la_SOURCES = codelets/ops.c codelets/ops_loss.c \
    codelets/ops_optim.c codelets/ops_table.c %D%/module.c %D%/module.h
ddp_cuda_la_CPPFLAGS = $(libddp_cuda_core_la_CPPFLAGS)
ddp_cuda_la_LIBADD = libddp_cuda_core.la $(CUDA_LIBS)
ddp_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
    -no-undefined -Wl,-z,defs -export-symbols-regex '^ddp_cuda_open$$'
endif

# nvcc takes a C compiler's options; C++ without its run time links with C.
CUDA_COMPILE = $(NVCC) -forward-unknown-to-host-compiler $(NVCCFLAGS) \
    -std=c++17 -Wno-deprecated-gpu-targets -DHAVE_CONFIG_H -I. \
    $(AM_CPPFLAGS) $(CPPFLAGS) -fno-exceptions -fno-rtti \
    -fno-threadsafe-statics -Wall $(WERROR_NVCCFLAGS) $(SANITIZE_CFLAGS)

.cu.lo:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(LIBTOOL) $(AM_V_lt) --tag=CC \
	    $(AM_LIBTOOLFLAGS) $(LIBTOOLFLAGS) --mode=compile \
	    $(CUDA_COMPILE) -c -o $@ $<
