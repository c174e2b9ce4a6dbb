# docs/local.mk - the pages of the manual
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
    %D%/predict.md \
    %D%/reproducibility.md \
    %D%/start.md \
    %D%/training.md \
    %D%/tuning.md \
    %D%/weights.md
EXTRA_DIST += $(DOC_PAGES)
