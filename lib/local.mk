# lib/local.mk - what a training step is, a folder for each subject
# SPDX-License-Identifier: LGPL-2.1-or-later

include_HEADERS += %D%/ddp.h %D%/ddp_layer.h

include %D%/base/local.mk
include %D%/storage/local.mk
include %D%/image/local.mk
include %D%/data/local.mk
include %D%/graph/local.mk
include %D%/layers/local.mk
include %D%/models/local.mk
include %D%/weights/local.mk
include %D%/onnx/local.mk
include %D%/engine/local.mk
include %D%/checkpoint/local.mk
include %D%/train/local.mk

libddp_core_la_SOURCES += $(LIB_SOURCES)
