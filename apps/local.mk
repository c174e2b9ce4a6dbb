# apps/local.mk - the programs: a folder each, on ddp.h only, built in bin/
# SPDX-License-Identifier: LGPL-2.1-or-later

# Nothing of lib/ but the installed headers, and nothing of codelets/.
APPS_CPPFLAGS = -I$(top_srcdir)/apps -I$(top_srcdir)/lib $(JPEG_CFLAGS) \
    $(JANSSON_CFLAGS)

include %D%/common/local.mk
include %D%/bench/local.mk
include %D%/imagenet/local.mk
include %D%/iris/local.mk
include %D%/predict/local.mk
