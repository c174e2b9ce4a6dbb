# codelets/local.mk - what a device does: the border, and a folder per device

libddp_core_la_SOURCES += \
    %D%/buffer.c \
    %D%/buffer.h \
    %D%/codelets.c \
    %D%/codelets.h \
    %D%/device.h \
    %D%/gpu.c \
    %D%/gpu.h \
    %D%/gpu_load.c \
    %D%/ops.h \
    %D%/philox.h

include %D%/ref/local.mk
include %D%/cpu/local.mk
include %D%/cuda/kernels.mk
include %D%/cuda/local.mk
