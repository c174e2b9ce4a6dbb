# codelets/cpu/local.mk - CPU workers: our own loops, and oneDNN where it is

AM_CPPFLAGS += -I$(top_srcdir)/%D%

libddp_core_la_SOURCES += \
    %D%/act.c \
    %D%/backend.c \
    %D%/bn.c \
    %D%/bn.h \
    %D%/bn_bwd.c \
    %D%/cpu.h \
    %D%/dropout.c \
    %D%/input.c \
    %D%/join.c \
    %D%/loss.c \
    %D%/optim.c \
    %D%/pool.c \
    %D%/thread.c \
    %D%/vmath.h

if HAVE_ONEDNN
libddp_core_la_SOURCES += \
    %D%/amx.c \
    %D%/amx.h \
    %D%/conv.c \
    %D%/onednn.c \
    %D%/onednn.h \
    %D%/pack.c \
    %D%/pack.h \
    %D%/put.c \
    %D%/wino.c \
    %D%/wino.h \
    %D%/wino_gemm.c \
    %D%/wino_tile.c
endif
