# docs/local.mk - the pages of the manual
# SPDX-License-Identifier: LGPL-2.1-or-later

DOC_PAGES = \
    %D%/data.md \
    %D%/design.md \
    %D%/environment.md \
    %D%/faults.md \
    %D%/gpu.md \
    %D%/install.md \
    %D%/library.md \
    %D%/nodes.md \
    %D%/predict.md \
    %D%/training.md \
    %D%/tuning.md \
    %D%/weights.md
EXTRA_DIST += $(DOC_PAGES)
