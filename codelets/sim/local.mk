# codelets/sim/local.mk - simulated devices: the step graph and the policy
# compiled against StarPU's SimGrid flavour, for ddp-predict
# SPDX-License-Identifier: LGPL-2.1-or-later

libddp_core_la_SOURCES += %D%/none.c

if HAVE_SIMGRID
noinst_LTLIBRARIES += libddp_sim.la
libddp_sim_la_SOURCES = \
    $(LIB_SOURCES) \
    $(CODELETS_SOURCES) \
    %D%/network.c \
    %D%/network.h \
    %D%/numa.c \
    %D%/numa.h \
    %D%/sim.c \
    %D%/sim.h \
    %D%/simulation.c \
    lib/onnx/none.c
libddp_sim_la_CPPFLAGS = $(DDP_CPPFLAGS) $(SIMGRID_CPPFLAGS)
libddp_sim_la_LIBADD = $(SIMGRID_LIBS) $(HWLOC_LIBS) $(JPEG_LIBS) \
    $(PNG_LIBS) $(WEBP_LIBS) $(GIF_LIBS) $(TIFF_LIBS) $(AVIF_LIBS) $(ZLIB_LIBS) $(JANSSON_LIBS) $(CURL_LIBS) \
    $(ARCHIVE_LIBS)
endif
