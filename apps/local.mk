# apps/local.mk - the programs: a folder each, on ddp.h only, built in bin/
# SPDX-License-Identifier: LGPL-2.1-or-later

# Nothing of lib/ but the installed headers, and nothing of codelets/.
APPS_CPPFLAGS = -I$(top_srcdir)/apps -I$(top_srcdir)/lib $(JPEG_CFLAGS) \
    $(JANSSON_CFLAGS)

# Programs print their manual pages, one for each command too, and completions
# from their tables of options.
COMPLETED =
MANUAL_PAGES =
BASH_COMPLETIONS =
ZSH_COMPLETIONS =
FISH_COMPLETIONS =
if CAN_RUN
nodist_man1_MANS = $(MANUAL_PAGES)
if INSTALL_BASH_COMPLETION
nodist_bashcomp_DATA = $(BASH_COMPLETIONS)
endif
if INSTALL_ZSH_COMPLETION
nodist_zshcomp_DATA = $(ZSH_COMPLETIONS)
endif
if INSTALL_FISH_COMPLETION
nodist_fishcomp_DATA = $(FISH_COMPLETIONS)
endif
endif
dist_man1_MANS = docs/ddp-iris.1

include %D%/common/local.mk
include %D%/bench/local.mk
include %D%/imagenet/local.mk
include %D%/iris/local.mk
include %D%/predict/local.mk

# The first two words of ddp-bench-train are the program's name.
man/stamp: $(COMPLETED)
	$(AM_V_GEN)$(MKDIR_P) man && for page in $(MANUAL_PAGES); do \
	    words=`echo "$$page" | $(SED) -e 's,.*/,,; s/\.1$$//; s/-/ /g' \
	        -e 's/^ddp /ddp-/; s/^\([^ ]*\)/\1 manual/'`; \
	    bin/$$words >$$page || exit 1; \
	done && touch $@
$(MANUAL_PAGES): man/stamp

# Each shell expects other names.
completions/stamp: $(COMPLETED)
	$(AM_V_GEN)for shell in bash zsh fish; do \
	    $(MKDIR_P) completions/$$shell || exit 1; \
	    for program in $(COMPLETED); do \
	        name=`basename $$program $(EXEEXT)`; \
	        case $$shell in \
	        bash) file=$$name ;; \
	        zsh) file=_$$name ;; \
	        fish) file=$$name.fish ;; \
	        esac; \
	        $$program completion $$shell >completions/$$shell/$$file || \
	            exit 1; \
	    done; \
	done && touch $@
$(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS): completions/stamp

CLEANFILES += man/stamp completions/stamp $(MANUAL_PAGES) \
    $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
