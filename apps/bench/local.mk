# apps/bench/local.mk - the program ddp-bench: how fast training and input are
# SPDX-License-Identifier: LGPL-2.1-or-later

bin_PROGRAMS += bin/ddp-bench
bin_ddp_bench_SOURCES = \
    %D%/bench.h \
    %D%/load.c \
    %D%/main.c \
    %D%/peak.c \
    %D%/peak.h \
    %D%/roof.c \
    %D%/roof.h \
    %D%/train.c
bin_ddp_bench_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_bench_LDADD = $(APPS_COMMON) libddp.la
