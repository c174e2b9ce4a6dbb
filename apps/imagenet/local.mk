# apps/imagenet/local.mk - the program imagenet: networks on images, a file for
# each command and for what several of them need
# SPDX-License-Identifier: LGPL-2.1-or-later

bin_PROGRAMS += bin/imagenet
bin_imagenet_SOURCES = \
    %D%/abort.c \
    %D%/abort.h \
    %D%/board.c \
    %D%/board.h \
    %D%/board_network.c \
    %D%/board_network.h \
    %D%/changes.c \
    %D%/changes.h \
    %D%/check.c \
    %D%/check.h \
    %D%/chart.c \
    %D%/chart.h \
    %D%/chart_svg.c \
    %D%/chart_svg.h \
    %D%/checkpoint.c \
    %D%/checkpoint.h \
    %D%/class_subset.c \
    %D%/class_subset.h \
    %D%/class_weights.c \
    %D%/class_weights.h \
    %D%/classes.c \
    %D%/classes.h \
    %D%/convert.c \
    %D%/convert.h \
    %D%/converter.c \
    %D%/converter.h \
    %D%/doctor.c \
    %D%/doctor.h \
    %D%/doctor_limits.c \
    %D%/doctor_limits.h \
    %D%/doctor_machine.c \
    %D%/doctor_machine.h \
    %D%/doctor_ranks.c \
    %D%/doctor_ranks.h \
    %D%/doctor_report.c \
    %D%/doctor_report.h \
    %D%/doctor_test.c \
    %D%/doctor_test.h \
    %D%/effects.c \
    %D%/effects.h \
    %D%/eval.c \
    %D%/eval.h \
    %D%/export.c \
    %D%/export.h \
    %D%/find_lr.c \
    %D%/find_lr.h \
    %D%/foreign.c \
    %D%/foreign.h \
    %D%/groups.c \
    %D%/groups.h \
    %D%/html.c \
    %D%/html.h \
    %D%/infer.c \
    %D%/infer.h \
    %D%/inspect.c \
    %D%/inspect.h \
    %D%/jpeg.c \
    %D%/jpeg.h \
    %D%/lines.c \
    %D%/lines.h \
    %D%/main.c \
    %D%/names.c \
    %D%/names.h \
    %D%/options.c \
    %D%/options.h \
    %D%/options_data.c \
    %D%/options_data.h \
    %D%/options_files.c \
    %D%/options_files.h \
    %D%/options_optim.c \
    %D%/options_optim.h \
    %D%/options_rows.h \
    %D%/options_run.c \
    %D%/options_run.h \
    %D%/output.c \
    %D%/output.h \
    %D%/image_cache.c \
    %D%/image_cache.h \
    %D%/pack.c \
    %D%/pack.h \
    %D%/picture.c \
    %D%/picture.h \
    %D%/plan.c \
    %D%/plan.h \
    %D%/prediction.c \
    %D%/prediction.h \
    %D%/progress.c \
    %D%/progress.h \
    %D%/recipe.c \
    %D%/recipe.h \
    %D%/record.c \
    %D%/record.h \
    %D%/report.c \
    %D%/report.h \
    %D%/report_classes.c \
    %D%/report_classes.h \
    %D%/report_files.c \
    %D%/report_files.h \
    %D%/report_page.c \
    %D%/report_page.h \
    %D%/report_plot.c \
    %D%/report_plot.h \
    %D%/report_run.c \
    %D%/report_run.h \
    %D%/report_tables.c \
    %D%/report_tables.h \
    %D%/report_timeline.c \
    %D%/report_timeline.h \
    %D%/run_file.c \
    %D%/run_file.h \
    %D%/setup.c \
    %D%/setup.h \
    %D%/setup_data.c \
    %D%/setup_data.h \
    %D%/setup_network.c \
    %D%/setup_network.h \
    %D%/split.c \
    %D%/split.h \
    %D%/step_graph.c \
    %D%/step_graph.h \
    %D%/synth.c \
    %D%/synth.h \
    %D%/teacher.c \
    %D%/teacher.h \
    %D%/train.c \
    %D%/train.h \
    %D%/train_events.c \
    %D%/train_events.h \
    %D%/train_folder.c \
    %D%/train_folder.h \
    %D%/train_lines.c \
    %D%/train_lines.h \
    %D%/train_make.c \
    %D%/train_make.h \
    %D%/train_run.h \
    %D%/weights.c \
    %D%/weights.h \
    %D%/weights_settings.c \
    %D%/weights_settings.h
bin_imagenet_CPPFLAGS = $(APPS_CPPFLAGS) $(HWLOC_CFLAGS) -Iapps/imagenet \
    -DBUILT_WITH_MPI='"$(MPI_VERSION)"' \
    -DDDP_RECIPES='"$(recipesdir)"'
bin_imagenet_LDADD = $(APPS_COMMON) libddp.la $(JPEG_LIBS) $(JANSSON_LIBS) \
    $(HWLOC_LIBS)

COMPLETED += bin/imagenet$(EXEEXT)
MANUAL_PAGES += man/imagenet.1 \
    man/imagenet-train.1 \
    man/imagenet-eval.1 \
    man/imagenet-export.1 \
    man/imagenet-infer.1 \
    man/imagenet-convert.1 \
    man/imagenet-inspect.1 \
    man/imagenet-doctor.1 \
    man/imagenet-report.1 \
    man/imagenet-data-check.1 \
    man/imagenet-data-pack.1 \
    man/imagenet-data-unpack.1 \
    man/imagenet-data-synth.1
BASH_COMPLETIONS += completions/bash/imagenet
ZSH_COMPLETIONS += completions/zsh/_imagenet
FISH_COMPLETIONS += completions/fish/imagenet.fish

# The revision that programs report: of a working tree, else none.  Made again
# whenever it has changed.
apps/imagenet/bin_imagenet-run_file.$(OBJEXT): apps/imagenet/revision.h
apps/imagenet/revision.h: FORCE
	@$(MKDIR_P) apps/imagenet; rev=; \
	if test -e '$(srcdir)/.git'; then \
	    rev=`git -C '$(srcdir)' describe --always --dirty --exclude='*' \
	        --abbrev=12 2>/dev/null`; \
	fi; \
	echo "#define DDP_REVISION \"$$rev\"" >$@.tmp; \
	if cmp -s $@.tmp $@; then rm $@.tmp; else mv $@.tmp $@; fi
FORCE:
.PHONY: FORCE
CLEANFILES += apps/imagenet/revision.h

# What is in every page, as strings of C.
EXTRA_DIST += %D%/page/report.css %D%/page/report.js
apps/imagenet/bin_imagenet-report_page.$(OBJEXT): \
    apps/imagenet/report_css.h apps/imagenet/report_js.h
AS_STRING = sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' -e '$$s/$$/;/'
apps/imagenet/report_css.h: %D%/page/report.css
	$(AM_V_GEN)$(MKDIR_P) apps/imagenet && \
	    { echo 'static const char style[] ='; \
	        $(AS_STRING) '$(srcdir)/%D%/page/report.css'; } >$@
apps/imagenet/report_js.h: %D%/page/report.js
	$(AM_V_GEN)$(MKDIR_P) apps/imagenet && \
	    { echo 'static const char script[] ='; \
	        $(AS_STRING) '$(srcdir)/%D%/page/report.js'; } >$@
CLEANFILES += apps/imagenet/report_css.h apps/imagenet/report_js.h
