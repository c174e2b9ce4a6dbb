# lib/image/local.mk - from the bytes of an image file to the pixels of a sample
# SPDX-License-Identifier: LGPL-2.1-or-later

LIB_SOURCES += \
    %D%/augment.c \
    %D%/augment.h \
    %D%/avif.h \
    %D%/bmp.c \
    %D%/bmp.h \
    %D%/cache.c \
    %D%/cache.h \
    %D%/change.c \
    %D%/change.h \
    %D%/clones.h \
    %D%/colour.c \
    %D%/colour.h \
    %D%/disk_cache.c \
    %D%/disk_cache.h \
    %D%/erase.c \
    %D%/erase.h \
    %D%/gif.h \
    %D%/image.c \
    %D%/image.h \
    %D%/jpeg.c \
    %D%/jpeg.h \
    %D%/jpeg_write.c \
    %D%/jpeg_write.h \
    %D%/load.c \
    %D%/load.h \
    %D%/options.c \
    %D%/options.h \
    %D%/picture.c \
    %D%/picture.h \
    %D%/png.h \
    %D%/policy.c \
    %D%/policy.h \
    %D%/policy_parse.c \
    %D%/resize.c \
    %D%/resize.h \
    %D%/shrink.c \
    %D%/shrink.h \
    %D%/tiff.h \
    %D%/warp.c \
    %D%/warp.h \
    %D%/webp.h \
    %D%/whole.c \
    %D%/whole.h

if HAVE_PNG
LIB_SOURCES += %D%/png.c
endif
if HAVE_WEBP
LIB_SOURCES += %D%/webp.c
endif
if HAVE_GIF
LIB_SOURCES += %D%/gif.c
endif
if HAVE_TIFF
LIB_SOURCES += %D%/tiff.c
endif
if HAVE_AVIF
LIB_SOURCES += %D%/avif.c
endif
