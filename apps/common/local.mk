# apps/common/local.mk - what the programs share: options, messages, signals
# SPDX-License-Identifier: LGPL-2.1-or-later

APPS_COMMON = %D%/libcommon.la
noinst_LTLIBRARIES += $(APPS_COMMON)
%C%_libcommon_la_SOURCES = \
    %D%/app.c \
    %D%/app.h \
    %D%/cores.c \
    %D%/cores.h \
    %D%/app_command.c \
    %D%/app_command.h \
    %D%/app_fail.c \
    %D%/app_fail.h \
    %D%/app_log.c \
    %D%/app_log.h \
    %D%/app_peer.c \
    %D%/app_peer.h \
    %D%/app_rank.c \
    %D%/app_rank.h \
    %D%/app_times.c \
    %D%/app_times.h \
    %D%/start_clock.c \
    %D%/start_clock.h \
    %D%/app_words.c \
    %D%/app_words.h \
    %D%/interrupt.c \
    %D%/interrupt.h \
    %D%/opt.c \
    %D%/opt.h \
    %D%/opt_complete.c \
    %D%/opt_complete.h \
    %D%/opt_file.c \
    %D%/opt_file.h \
    %D%/opt_help.c \
    %D%/opt_help.h \
    %D%/opt_man.c \
    %D%/opt_man.h \
    %D%/opt_nearest.c \
    %D%/opt_nearest.h \
    %D%/opt_program.c \
    %D%/opt_program.h \
    %D%/opt_rows.h \
    %D%/opt_value.c \
    %D%/opt_value.h
%C%_libcommon_la_CPPFLAGS = $(APPS_CPPFLAGS) -DDDP_DATE='"$(DDP_DATE)"'
