# apps/predict/local.mk - the program ddp-predict: training on machines that
# are only described, and the process that simulates one of them (step.c).
# The program itself only starts processes: it links one file of the library.
# SPDX-License-Identifier: LGPL-2.1-or-later

if HAVE_SIMGRID
bin_PROGRAMS += bin/ddp-predict
pkglibexec_PROGRAMS += bin/ddp-predict-step
COMPLETED += bin/ddp-predict$(EXEEXT)
MANUAL_PAGES += man/ddp-predict.1
BASH_COMPLETIONS += completions/bash/ddp-predict
ZSH_COMPLETIONS += completions/zsh/_ddp-predict
FISH_COMPLETIONS += completions/fish/ddp-predict.fish
bin_ddp_predict_SOURCES = \
    %D%/machine.c \
    %D%/main.c \
    %D%/options.c \
    %D%/predict.h \
    lib/base/printable.c
bin_ddp_predict_CPPFLAGS = $(APPS_CPPFLAGS) \
    -DHELPER_DIR='"$(pkglibexecdir)"'
bin_ddp_predict_LDADD = $(APPS_COMMON) $(JANSSON_LIBS)
bin_ddp_predict_step_SOURCES = \
    %D%/options.c \
    %D%/predict.h \
    %D%/step.c
# SimGrid has to start before main(): StarPU's library does that in a main() of
# its own, and then calls this one under another name.
bin_ddp_predict_step_CPPFLAGS = $(APPS_CPPFLAGS) -Dmain=starpu_main
bin_ddp_predict_step_LDADD = $(APPS_COMMON) libddp_sim.la
endif
