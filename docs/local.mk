# docs/local.mk - the pages of the manual, and the same as HTML
# SPDX-License-Identifier: LGPL-2.1-or-later

DOC_PAGES = \
    %D%/coming-from.md \
    %D%/data.md \
    %D%/design.md \
    %D%/embed.md \
    %D%/environment.md \
    %D%/faq.md \
    %D%/faults.md \
    %D%/finetune.md \
    %D%/formats.md \
    %D%/gpu.md \
    %D%/install.md \
    %D%/library.md \
    %D%/nodes.md \
    %D%/performance.md \
    %D%/predict.md \
    %D%/python.md \
    %D%/reproducibility.md \
    %D%/start.md \
    %D%/training.md \
    %D%/tuning.md \
    %D%/weights.md
DOC_PICTURES = %D%/curves.svg %D%/lanes.svg %D%/memory.svg %D%/scheduler.svg
EXTRA_DIST += %D%/style.css contrib/build-docs contrib/draw-curves
docsdir = $(docdir)/docs
dist_docs_DATA = $(DOC_PAGES) $(DOC_PICTURES)

# As HTML, in docs/html.  "make install-html" installs it.
docs:
	$(srcdir)/contrib/build-docs '$(srcdir)' %D%/html
html-local: docs
install-html-local: docs
	$(MKDIR_P) '$(DESTDIR)$(htmldir)/examples'
	$(INSTALL_DATA) %D%/html/*.html %D%/html/*.svg %D%/html/style.css \
	    '$(DESTDIR)$(htmldir)'
	$(INSTALL_DATA) %D%/html/examples/* '$(DESTDIR)$(htmldir)/examples'
.PHONY: docs
