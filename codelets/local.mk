# codelets/local.mk - what a device does: the border, and a folder per device

libddp_core_la_SOURCES += \
    %D%/buffer.c \
    %D%/buffer.h \
    %D%/codelets.c \
    %D%/codelets.h \
    %D%/ops.h \
    %D%/philox.h

include %D%/ref/local.mk
include %D%/cpu/local.mk
