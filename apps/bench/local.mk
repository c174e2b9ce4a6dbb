# apps/bench/local.mk - the program ddp-bench: how fast training and input are
# SPDX-License-Identifier: LGPL-2.1-or-later

bin_PROGRAMS += bin/ddp-bench
bin_ddp_bench_SOURCES = \
    %D%/bench.c \
    %D%/bench.h \
    %D%/calibrate.c \
    %D%/calibrate.h \
    %D%/layers_speed.c \
    %D%/layers_speed.h \
    %D%/limits.c \
    %D%/limits.h \
    %D%/load.c \
    %D%/load.h \
    %D%/main.c \
    %D%/measure.c \
    %D%/measure.h \
    %D%/memory_speed.c \
    %D%/memory_speed.h \
    %D%/operations.c \
    %D%/operations.h \
    %D%/parts.c \
    %D%/parts.h \
    %D%/peak.c \
    %D%/peak.h \
    %D%/peer.c \
    %D%/peer.h \
    %D%/pool.c \
    %D%/pool.h \
    %D%/profile.c \
    %D%/profile.h \
    %D%/report.c \
    %D%/report.h \
    %D%/roof.c \
    %D%/roof.h \
    %D%/rounds.c \
    %D%/rounds.h \
    %D%/rows.h \
    %D%/runs.c \
    %D%/runs.h \
    %D%/settings.h \
    %D%/sweep.c \
    %D%/sweep.h \
    %D%/train.c \
    %D%/train.h \
    %D%/train_line.c \
    %D%/train_line.h \
    %D%/ways.c \
    %D%/ways.h
bin_ddp_bench_CPPFLAGS = $(APPS_CPPFLAGS)
bin_ddp_bench_LDADD = $(APPS_COMMON) libddp.la

COMPLETED += bin/ddp-bench$(EXEEXT)
MANUAL_PAGES += man/ddp-bench.1 \
    man/ddp-bench-train.1 \
    man/ddp-bench-load.1 \
    man/ddp-bench-roof.1 \
    man/ddp-bench-calibrate.1 \
    man/ddp-bench-sweep.1 \
    man/ddp-bench-report.1
BASH_COMPLETIONS += completions/bash/ddp-bench
ZSH_COMPLETIONS += completions/zsh/_ddp-bench
FISH_COMPLETIONS += completions/fish/ddp-bench.fish
